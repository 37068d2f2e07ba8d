package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func authorityOf(t *testing.T, o Options) (*Authority, error) {
	t.Helper()
	m := &Metadata{state: []byte("{}")}
	return m.Authority(context.Background(), o)
}

func sumOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// What is mapped for writing can change without a trace, also when nobody has it
// open any more, so that a hash of it says nothing.
func TestPinOfAMappedFile(t *testing.T) {
	path := testLauncher
	pinned := Options{DefaultLauncher: path, AllowedLaunchers: []AllowedLauncher{{Path: path, SHA256: sumOf(t, path)}}}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	mapping, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	unix.Close(fd)
	if err != nil {
		t.Fatal(err)
	}
	_, refused := authorityOf(t, pinned)
	if err := unix.Munmap(mapping); err != nil {
		t.Fatal(err)
	}
	// Below overlayfs the mapping is of another file, which only its user and root
	// may have then.
	layered := fileSystemOf(t, path) == unix.OVERLAYFS_SUPER_MAGIC
	if code := codeOf(t, refused); code != CodeLauncherChanged && !layered {
		t.Errorf("while it is mapped: %v", refused)
	}
	a, err := authorityOf(t, pinned)
	if err != nil {
		t.Fatalf("when it is not: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// From before it is hashed, a launcher with a pin cannot be written; and who has
// asked to is noticed.
func TestPinnedFileIsHeld(t *testing.T) {
	path := testLauncher
	a, err := authorityOf(t, Options{DefaultLauncher: path, AllowedLaunchers: []AllowedLauncher{{Path: path, SHA256: sumOf(t, path)}}})
	if err != nil {
		t.Fatal(err)
	}
	if release, err := a.Hold(); err != nil {
		t.Error(err)
	} else {
		release() // which must not let anybody write what is pinned
	}
	if err := a.Recheck(); err != nil {
		t.Error(err)
	}
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != unix.EAGAIN {
		unix.Close(fd)
		t.Errorf("it can be written: %v", err)
	}
	if code := codeOf(t, a.Recheck()); code != CodeLauncherChanged {
		t.Errorf("somebody wants to write it: %q", code)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	fd, err = unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("it cannot be written when it is closed: %v", err)
	}
	unix.Close(fd)
	if code := codeOf(t, a.Recheck()); code != CodeLauncherChanged {
		t.Errorf("it is used when it is closed: %q", code)
	}
}

// A file that cannot be held, and that others can write, is none to trust a hash of.
func TestPinOfAFileOfOthers(t *testing.T) {
	fd, err := unix.Open(testLauncher, unix.O_PATH|unix.O_CLOEXEC, 0) // which no lease is given for
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "launcher")
	defer file.Close()
	own := uint32(os.Geteuid())
	for _, test := range []struct {
		owner, mode uint32
		refused     bool
	}{
		{0, 0o755, false},
		{own, 0o755, false},
		{12345, 0o755, true},
		{0, 0o775, true},
		{own, 0o775, true},
	} {
		f := &launcherFile{file: file, owner: test.owner, mode: test.mode}
		if _, err := f.content(); (err != nil) != test.refused {
			t.Errorf("of user %d, mode %o: %v", test.owner, test.mode, err)
		}
	}
}

// A server that is called often has one descriptor for a launcher, and not one for
// each call that nobody has collected yet.
func TestAuthoritiesShareTheDescriptor(t *testing.T) {
	o := Options{DefaultLauncher: testLauncher, CacheDir: filepath.Join(t.TempDir(), "cache")}
	first, err := authorityOf(t, o)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if a, err := authorityOf(t, o); err != nil || a.Descriptor() != first.Descriptor() {
			t.Fatalf("%v, %v", a, err)
		}
	}
	if _, err := first.launcher.file.Stat(); err != nil {
		t.Errorf("it is closed: %v", err)
	}
}

// The probe executes the launcher, and not what Go has put at its number in the
// child: it moves a descriptor of its own after the highest that it passes on.
// That needs others that open and close files at the same time.
func TestProbeAmongOtherDescriptors(t *testing.T) {
	o := Options{DefaultLauncher: testLauncher}
	end := make(chan struct{})
	var others, probes sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				var fds []int
				for range rand.IntN(12) {
					if fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3); err == nil {
						fds = append(fds, fd)
					}
				}
				for _, fd := range fds {
					unix.Close(fd)
				}
			}
		})
	}
	for range 4 {
		probes.Go(func() {
			for range 60 {
				if _, err := authorityOf(t, o); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	probes.Wait()
	close(end)
	others.Wait()
}

// Where children may not look at this process, they execute a descriptor of their
// own, above those that Go moves.
func TestProbeOfAProcessThatIsHidden(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	a, err := authorityOf(t, Options{DefaultLauncher: testLauncher})
	if err != nil {
		t.Fatal(err)
	}
	path, release, err := a.launcher.forProbe(os.Stdin, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	number, own := strings.CutPrefix(path, "/proc/self/fd/")
	fd, err := strconv.Atoi(number)
	if !own || err != nil || fd < int(os.Stderr.Fd())+10 {
		t.Errorf("%s, %v", path, err)
	}
}

// What a script runs can change while the script stays the same, so that a pass of
// it says nothing about the next time.
func TestScriptIsNotCached(t *testing.T) {
	folder := t.TempDir()
	for path, want := range map[string]bool{testLauncher: true, testScript: false} {
		o := Options{DefaultLauncher: path, CacheDir: filepath.Join(folder, "cache")}
		for i := range 2 {
			a, err := authorityOf(t, o)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Cached(); got != (want && i == 1) || a.CacheErr() != nil {
				t.Errorf("%s, the %dth time: %v, %v", path, i, got, a.CacheErr())
			}
		}
	}
}

// A launcher that is open for writing is not held. What is held is each holder's
// own, though they share the descriptor.
func TestHold(t *testing.T) {
	a, err := authorityOf(t, Options{DefaultLauncher: testLauncher})
	if err != nil {
		t.Fatal(err)
	}
	b, err := authorityOf(t, Options{DefaultLauncher: testLauncher})
	if err != nil {
		t.Fatal(err)
	}
	write := func() (int, error) {
		return unix.Open(testLauncher, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	}
	fd, err := write()
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Hold()
	unix.Close(fd)
	if codeOf(t, err) != CodeLauncherChanged || !errors.Is(err, unix.ETXTBSY) {
		t.Errorf("while it is open for writing: %v", err)
	}

	releaseA, errA := a.Hold()
	releaseB, errB := b.Hold()
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	releaseA()
	if fd, err := write(); err != unix.EAGAIN {
		unix.Close(fd)
		t.Errorf("it can be written while another holds it: %v", err)
	}
	if err := errors.Join(a.Recheck(), b.Recheck(), a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	releaseB()
	if fd, err = write(); err != nil {
		t.Fatalf("it cannot be written when nobody holds it: %v", err)
	}
	unix.Close(fd)
	if !isOn(a.launcher.file, fileSystemOf(t, testLauncher)) || isOn(a.launcher.file, 1, 2) {
		t.Error("its file system is not known")
	}
}

func fileSystemOf(t *testing.T, path string) uint32 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		t.Fatal(err)
	}
	return uint32(st.Type)
}
