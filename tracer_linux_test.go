package mcpsandboxexec_test

import (
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A tracedRun is what came of a program that was stopped before a system call.
type tracedRun struct {
	pid        int
	stopped    bool // it came to that call
	handedOver bool // it became another program, which runs now
	status     unix.WaitStatus
}

// runTo runs a program and stops it before its n-th system call, counted from the
// first one that names the path from. Then it is killed, or goes on after meanwhile
// has returned; only calls that others could see, or that see what others do, count
// then. What it becomes is not traced; the caller waits for that.
//
// Calls of its first thread count, in which the program does all that it does itself.
//
// Only files of cmd may be *os.File: nobody copies what goes through others.
func runTo(t *testing.T, cmd *exec.Cmd, from string, n int, meanwhile func()) tracedRun {
	t.Helper()
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := tracedRun{pid: cmd.Process.Pid}
	cmd.Process.Release()
	options := unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACEEXEC
	begun, calls := false, 0
	for started := false; ; {
		// Not unix.Wait4: Go's scheduler would take more time than all else, and each
		// of some hundred waits is short.
		_, _, err := unix.RawSyscall6(unix.SYS_WAIT4, uintptr(r.pid), uintptr(unsafe.Pointer(&r.status)), unix.WALL, 0, 0, 0)
		if err == unix.EINTR {
			continue
		}
		if err != 0 {
			t.Fatal(err)
		}
		if !r.status.Stopped() {
			return r
		}
		signal := r.status.StopSignal()
		switch {
		case !started:
			// It has just been started.
			started, signal = true, 0
			if err := unix.PtraceSetOptions(r.pid, options); err != nil {
				t.Fatal(err)
			}
		case signal == unix.SIGTRAP|0x80: // a system call
			signal = 0
			number, args, enters := systemCall(t, r.pid)
			if !enters || slices.Contains(runtimeCalls, number) || meanwhile != nil && slices.Contains(ownCalls, number) {
				break
			}
			begun = begun || names(r.pid, args[0], from) || names(r.pid, args[1], from)
			if !begun {
				break
			}
			if calls++; calls != n {
				break
			}
			r.stopped = true
			if meanwhile == nil {
				unix.Kill(r.pid, unix.SIGKILL)
				continue
			}
			meanwhile()
		case signal == unix.SIGTRAP && r.status.TrapCause() == unix.PTRACE_EVENT_EXEC:
			r.handedOver = true
			if err := unix.PtraceDetach(r.pid); err != nil {
				t.Fatal(err)
			}
			return r
		}
		goOn := unix.PtraceSyscall
		if r.stopped {
			goOn = unix.PtraceCont
		}
		if err := goOn(r.pid, int(signal)); err != nil && err != unix.ESRCH {
			t.Fatal(err)
		}
	}
}

// runtimeCalls are what Go's runtime calls for itself, at one time or another.
var runtimeCalls = []uint64{
	unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MPROTECT, unix.SYS_BRK, unix.SYS_PRCTL,
	unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_TGKILL,
	unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
}

// ownCalls are of no concern to others: what is closed or open is this process's own,
// and a file that is being written or read is never changed.
var ownCalls = []uint64{
	unix.SYS_CLOSE, unix.SYS_FCNTL, unix.SYS_FSTAT, unix.SYS_LSEEK, unix.SYS_FCHMOD, unix.SYS_FSYNC,
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READLINKAT, unix.SYS_GETRANDOM,
}

// systemCall tells which call a process enters, if it does not just leave one.
func systemCall(t *testing.T, pid int) (number uint64, args [6]uint64, enters bool) {
	t.Helper()
	var info struct { // ptrace_syscall_info of ptrace(2)
		op     uint8
		_      [3]uint8
		_      uint32
		_      [2]uint64
		number uint64
		args   [6]uint64
		_      uint64
	}
	_, _, err := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(pid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if err != 0 && err != unix.ESRCH {
		t.Fatal(err)
	}
	return info.number, info.args, info.op == unix.PTRACE_SYSCALL_INFO_ENTRY
}

// names reports whether an argument of a call is a path.
func names(pid int, arg uint64, path string) bool {
	text := make([]byte, len(path)+1)
	n, err := unix.PtracePeekData(pid, uintptr(arg), text)
	return err == nil && n == len(text) && string(text) == path+"\x00"
}
