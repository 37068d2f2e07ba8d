package exec

import (
	"context"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/descriptor"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// outputGrace is how long Wait goes on reading after the launcher has ended
// while something outside its process group keeps the output open.
const outputGrace = 5 * time.Second

// Command returns a command that runs in the sandbox of an authority, ready for
// its Stdin, Stdout, Stderr and Env to be set. The launcher's file is compared
// a last time here, so start it at once, only once, and do not copy it.
//
// Its Args[0] is the launcher's path. On Linux its Path is that of the open
// descriptor of the file that was checked and probed, so that no other one is
// executed; that it is not written in place after this is seen to only with
// [verify.AllowedLauncher.SHA256]. The child must be able to open it: where it
// gets other credentials, another root or namespaces by SysProcAttr, set Path to
// the launcher's path. The path is also what is executed where a child cannot look
// at this process, which Linux forbids from when a child got other credentials.
//
// The launcher gets a process group of its own, and cancelling ctx kills all of
// the group: the launcher alone would leave its helper and the command running.
// Whoever changes SysProcAttr or Cancel takes that over.
//
// The only descriptors that reach the sandbox are 0 to 2 and those in
// ExtraFiles. For that, all others of this process from 3 up are marked
// close-on-exec, which lasts.
//
// The error is a [*verify.Refusal].
func Command(ctx context.Context, a *verify.Authority, o Options, command ...string) (*exec.Cmd, error) {
	argv, err := Argv(a, o, command...)
	if err != nil {
		return nil, err
	}
	if err := descriptor.CloseOnExec(); err != nil {
		return nil, failed(err)
	}
	if err := a.Recheck(); err != nil {
		return nil, err
	}
	path := argv[0]
	if fd := a.Descriptor(); fd >= 0 {
		if open := descriptor.ChildPath(fd); open != "" {
			path = open
		}
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = argv
	// The descriptor must stay open until the command has been started.
	runtime.AddCleanup(cmd, func(*verify.Authority) {}, a)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = outputGrace
	return cmd, nil
}
