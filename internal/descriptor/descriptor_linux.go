package descriptor

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// listing is the folder that lists this process's descriptors.
const listing = "/proc/self/fd"

// OwnPath is the path under which this process executes a descriptor of its own.
func OwnPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// ChildPath is the path under which a child executes a descriptor of this process,
// whatever its own descriptor of that number is: between fork(2) and execve(2) Go
// moves some. It is empty where a child may not look at this process, such as one
// whose program cannot be read, or that has had a child with other credentials.
func ChildPath(fd int) string {
	if may, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || may != 1 {
		return ""
	}
	self, err := os.Readlink("/proc/self") // the number that this /proc has for it
	if err != nil {
		return ""
	}
	return fmt.Sprintf("/proc/%s/fd/%d", self, fd)
}

func closeRangeOnExec() error {
	return unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}
