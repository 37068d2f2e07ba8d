package verify

import "syscall"

// dieWithParent has a probe that hangs killed when this program is.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
