package verify

import (
	"errors"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/descriptor"
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
	opened, err := os.Open(descriptor.OwnPath(int(f.file.Fd())))
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

// forProbe returns the path under which the probe executes the file. Where a child
// cannot look at this process, it uses its own descriptor, which must then have a
// number above those that Go moves: it takes some after the highest that it passes
// on, and these are the files.
func (f *launcherFile) forProbe(files ...*os.File) (path string, release func(), err error) {
	if f.byName {
		return f.path, func() {}, nil
	}
	if path := descriptor.ChildPath(int(f.file.Fd())); path != "" {
		return path, func() {}, nil
	}
	highest := uintptr(2)
	for _, file := range files {
		highest = max(highest, file.Fd())
	}
	fd, err := unix.FcntlInt(f.file.Fd(), unix.F_DUPFD_CLOEXEC, int(highest)+10)
	if err != nil {
		return "", nil, err
	}
	return descriptor.OwnPath(fd), func() { unix.Close(fd) }, nil
}

// hold keeps the file from being written, with a lease that goes with the
// descriptor. Somebody who wants to write waits then, for 45 s by default. It
// fails with ETXTBSY if it is open or mapped for writing already.
//
// Others than the owner and root get no lease, and some file systems know none:
// held then stays false, and a change shows in the file's times alone.
func (f *launcherFile) hold() error {
	if f.byName || f.held {
		return nil
	}
	fd := f.file.Fd()
	// Who wants to write is announced by a signal, which must end nothing.
	unix.FcntlInt(fd, unix.F_SETSIG, int(unix.SIGURG))
	_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
	switch {
	case err == nil:
		f.held = true
	case errors.Is(err, unix.EAGAIN) && !f.isRemote():
		return unix.ETXTBSY
	}
	return nil
}

// isRemote reports whether a server has the file. NFS and SMB answer as if it were
// open for writing when they have no lease to give.
func (f *launcherFile) isRemote() bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.file.Fd()), &st); err != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return true
	}
	return false
}

// stillHeld reports whether nobody has asked for the end of the lease since.
func (f *launcherFile) stillHeld() bool {
	kind, err := unix.FcntlInt(f.file.Fd(), unix.F_GETLEASE, 0)
	return err == nil && kind == unix.F_RDLCK
}

func (f *launcherFile) release() {
	if f.held {
		unix.FcntlInt(f.file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		f.held = false
	}
}

// isCacheable: what a script runs can change while the script stays the same.
func (f *launcherFile) isCacheable() bool { return !f.byName }

// content returns a reader of the descriptor that is executed.
func (f *launcherFile) content() (io.ReadCloser, error) {
	if f.byName {
		return nil, errors.New("it is no program for this machine, and others are opened once more by their interpreter")
	}
	// Before it is read: what is mapped for writing changes without a trace.
	if err := f.hold(); err != nil {
		return nil, err
	}
	if owner := f.owner; !f.held && owner != 0 && int(owner) != os.Geteuid() {
		return nil, errors.New("it belongs to another user, who can change it while it is in use")
	}
	return io.NopCloser(io.NewSectionReader(f.file, 0, math.MaxInt64)), nil
}
