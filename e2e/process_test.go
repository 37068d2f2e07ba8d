//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// deadline ends what hangs. It is far more than anything takes, and no test
// says something about time with it.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// newCommand returns a command that ends with all of its processes at the
// deadline, or when the test is over.
func newCommand(t *testing.T, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(deadline(t), program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// A process is a command that was started.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	err            error
	ended          context.Context // done when it has ended, and been reaped
}

// start starts a command and collects its output, unless that goes elsewhere.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd}
	if cmd.Stdout == nil && cmd.Stderr == nil {
		cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", cmd.Path, err)
	}
	ended, end := context.WithCancelCause(context.Background())
	p.ended = ended
	go func() {
		p.err = cmd.Wait()
		end(errors.New("the process has ended"))
	}()
	t.Cleanup(func() { <-ended.Done() })
	return p
}

// A result is how a process ended.
type result struct {
	status         int // as a shell has it: 128 and more after a signal
	stdout, stderr string
}

func (p *process) wait(t *testing.T) result {
	t.Helper()
	<-p.ended.Done()
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		t.Fatalf("%s: %v\n%s", p.cmd.Path, p.err, p.stderr.String())
	}
	r := result{p.cmd.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.status = 128 + int(status.Signal())
	}
	return r
}

// run runs a command to its end.
func run(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	return start(t, cmd).wait(t)
}

func (r result) expectStatus(t *testing.T, want int) {
	t.Helper()
	if r.status != want {
		t.Errorf("exit status %d, want %d; stdout %q, stderr %q", r.status, want, r.stdout, r.stderr)
	}
}

// expectRefusal checks that the shim itself refused, and why.
func (r result) expectRefusal(t *testing.T, code string) {
	t.Helper()
	if r.status != 125 || r.stdout != "" || !strings.HasPrefix(r.stderr, "mcp-sandbox-exec: "+code+": ") {
		t.Errorf("exit status %d, stdout %q, stderr %q; want a refusal with %s", r.status, r.stdout, r.stderr, code)
	}
}
