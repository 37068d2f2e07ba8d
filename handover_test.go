package mcpsandboxexec_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A handOver is a command that was run by a launcher, either started as the
// program would start it, or by the program.
type handOver struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	record         string // the folder with what the launcher got
}

func newHandOver(t *testing.T, throughProgram bool, launcher string, command ...string) *handOver {
	t.Helper()
	_, program, err := findPrograms()
	if err != nil {
		t.Fatal(err)
	}
	if launcher, err = exec.LookPath(launcher); err != nil {
		t.Fatal(err)
	}
	state := fmt.Sprintf(`{"permissionProfile":{"type":"managed"},"sandboxCwd":"file://%s"}`, t.TempDir())
	h := &handOver{record: t.TempDir()}
	if throughProgram {
		args := append([]string{"--state", "env:STATE", "--launcher", "env:LAUNCHER", "--no-cache", "--"}, command...)
		h.cmd = exec.Command(program, args...)
	} else {
		args := append([]string{"sandbox", "--sandbox-state-json", state, "--"}, command...)
		h.cmd = exec.Command(launcher, args...)
	}
	h.cmd.Env = append(os.Environ(), "RECORD="+h.record)
	if throughProgram {
		h.cmd.Env = append(h.cmd.Env, "STATE="+state, fmt.Sprintf(`LAUNCHER={"codexExecutable":%q}`, launcher))
	}
	h.cmd.Stdout, h.cmd.Stderr = &h.stdout, &h.stderr
	return h
}

// eachHandOver runs a test for a run with no more options, and for one that writes down
// the authority, which hands over the same.
func eachHandOver(t *testing.T, test func(t *testing.T, options []string)) {
	t.Run("plain", func(t *testing.T) { test(t, nil) })
	t.Run("retained", func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "records")
		test(t, []string{"--retain", "--server", "s", "--retain-dir", folder})
		if records, err := os.ReadDir(folder); err != nil || len(records) == 0 {
			t.Errorf("nothing was written down: %v", err)
		}
	})
}

// with puts options before those of the program.
func (h *handOver) with(options []string) {
	h.cmd.Args = slices.Insert(h.cmd.Args, 1, options...)
}

// through puts a program before the command, which becomes the command.
func (h *handOver) through(t *testing.T, program string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	h.cmd.Args = slices.Concat([]string{program}, args, []string{h.cmd.Path}, h.cmd.Args[1:])
	h.cmd.Path = path
}

// under puts a shell before the command that sets something up and then becomes
// the command.
func (h *handOver) under(setup string) {
	h.cmd.Args = append([]string{"sh", "-c", setup + `; exec "$@"`, "sh", h.cmd.Path}, h.cmd.Args[1:]...)
	h.cmd.Path = "/bin/sh"
}

