package descriptor

import (
	"math"

	"golang.org/x/sys/unix"
)

// listing is the folder that lists this process's descriptors.
const listing = "/proc/self/fd"

func closeRangeOnExec() error {
	return unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}
