package exec

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ownPath returns the path under which this process executes a descriptor.
func ownPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// childPath returns the path under which a child executes a descriptor of this
// process, whatever its own descriptor of that number is; or "" if it could not.
func childPath(fd int) string {
	// A program that may not be inspected, such as one without read permission,
	// hides its descriptors from its children.
	if may, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || may != 1 {
		return ""
	}
	self, err := os.Readlink("/proc/self") // the number that this /proc has for it
	if err != nil {
		return ""
	}
	return fmt.Sprintf("/proc/%s/fd/%d", self, fd)
}

// keepUnwritten sees to it that nobody writes the file until it is executed, and
// from then on the system does. The lease goes with the descriptor. It fails
// with EAGAIN where the file is open for writing. Others than the file's owner
// and root get none, and the file system may know none: then a change of the
// file shows in its times alone, as far as it comes before they are compared.
func keepUnwritten(fd int) error {
	// Somebody who wants to write is announced by a signal, which must be one
	// that ends nothing.
	unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(unix.SIGURG))
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); errors.Is(err, unix.EAGAIN) {
		return unix.ETXTBSY
	}
	return nil
}

func letWrite(fd int) { unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK) }
