package verify

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// open opens the file at the path without reading or executing it, as O_PATH
// does for every kind of file, and returns what the system says of it.
func (f *launcherFile) open() (*unix.Stat_t, error) {
	fd, err := unix.Open(f.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f.file = os.NewFile(uintptr(fd), f.path)
	return settled(func() (*unix.Stat_t, error) {
		var st unix.Stat_t
		return &st, unix.Fstat(fd, &st)
	})
}

// fileClock returns the time that the kernel would give to a change of a file,
// or an earlier one.
func fileClock() time.Time {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
		return time.Now().Add(-10 * time.Millisecond)
	}
	return time.Unix(now.Unix())
}

// chooseHow decides whether the descriptor is executed or the path.
func (f *launcherFile) chooseHow() error {
	opened, err := os.Open(descriptorPath(f.file))
	switch {
	case errors.Is(err, unix.ENOENT): // there is no /proc
		f.byName = true
		return nil
	case errors.Is(err, unix.EACCES):
		return nil // it can be executed and not read, so it is no script
	case err != nil:
		return err
	}
	f.file.Close()
	f.file = opened
	f.byName = !isProgram(opened)
	return nil
}

// descriptorPath is the path of an open file, for this process and for a child
// that has it too.
func descriptorPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// toExecute returns the path to execute in a child of this process that has no
// other descriptors above 2 than this process has.
func (f *launcherFile) toExecute() string {
	if f.byName {
		return f.path
	}
	return descriptorPath(f.file)
}

// content returns a reader of the descriptor that is executed.
func (f *launcherFile) content() (io.Reader, error) {
	if f.byName {
		return nil, errors.New("it is no program for this machine, and others are opened once more by their interpreter")
	}
	return io.NewSectionReader(f.file, 0, math.MaxInt64), nil
}
