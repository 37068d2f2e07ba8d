package descriptor

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// openInheritable opens a file as an inherited one is: without close-on-exec.
func openInheritable(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open(os.DevNull, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if !Inherited(fd) {
		t.Fatalf("descriptor %d does not look inherited", fd)
	}
	return fd
}

func TestCloseOnExec(t *testing.T) {
	for name, mark := range map[string]func() error{
		"whatever this system has": CloseOnExec,
		"one by one":               func() error { return closeListedOnExec(listing) },
	} {
		low, high := openInheritable(t), openInheritable(t)
		if err := mark(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if Inherited(low) || Inherited(high) {
			t.Errorf("%s: a descriptor is not marked", name)
		}
		for fd := range 3 {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC != 0 {
				t.Errorf("%s: descriptor %d is marked", name, fd)
			}
		}
		if err := Keep(high); err != nil || !Inherited(high) || Inherited(low) {
			t.Errorf("%s: keeping one descriptor: %v", name, err)
		}
	}
}

// Where the open descriptors cannot be listed, nothing is pretended.
func TestCloseOnExecWithoutListing(t *testing.T) {
	if err := closeListedOnExec(t.TempDir() + "/none"); err == nil {
		t.Error("no error for a folder that is not there")
	}
}

func TestClosedDescriptor(t *testing.T) {
	fd := openInheritable(t)
	unix.Close(fd)
	if Inherited(fd) {
		t.Error("a closed descriptor looks inherited")
	}
	if err := Keep(fd); err == nil {
		t.Error("a closed descriptor is kept")
	}
}

func TestRoom(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	const lowered = 300
	free := 0
	for fd := range lowered {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			free++
		}
	}
	lower := limit
	lower.Cur = lowered
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lower); err != nil {
		t.Fatal(err)
	}
	enough, again, tooMany := Room(free), Room(free), Room(free+1)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if enough != nil || again != nil || tooMany != unix.EMFILE {
		t.Errorf("as many as are free: %v, and again: %v; one more: %v", enough, again, tooMany)
	}
}
