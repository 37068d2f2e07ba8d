//go:build e2e

package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// link turns the link that stands for the installed Codex to a version.
func (s *scratch) link(t *testing.T, version string) (path string) {
	t.Helper()
	path = filepath.Join(s.root, "installed")
	if err := turn(path, codex(t, version)); err != nil {
		t.Fatal(err)
	}
	return path
}

// turn makes a path a link to another file, from one moment to the next.
func turn(path, file string) error {
	return errors.Join(os.Symlink(file, path+".new"), os.Rename(path+".new", path))
}

// A Codex that has passed the probe is not probed again, until it is updated.
func TestProbeCache(t *testing.T) {
	s := newScratch(t)
	request := s.request(t, currentRequest, s.link(t, current))
	attempt := func() result { return run(t, s.shim(t, request, "--verbose", "--", "sh", "-c", writeBoth)) }
	for _, c := range []struct{ version, said string }{
		{current, "its probe passed\n"},
		{current, "its probe passed before, as the cache has it\n"},
		{beforeLaunchers, "its probe passed\n"},
		{beforeLaunchers, "its probe passed before, as the cache has it\n"},
		{current, "its probe passed before, as the cache has it\n"},
	} {
		s.link(t, c.version)
		r := attempt()
		if !strings.Contains(r.stderr, c.said) || r.status == 0 || r.status == 125 {
			t.Errorf("%s: exit status %d, stderr %q, which does not say %q", c.version, r.status, r.stderr, c.said)
		}
		s.expectWritten(t, true, false)
	}
	s.link(t, beforeStates)
	if r := attempt(); r.status != 125 || !strings.Contains(r.stderr, "launcher-incapable: ") {
		t.Errorf("%s: exit status %d, stderr %q", beforeStates, r.status, r.stderr)
	}
}

// A Codex that is executed by its descriptor finds all that belongs to it.
func TestPinnedLauncher(t *testing.T) {
	s := newScratch(t)
	launcher := codex(t, current)
	pin := func(version string) string { return fmt.Sprintf("%s=sha256:%s", launcher, sum(t, codex(t, version))) }
	request := s.request(t, currentRequest, launcher)
	run(t, s.shim(t, request, "--allow-launcher", pin(current), "--", "sh", "-c", writeBoth+` || exit 7`)).expectStatus(t, 7)
	s.expectWritten(t, true, false)
	for _, allowed := range []string{pin(beforeLaunchers), codex(t, beforeLaunchers), s.project} {
		run(t, s.shim(t, request, "--allow-launcher", allowed, "--", "true")).expectRefusal(t, "launcher-not-allowed")
	}
}

func sum(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

// The modes of a session, as Codex itself has put them into a state; and a state
// that looks managed and manages nothing.
func TestRequireConfined(t *testing.T) {
	for _, c := range []struct {
		mode             string
		confined, inside bool
	}{
		{"read-only", true, false},
		{"workspace-write", true, true},
		{"danger-full-access", false, false},
	} {
		s := newScratch(t)
		request := s.request(t, "tools-call-codex-0.171.0-"+c.mode+".json", codex(t, current))
		r := run(t, s.shim(t, request, "--require-confined", "--", "sh", "-c", writeBoth+` || exit 7`))
		if c.confined {
			r.expectStatus(t, 7)
		} else {
			r.expectRefusal(t, "state-unconfined")
		}
		s.expectWritten(t, c.inside, false)
	}

	const writeRoot = `{"path":{"type":"special","value":{"kind":"root"}},"access":"write"}`
	for _, fileSystem := range []string{
		`{"type":"unrestricted"}`,
		`["unrestricted"]`,
		`{"type":"restricted","entries":[` + writeRoot + `]}`,
		`["restricted",[` + writeRoot + `]]`,
		`{"type":"restricted","entries":[[{"type":"special","value":{"kind":"root"}},"write"]]}`,
		`{"type":"restricted","entries":[{"path":{"type":"special","value":{"kind":0}},"access":"write"}]}`,
	} {
		s := newScratch(t)
		state := `{"permissionProfile":{"type":"managed","file_system":` + fileSystem + `,"network":"enabled"},"codexLinuxSandboxExe":null,"sandboxCwd":` +
			encode("file://"+s.root) + `}`
		request := newRequest([]byte(state), codex(t, current))
		run(t, s.shim(t, request, "--require-confined", "--", "true")).expectRefusal(t, "state-unconfined")
		// The reason: the launcher does not confine it.
		run(t, s.shim(t, request, "--", "sh", "-c", "echo outside >outside/written")).expectStatus(t, 0)
		s.expectWritten(t, false, true)
	}
}

// While the installed Codex changes all the time, a command runs in the sandbox
// or not at all.
func TestCodexIsSwapped(t *testing.T) {
	s := newScratch(t)
	path := s.link(t, current)
	request := s.request(t, currentRequest, path)
	files := []string{codex(t, current), codex(t, beforeStates), codex(t, beforeLaunchers)}
	end, ended := make(chan struct{}), make(chan int)
	go func() {
		for swaps := 0; ; swaps++ {
			select {
			case <-end:
				ended <- swaps
				return
			default:
				if err := turn(path, files[swaps%len(files)]); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	const runs = 60
	ran := 0
	for i := range runs {
		cmd := s.shim(t, request, "--", "sh", "-c", `echo inside >written; echo outside >../outside/written; echo "$0"`, fmt.Sprint(i))
		switch r := run(t, cmd); {
		case r.status == 0 && r.stdout == fmt.Sprintln(i):
			ran++
		case r.status != 125 || r.stdout != "":
			t.Errorf("exit status %d, stdout %q, stderr %q", r.status, r.stdout, r.stderr)
		case !strings.Contains(r.stderr, "launcher-changed: ") && !strings.Contains(r.stderr, "launcher-incapable: "):
			t.Errorf("the refusal is %q", r.stderr)
		}
	}
	close(end)
	t.Logf("%d swaps, %d runs, of which %d ran", <-ended, runs, ran)
	if ran == 0 || ran == runs {
		t.Errorf("%d of %d ran", ran, runs)
	}
	s.expectWritten(t, true, false)
}
