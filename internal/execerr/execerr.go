// Package execerr says in plain words why the system did not execute a file.
package execerr

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Hint says what is behind an error of execve(2) for a file that exists, or "".
func Hint(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT):
		return "if the file exists, its interpreter is missing (a #! line with CRLF names one that is)"
	case errors.Is(err, unix.ENOEXEC):
		return "it is neither a program for this machine nor a script with a #! line"
	case errors.Is(err, unix.ETXTBSY):
		return "some process has it open for writing; run the command again when it is done"
	case errors.Is(err, unix.E2BIG):
		return "on Linux one argument can have 128 KiB, and all of them with the environment a quarter of the stack limit (ulimit -s)"
	}
	return ""
}

// NoRoom reports whether an error is about the system or the arguments, and
// not about the file.
func NoRoom(err error) bool {
	for _, e := range []error{unix.E2BIG, unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
