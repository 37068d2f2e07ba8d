package verify

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of sys/proc.h.
const zombie = 5

// findProcess returns the process that has an id now. The error is [fs.ErrNotExist]
// if there is none, or if all that is left of it is its status. The start is a time
// of day here, so that what was before the last boot needs no other mark.
func findProcess(id int) (process, error) {
	p := process{id: id}
	p.machine, _ = unix.Sysctl("kern.uuid") // "" if it cannot be had
	info, err := unix.SysctlKinfoProc("kern.proc.pid", id)
	switch {
	case errors.Is(err, unix.EIO), errors.Is(err, unix.ESRCH): // an answer of no length
		return p, fs.ErrNotExist
	case err != nil:
		return p, err
	case info.Proc.P_stat == zombie:
		return p, fs.ErrNotExist
	}
	p.start = fmt.Sprintf("%d.%06d", info.Proc.P_starttime.Sec, info.Proc.P_starttime.Usec)
	return p, nil
}
