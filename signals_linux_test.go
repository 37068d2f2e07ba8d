package mcpsandboxexec_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What Go changes for signals is in the manual: of the ignored and the blocked
// ones, these stay so.
var (
	staysIgnored = []string{"HUP", "INT", "CONT", "TSTP", "TTIN", "TTOU"}
	staysBlocked = []string{"USR1", "USR2", "PIPE", "ALRM", "CONT", "TSTP", "TTIN", "TTOU", "XCPU", "XFSZ", "VTALRM", "WINCH", "IO", "PWR"}

	allSignals = []string{
		"HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "STKFLT",
		"CHLD", "CONT", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
	}
)

func TestHandOverOfSignals(t *testing.T) {
	for _, test := range []struct {
		field, wrapper string
		stays          []string
	}{
		{"SigIgn:", "with-ignored", staysIgnored},
		{"SigBlk:", "with-blocked", staysBlocked},
	} {
		for _, name := range allSignals {
			h := newHandOver(t, true, "shell-launcher", "grep", "^"+test.field, "/proc/self/status")
			h.through(t, test.wrapper, name)
			if status := h.run(t); status != 0 {
				t.Fatalf("%s: status %v: %s", name, status, &h.stderr)
			}
			set, err := strconv.ParseUint(strings.Fields(h.stdout.String())[1], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			number := unix.SignalNum("SIG" + name)
			if got := set>>(number-1)&1 == 1; got != slices.Contains(test.stays, name) {
				t.Errorf("%s %s: still so in the launcher: %v", test.wrapper, name, got)
			}
		}
	}
}

// A caller's parent-death signal belongs to the thread that it started, which
// must be the one that becomes the launcher, however long the program waits.
func TestHandOverKeepsTheParentDeathSignal(t *testing.T) {
	for range 20 {
		h := newHandOver(t, true, "shell-launcher", "parent-death-signal")
		fifo := filepath.Join(t.TempDir(), "fifo")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		h.cmd.Args[2] = fifo // for the state, which stands there
		h.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGUSR1}
		if err := h.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Opening waits for the program to do so, and it then waits for the text.
		f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(" ")
		f.WriteString("{}")
		f.Close()
		if err := h.cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, &h.stderr)
		}
		if got, want := h.stdout.String(), fmt.Sprintln(int(syscall.SIGUSR1)); got != want {
			t.Fatalf("the signal is %q, not %q", got, want)
		}
	}
}

// A program that is told to end while it probes ends all of the probe, and dies
// of the signal itself.
func TestSignalDuringTheProbe(t *testing.T) {
	for _, test := range []struct {
		signal syscall.Signal
		status syscall.WaitStatus
	}{
		{syscall.SIGTERM, syscall.WaitStatus(syscall.SIGTERM)},
		{syscall.SIGINT, syscall.WaitStatus(syscall.SIGINT)},
		{syscall.SIGHUP, syscall.WaitStatus(syscall.SIGHUP)},
		{syscall.SIGQUIT, syscall.WaitStatus(131 << 8)},
	} {
		h := newHandOver(t, true, "codex-hangs-with-child", "cmd", "exit", "0")
		if err := h.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.waitForRecord(t, "child")
		if err := h.cmd.Process.Signal(test.signal); err != nil {
			t.Fatal(err)
		}
		h.cmd.Wait()
		if status := h.cmd.ProcessState.Sys().(syscall.WaitStatus); status != test.status || h.stderr.Len() > 0 {
			t.Errorf("%v: status %#x, stderr %q", test.signal, status, &h.stderr)
		}
		for _, process := range []string{"probe-pid", "child"} {
			h.expectEnded(t, process)
		}
	}
}

// A program that is killed while a launcher hangs in its probe does not leave
// the launcher behind.
func TestProbeDiesWithTheProgram(t *testing.T) {
	h := newHandOver(t, true, "codex-hangs", "cmd", "exit", "0")
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.waitForRecord(t, "probes") // which is written last
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.cmd.Wait()
	h.expectEnded(t, "probe-pid")
}

// A program that gets orphans for its children, as process 1 of a container does,
// passes none of the probe's on.
func TestProbeLeavesNoChild(t *testing.T) {
	h := newHandOver(t, true, "codex-leaves-child-and-becomes-command", "sh", "-c", `read -r children <"/proc/$$/task/$$/children"; echo "[$children]"`)
	h.through(t, "becomes-subreaper")
	if status := h.run(t); status != 0 || h.stdout.String() != "[]\n" {
		t.Errorf("status %#x, children %q: %s", status, &h.stdout, &h.stderr)
	}
	h.expectEnded(t, "child")
}

// waitForRecord waits until the launcher has written something down.
func (h *handOver) waitForRecord(t *testing.T, name string) {
	t.Helper()
	for range 3000 {
		if text, err := os.ReadFile(filepath.Join(h.record, name)); err == nil && len(text) > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the launcher has not written down %s", name)
}

// expectEnded checks that a process has ended whose number was written down.
func (h *handOver) expectEnded(t *testing.T, name string) {
	t.Helper()
	if out, err := exec.Command("process-ended", filepath.Join(h.record, name)).CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", name, err, out)
	}
}
