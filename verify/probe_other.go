//go:build !linux

package verify

import "syscall"

// dieWithParent does nothing: only Linux has a signal for the death of the
// parent. A probe that hangs outlives a program that is killed.
func dieWithParent(*syscall.SysProcAttr) {}