func (h *handOver) run(t *testing.T) syscall.WaitStatus {
	t.Helper()
	var exit *exec.ExitError
	if err := h.cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return h.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// The launcher, and a command that it becomes, is the very process that was
// started, and nothing stands between it and the parent.
func TestHandOverKeepsTheProcess(t *testing.T) {
	eachHandOver(t, func(t *testing.T, options []string) {
		h := newHandOver(t, true, "codex-becomes-command", "sh", "-c", `echo $$ $PPID`)
		h.with(options)
		if status := h.run(t); status != 0 {
			t.Fatalf("status %v: %s", status, &h.stderr)
		}
		want := fmt.Sprintf("%d %d\n", h.cmd.Process.Pid, os.Getpid())
		if h.stdout.String() != want {
			t.Errorf("process and parent are %q, not %q", &h.stdout, want)
		}
		if pid, err := os.ReadFile(filepath.Join(h.record, "pid")); err != nil || string(pid) != strconv.Itoa(h.cmd.Process.Pid) {
			t.Errorf("the launcher was the process %s, not %d (%v)", pid, h.cmd.Process.Pid, err)
		}
	})
}

func TestHandOverKeepsTheStatus(t *testing.T) {
	eachHandOver(t, func(t *testing.T, options []string) {
		var commands [][]string
		for _, status := range []string{"0", "1", "7", "125", "126", "127", "255"} {
			commands = append(commands, []string{"cmd", "exit", status})
		}
		for _, signal := range []string{"TERM", "KILL", "SEGV", "HUP", "INT", "PIPE"} {
			commands = append(commands, []string{"sh", "-c", "kill -" + signal + " $$"})
		}
		commands = append(commands, []string{"no-such-program"})
		for _, launcher := range []string{"codex", "codex-becomes-command"} {
			for _, command := range commands {
				direct := newHandOver(t, false, launcher, command...)
				through := newHandOver(t, true, launcher, command...)
				through.with(options)
				want, got := direct.run(t), through.run(t)
				if got != want || through.stderr.String() != direct.stderr.String() {
					t.Errorf("%s %q: status %#x, not %#x; stderr %q, not %q", launcher, command, got, want, &through.stderr, &direct.stderr)
				}
				// A command that dies is seen to die, and not by a status alone.
				if dies := launcher == "codex-becomes-command" && command[0] == "sh"; dies != got.Signaled() {
					t.Errorf("%s %q: died by a signal: %v", launcher, command, got.Signaled())
				}
			}
		}
	})
}

// Stdin, stdout and stderr are the same open files, not copies of what goes
// through them, and there are no others.
func TestHandOverKeepsTheStandardFiles(t *testing.T) {
	eachHandOver(t, func(t *testing.T, options []string) {
		h := newHandOver(t, true, "codex", "cmd", "cat")
		h.with(options)
		var want []string
		for i, to := range []func(*os.File){
			func(f *os.File) { h.cmd.Stdin = f },
			func(f *os.File) { h.cmd.Stdout = f },
			func(f *os.File) { h.cmd.Stderr = f },
		} {
			f, err := os.Create(filepath.Join(t.TempDir(), "file"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			to(f)
			var st unix.Stat_t
			if err := unix.Fstat(int(f.Fd()), &st); err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprintf("%d %d:%d", i, st.Dev, st.Ino))
		}
		extra, err := os.Open("/")
		if err != nil {
			t.Fatal(err)
		}
		defer extra.Close()
		h.cmd.ExtraFiles = []*os.File{extra, extra}
		if status := h.run(t); status != 0 {
			t.Fatalf("status %v", status)
		}
		got, err := os.ReadFile(filepath.Join(h.record, "fds"))
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Fields(strings.ReplaceAll(string(got), "\n", " ")); !slices.Equal(lines, strings.Fields(strings.Join(want, " "))) {
			t.Errorf("descriptors are\n%s\nnot %q", got, want)
		}
	})
}

// What a process has besides stays as the caller had it.
func TestHandOverKeepsTheSurroundings(t *testing.T) {
	eachHandOver(t, func(t *testing.T, options []string) {
		report := `pwd; umask; ulimit -S -a; ulimit -H -a`
		if runtime.GOOS == "linux" {
			// Process group, session and terminal; and the masks of signals, which
			// a child has from the shell: some shells block them while they wait.
			report += `; cut -d' ' -f5-8 /proc/self/stat; grep -E '^Sig(Blk|Ign)' /proc/self/status`
		}
		for _, setup := range []string{
			":",
			"umask 027",
			"ulimit -S -n 200",
			"ulimit -n 300",
			"ulimit -f 100",
			"ulimit -c 0",
			"trap '' HUP",
			"trap '' INT",
		} {
			var reports [2]string
			for i, throughProgram := range []bool{false, true} {
				h := newHandOver(t, throughProgram, "shell-launcher", "sh", "-c", report)
				if throughProgram {
					h.with(options)
				}
				h.under(setup)
				if status := h.run(t); status != 0 {
					t.Fatalf("%s: status %v: %s", setup, status, &h.stderr)
				}
				reports[i] = h.stdout.String()
			}
			if reports[0] != reports[1] || reports[0] == "" {
				t.Errorf("after %s:\n%s\nand through the program:\n%s", setup, reports[0], reports[1])
			}
		}
	})
}

// The environment is the same, entry for entry and in order, but for what was
// read from it.
func TestHandOverKeepsTheEnvironment(t *testing.T) {
	eachHandOver(t, func(t *testing.T, options []string) {
		var environments [2][]byte
		for i, throughProgram := range []bool{false, true} {
			h := newHandOver(t, throughProgram, "codex", "cmd", "exit", "0")
			if throughProgram {
				h.with(options)
			}
			h.cmd.Env = slices.DeleteFunc(h.cmd.Env, func(entry string) bool { return strings.HasPrefix(entry, "RECORD=") })
			record := t.TempDir()
			h.cmd.Env = append(h.cmd.Env, "RECORD="+record, "EMPTY=", "lower=a=b", "BYTES=\xff\n", "no equals sign", "=hidden=x")
			if status := h.run(t); status != 0 {
				t.Fatalf("status %v: %s", status, &h.stderr)
			}
			env, err := os.ReadFile(filepath.Join(record, "env"))
			if err != nil {
				t.Fatal(err)
			}
			environments[i] = bytes.ReplaceAll(env, []byte(record), nil)
		}
		if !bytes.Equal(environments[0], environments[1]) {
			t.Errorf("the environment is\n%q\nand through the program\n%q", environments[0], environments[1])
		}
	})
}

// A refusal whose reader is gone is a refusal, and not a death by a signal.
func TestRefusalWithoutReader(t *testing.T) {
	h := newHandOver(t, true, "codex", "\xff")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	defer write.Close()
	h.cmd.Stderr = write
	if status := h.run(t); status.ExitStatus() != 125 {
		t.Errorf("status %#x", status)
	}
}

// A closed standard descriptor does not become the number of a file that this
// program opens.
func TestHandOverWithClosedStandardFiles(t *testing.T) {
	eachHandOver(t, func(t *testing.T, options []string) {
		for _, closed := range []string{"<&-", ">&-", "2>&-", "<&- >&- 2>&-"} {
			h := newHandOver(t, true, "codex", "cmd", "exit", "7")
			h.with(options)
			h.under("exec " + closed)
			if status := h.run(t); status.ExitStatus() != 7 {
				t.Errorf("%s: status %v: %s", closed, status, &h.stderr)
			}
			fds, err := os.ReadFile(filepath.Join(h.record, "fds"))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(fds)) {
				if number, _, _ := strings.Cut(line, " "); number > "2" || len(number) > 1 {
					t.Errorf("%s: the launcher has descriptor %s", closed, line)
				}
			}
		}
	})
}
