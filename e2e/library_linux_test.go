//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/exec"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// serverCommand goes from the _meta of a call to a command, as a server in Go
// does it. This process itself is the server here.
func (s *scratch) serverCommand(ctx context.Context, t *testing.T, command ...string) *osexec.Cmd {
	t.Helper()
	raw, _ := metaOf(t, s.request(t, currentRequest, codex(t, current)))
	metadata, err := verify.ParseMeta(raw)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := metadata.Authority(ctx, verify.Options{Env: s.env})
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := exec.Command(ctx, authority, exec.Options{}, command...)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = s.env
	return cmd
}

func TestLibrary(t *testing.T) {
	s := newScratch(t)
	r := run(t, s.serverCommand(deadline(t), t, "sh", "-c", `echo "$PWD"; `+writeBoth+` || exit 7`))
	r.expectStatus(t, 7)
	if r.stdout != s.project+"\n" {
		t.Errorf("stdout %q, want the project's folder", r.stdout)
	}
	s.expectWritten(t, true, false)
}

// waiting is a command that says through a FIFO that it runs, and then waits for
// a line from another one, in a process whose name is the marker.
const waiting = `echo ready >ready; exec -a "$0" bash -c 'read -r line <go; echo "$line" >done' "$0"`

// startWaiting makes the FIFOs and starts what the function makes of waiting.
// When it returns, the command is running; marker is in all argument vectors,
// from the launcher's to the command's.
func (s *scratch) startWaiting(t *testing.T, command func(...string) *osexec.Cmd) (p *process, marker string) {
	t.Helper()
	for _, name := range []string{"ready", "go", "done"} {
		mkfifo(t, filepath.Join(s.project, name))
	}
	marker = "marker-of-" + filepath.Base(s.root)
	p = start(t, command("bash", "-c", waiting, marker))
	// Whatever goes wrong, nothing stays.
	t.Cleanup(func() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
	if got := readFIFO(p.ended, t, filepath.Join(s.project, "ready")); got != "ready\n" {
		t.Fatalf("the command wrote %q", got)
	}
	return p, marker
}

func TestCancellingLeavesNoProcess(t *testing.T) {
	s := newScratch(t)
	ctx, cancel := context.WithCancel(deadline(t))
	p, marker := s.startWaiting(t, func(command ...string) *osexec.Cmd { return s.serverCommand(ctx, t, command...) })
	if found := marked(t, marker); len(found) < 2 {
		t.Fatalf("the launcher and the command should be running, and there is only %q", found)
	}

	cancel()
	p.wait(t).expectStatus(t, 128+9)
	// All were killed by now, but some may not have got to it.
	await(t, func() string {
		if left := marked(t, marker); len(left) > 0 {
			return fmt.Sprintf("there is still %q", left)
		}
		return ""
	})
}

// The reason for the process group: without it the command goes on.
func TestKillingTheLauncherAloneLeavesTheCommand(t *testing.T) {
	s := newScratch(t)
	// A file for its output: waiting for a launcher whose output goes through a
	// pipe is waiting for all who have that pipe.
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p, marker := s.startWaiting(t, func(command ...string) *osexec.Cmd {
		cmd := s.launcher(t, codex(t, current), s.currentState(t), append([]string{"--"}, command...)...)
		cmd.Stdout, cmd.Stderr = null, null
		return cmd
	})
	if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.wait(t).expectStatus(t, 128+9)

	ctx := deadline(t)
	writeFIFO(t, openFIFO(ctx, t, filepath.Join(s.project, "go"), os.O_WRONLY), marker+"\n")
	if got := readFIFO(ctx, t, filepath.Join(s.project, "done")); got != marker+"\n" {
		t.Errorf("the command answered %q, want %q", got, marker)
	}
}

// marked returns the argument vectors that have a marker for an argument.
func marked(t *testing.T, marker string) [][]string {
	t.Helper()
	return slices.DeleteFunc(argvs(t), func(argv []string) bool {
		return !slices.Contains(argv, marker)
	})
}
