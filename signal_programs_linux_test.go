package mcpsandboxexec_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	scriptPrograms["with-ignored"] = withIgnored
	scriptPrograms["with-blocked"] = withBlocked
	scriptPrograms["parent-death-signal"] = func() { fmt.Println(parentDeathSignal) }
}

// parentDeathSignal is that of the thread that was started, which is still the
// only one when variables get their values.
var parentDeathSignal = func() (number int32) {
	if err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&number)), 0, 0, 0); err != nil {
		return -1
	}
	return number
}()

// withIgnored NAME PROGRAM [ARG...] becomes a program for which a signal is
// ignored, or with ALL every one that can be.
func withIgnored() {
	if os.Args[1] == "ALL" {
		signal.Ignore()
	} else {
		signal.Ignore(unix.SignalNum("SIG" + os.Args[1]))
	}
	becomeProgram(os.Args[2:])
}

// withBlocked NAME PROGRAM [ARG...] becomes a program for which a signal is
// blocked, or with ALL every one that can be.
func withBlocked() {
	runtime.LockOSThread() // which is the one that the program gets its mask from
	var set unix.Sigset_t
	if os.Args[1] == "ALL" {
		for i := range set.Val {
			set.Val[i]-- // from none to all of them
		}
	} else {
		number := uint(unix.SignalNum("SIG" + os.Args[1]))
		set.Val[0] = 1 << (number - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		fail(99, "with-blocked: %v", err)
	}
	becomeProgram(os.Args[2:])
}

func becomeProgram(argv []string) {
	path, err := exec.LookPath(argv[0])
	if err == nil {
		err = unix.Exec(path, argv, os.Environ())
	}
	fail(99, "%s: %v", argv[0], err)
}
