//go:build e2e

package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A file with the output or with a request, in a folder where commands may write,
// could be replaced: by a link, for the next output to go wherever it points, or by
// another request. More than fits into a pipe is what bash makes files of.
func TestExampleServersHaveNoFiles(t *testing.T) {
	s := newScratch(t)
	created := watch(t, filepath.Join(s.root, "tmp"))
	much := "echo on; : " + strings.Repeat("x", 100_000)
	output := "head -c 100000 /dev/zero | tr '\\0' x"
	for _, command := range []string{much, output} {
		if answer := s.serve(t, s.toolCall(t, command))[0]; !strings.HasSuffix(answer.text(), "\nexit status 0") {
			t.Errorf("the answer is %.100q", answer.text())
		}
	}
	r := s.startRepl(t, "")
	r.expect(t, currentRequest, much, "on\nexit status 0")
	r.expect(t, currentRequest, output, strings.Repeat("x", 100_000)+"\nexit status 0")
	for _, name := range created() {
		if !strings.HasPrefix(name, "codex-") { // but for the launcher's
			t.Errorf("there was a file %s", name)
		}
	}
}

// watch returns a function that returns the names of all files that were made in a
// folder since.
func watch(t *testing.T, folder string) func() []string {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, folder, unix.IN_CREATE|unix.IN_MOVED_TO); err != nil {
		t.Fatal(err)
	}
	return func() (names []string) {
		events := make([]byte, 64<<10)
		for {
			n, err := unix.Read(fd, events)
			if errors.Is(err, unix.EAGAIN) {
				return names
			}
			if err != nil {
				t.Fatal(err)
			}
			for rest := events[:n]; len(rest) > 0; {
				size := binary.NativeEndian.Uint32(rest[12:])
				name := rest[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+size]
				names = append(names, string(bytes.TrimRight(name, "\x00")))
				rest = rest[unix.SizeofInotifyEvent+size:]
			}
		}
	}
}
