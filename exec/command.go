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
// a last time here, so start it at once, and only once.
//
// On Linux its Path is that of the open descriptor of the file that was checked
// and probed, and its Args[0] the launcher's path.
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
		if open := childPath(fd); open != "" {
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
