package verify

import (
	"errors"
	"io"
	"math"
	"os"
	"slices"
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
	if errors.Is(err, unix.EINVAL) { // more than the limit of numbers
		err = unix.EMFILE
	}
	if err != nil {
		return "", nil, err
	}
	return descriptor.OwnPath(fd), func() { unix.Close(fd) }, nil
}

// lease keeps an open file from being written until it is closed. Somebody who
// wants to write waits then, for 45 s by default. It fails with ETXTBSY if the file
// is open or mapped for writing already.
//
// Others than the owner and root (with CAP_LEASE) get none, and some file systems
// know none: a change shows in the file's times alone then.
func lease(file *os.File) (granted bool, err error) {
	fd := file.Fd()
	// Who wants to write is announced by a signal, which must end nothing.
	unix.FcntlInt(fd, unix.F_SETSIG, int(unix.SIGURG))
	_, err = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
	if errors.Is(err, unix.EAGAIN) && !isOn(file, unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC) {
		return false, unix.ETXTBSY // NFS and SMB say so when they have none to give
	}
	return err == nil, nil
}

// isOn reports whether a file is on a file system of one of these kinds.
func isOn(file *os.File, kinds ...uint32) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(file.Fd()), &st) == nil && slices.Contains(kinds, uint32(st.Type))
}

// hold takes a lease that is f's alone, and that ends with release. Without a path
// that can be opened once more there is none: the file cannot be read.
func (f *launcherFile) hold() (release func(), err error) {
	if f.byName {
		return func() {}, nil
	}
	own, err := os.Open(descriptor.OwnPath(int(f.file.Fd())))
	if err != nil {
		return func() {}, nil
	}
	if _, err := lease(own); err != nil {
		own.Close()
		return nil, err
	}
	return func() { own.Close() }, nil
}

// holdPinned keeps the file from being written as long as it is open, from before
// it is hashed: what is mapped for writing changes without a trace. Where that
// cannot be, only its user and root may be able to write it. A lease on overlayfs or
// FUSE says nothing of the file below.
func (f *launcherFile) holdPinned() (err error) {
	if f.held, err = lease(f.file); err != nil {
		return err
	}
	if f.held && !isOn(f.file, unix.OVERLAYFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC) {
		return nil
	}
	if owner := int(f.owner); owner != 0 && owner != os.Geteuid() || f.mode&0o020 != 0 {
		return errors.New("others than this user and root can change it while it is in use")
	}
	return nil
}

// stillHeld reports whether nobody has asked for the end of the lease since.
func (f *launcherFile) stillHeld() bool {
	kind, err := unix.FcntlInt(f.file.Fd(), unix.F_GETLEASE, 0)
	return err == nil && kind == unix.F_RDLCK
}

// isCacheable: what a script runs can change while the script stays the same.
func (f *launcherFile) isCacheable() bool { return !f.byName }

// content returns a reader of the descriptor that is executed.
func (f *launcherFile) content() (io.ReadCloser, error) {
	if f.byName {
		return nil, errors.New("it is no program for this machine, and others are opened once more by their interpreter")
	}
	if err := f.holdPinned(); err != nil {
		return nil, err
	}
	return io.NopCloser(io.NewSectionReader(f.file, 0, math.MaxInt64)), nil
}
