// Package descriptor decides which open files a program that is started gets.
//
// A descriptor above 2 is not part of what a sandboxed command is given, and it
// goes through every sandbox: measured with Codex, a file that was opened for
// writing outside the writable folders, and a connected socket under a policy
// without network, were both usable inside.
package descriptor

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Parse reads the number of a descriptor, in its one spelling: decimal, without
// a sign, leading zeros or blanks.
func Parse(number string) (fd int, err error) {
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != number {
		return -1, fmt.Errorf("%q is not the number of a descriptor", number)
	}
	return int(n), nil
}

// CloseOnExec marks all descriptors of this process from 3 up, so that no
// program that is started from now on gets one of them.
func CloseOnExec() error {
	if closeRangeOnExec() == nil {
		return nil
	}
	// An older kernel, a filter that knows no close_range(2), or another system.
	return closeListedOnExec(listing)
}

// closeListedOnExec does the same one by one, for the descriptors that a folder
// lists. It also marks the one that reads the folder.
func closeListedOnExec(folder string) error {
	dir, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("cannot list the open descriptors: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("cannot list the open descriptors: %w", err)
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd < 3 {
			continue
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil && err != unix.EBADF {
			return fmt.Errorf("cannot mark descriptor %d close-on-exec: %w", fd, err)
		}
	}
	return nil
}

// Inherited reports whether a descriptor was open when this program was
// started. What Go opened since is marked close-on-exec, so this must be asked
// before [CloseOnExec] is called.
func Inherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// Room reports whether n more descriptors can be opened. Where there is none for
// those of its own, the Go runtime ends the program with a trace of its stack.
func Room(n int) error {
	var opened []int
	var err error
	for range n {
		var fd int
		if fd, err = unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0); err != nil {
			break
		}
		opened = append(opened, fd)
	}
	for _, fd := range opened {
		unix.Close(fd)
	}
	return err
}

// Keep takes the mark off again for one descriptor.
func Keep(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
	if errors.Is(err, unix.EBADF) {
		return fmt.Errorf("descriptor %d is not open", fd)
	}
	return err
}
