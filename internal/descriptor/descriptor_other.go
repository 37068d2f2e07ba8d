//go:build !linux

package descriptor

import "errors"

// listing is the folder that lists this process's descriptors.
const listing = "/dev/fd"

// Only Linux executes descriptors.

func OwnPath(int) string   { panic("no descriptor can be executed") }
func ChildPath(int) string { return "" }

func closeRangeOnExec() error { return errors.ErrUnsupported }
