package mcpsandboxexec_test

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

func init() {
	if filepath.Base(os.Args[0]) == "ends-its-first-thread" {
		runtime.LockOSThread() // main runs in the first one then
	}
	scriptPrograms["ends-its-first-thread"] = endFirstThread
}

// endFirstThread goes on in its other threads, until stdin ends.
func endFirstThread() {
	if unix.Gettid() != os.Getpid() {
		fail(99, "this is not the first thread")
	}
	go func() {
		runtime.LockOSThread()
		for !strings.Contains(mustReadFile("/proc/self/stat"), ") Z ") {
		}
		os.Stdout.WriteString("it runs\n")
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
}
