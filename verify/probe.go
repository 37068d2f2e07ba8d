package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/descriptor"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/execerr"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/printable"
)

// DefaultProbeTimeout is how long a probe may take. A Codex that is in the page
// cache answers in 10 to 40 ms, and in half a second when it is not.
const DefaultProbeTimeout = 10 * time.Second

// probeOutputLimit is how much a probe may print, in bytes, to each of its
// outputs. The help of Codex 0.171 has 2.4 KB.
const probeOutputLimit = 1 << 20

// StateOption is the launcher's option for the state.
const StateOption = "--sandbox-state-json"

// launcherOptions are the options that a launcher's help lists, sorted.
type launcherOptions []string

// parseHelp finds the options that stand at the start of an indented line. A
// program that prints its arguments, or that knows no such option, has no such
// line.
func parseHelp(help []byte) (options launcherOptions) {
	for line := range bytes.Lines(help) {
		text := bytes.TrimLeft(line, " \t")
		end := bytes.IndexAny(text, " \t\r\n=<[,")
		if end < 0 {
			end = len(text)
		}
		if option := string(text[:end]); len(text) < len(line) && isOption(option) {
			options = append(options, option)
		}
	}
	slices.Sort(options)
	return slices.Compact(options)
}

func isOption(s string) bool {
	name, found := strings.CutPrefix(s, "--")
	return found && name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	})
}

// probe asks a launcher whether it takes a state, in the words that Codex
// itself uses for it. It leaves no process behind, except one that went into a
// session of its own: that cannot be told from a daemon which was there before.
func probe(ctx context.Context, f *launcherFile, env []string, limit time.Duration) (launcherOptions, error) {
	if limit <= 0 {
		limit = DefaultProbeTimeout
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errProbeTimeout)
	defer cancel()
	answer, err := ask(limited, f, env)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, refuseProbe(f.path, answer, err, limit)
	}
	options := parseHelp(answer.stdout)
	if !slices.Contains(options, StateOption) {
		return nil, incapable(f.path, "does not list "+StateOption+" in the help of its sandbox command", answer.stderr)
	}
	return options, nil
}

var (
	errProbeTimeout  = errors.New("the probe took too long")
	errProbeTooLarge = errors.New("the probe printed too much")
)

type probeAnswer struct {
	stdout, stderr []byte
	exited         bool // the launcher itself ended before the limit
}

// ask runs the probe. It is over when the launcher has ended and both of its
// outputs are at their end, or at the latest with ctx. Then its whole process
// group is killed, and only then the launcher is reaped: until then no other
// process can get its number.
func ask(ctx context.Context, f *launcherFile, env []string) (answer probeAnswer, err error) {
	if err := descriptor.CloseOnExec(); err != nil {
		return answer, err
	}
	stdout, stdoutWriter, err := os.Pipe()
	if err != nil {
		return answer, err
	}
	defer stdout.Close()
	defer stdoutWriter.Close()
	stderr, stderrWriter, err := os.Pipe()
	if err != nil {
		return answer, err
	}
	defer stderr.Close()
	defer stderrWriter.Close()

	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return answer, err
	}
	defer stdin.Close()
	path, release, err := f.forProbe(stdin, stdoutWriter, stderrWriter)
	if err != nil {
		return answer, err
	}
	defer release()

	cmd := &exec.Cmd{
		Path: path,
		Args: []string{f.path, "sandbox", StateOption, "{}", "--help"},
		// Without it CLICOLOR_FORCE puts colours into the help, as measured
		// with Codex 0.171, and no option starts its line.
		Env:         append(env[:len(env):len(env)], "NO_COLOR=1"),
		Stdin:       stdin,
		Stdout:      stdoutWriter,
		Stderr:      stderrWriter,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	// The parent-death signal is sent when the thread ends that started the
	// process, so that this goroutine must keep it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dieWithParent(cmd.SysProcAttr)
	err = cmd.Start()
	runtime.KeepAlive(f) // for its descriptor
	if err != nil {
		return answer, &startError{err}
	}
	stdoutWriter.Close()
	stderrWriter.Close()

	type output struct {
		to   *[]byte
		text []byte
		err  error
	}
	outputs := make(chan output, 2)
	read := func(to *[]byte, from *os.File) {
		text, err := io.ReadAll(io.LimitReader(from, probeOutputLimit+1))
		if len(text) > probeOutputLimit {
			err = errProbeTooLarge
		}
		outputs <- output{to, text, err}
	}
	go read(&answer.stdout, stdout)
	go read(&answer.stderr, stderr)
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		waitUnreaped(cmd.Process.Pid)
	}()

	end := exited
	for pending := 3; pending > 0 && err == nil; pending-- {
		select {
		case o := <-outputs:
			*o.to, err = o.text, o.err
		case <-end:
			answer.exited, end = true, nil
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	unix.Kill(cmd.Process.Pid, unix.SIGKILL) // it may have left its group
	<-exited
	status := cmd.Wait()
	reapGroup(cmd.Process.Pid)
	if err == nil {
		err = status
	}
	return answer, err
}

// reapGroup waits for what was killed with a launcher that has ended before, and
// became a child of this process because it is process 1 or a subreaper. A zombie
// of it would be one of the program that takes this one's place.
// One that cannot die, because a file system does not answer, is not waited for.
func reapGroup(group int) {
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		switch pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil); {
		case err == unix.EINTR, pid > 0:
		case err != nil:
			return
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

// waitUnreaped returns when a child has ended, and leaves it a zombie.
func waitUnreaped(pid int) {
	const byPid = 1    // P_PID, of which x/sys has no name on every system
	var info [128]byte // a siginfo_t, of which nothing is read
	for {
		_, _, errno := unix.Syscall6(unix.SYS_WAITID, byPid, uintptr(pid),
			uintptr(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT, 0, 0)
		if errno != unix.EINTR {
			return
		}
	}
}

// A startError is the system's refusal to start the probe.
type startError struct{ error }

func (e *startError) Unwrap() error { return e.error }

func refuseProbe(path string, answer probeAnswer, err error, limit time.Duration) error {
	var start *startError
	var status *exec.ExitError
	switch {
	case errors.Is(err, errProbeTimeout):
		what := "did not answer the probe"
		if answer.exited {
			what = "ended, but a process that it started kept the probe's output open"
		}
		return &Refusal{
			Code:    CodeLauncherProbeTimeout,
			Message: fmt.Sprintf("%s %s for %v", printable.Line(path), what, limit),
			Hint:    "try its command `sandbox --help` by hand; --probe-timeout allows more time",
		}
	case errors.Is(err, errProbeTooLarge):
		return incapable(path, fmt.Sprintf("printed more than %d KiB for its help", probeOutputLimit>>10), nil)
	case errors.As(err, &start):
		return refuseStart(path, start)
	case errors.As(err, &status):
		return incapable(path, "answered the probe with "+status.String(), answer.stderr)
	default:
		return &Refusal{
			Code:    CodeExecFailed,
			Message: fmt.Sprintf("cannot probe %s: %v", printable.Line(path), err),
			Err:     err,
		}
	}
}

// refuseStart tells a file that cannot run from a system that has no room.
func refuseStart(path string, err error) error {
	reason := err
	var inPath *fs.PathError
	if errors.As(err, &inPath) {
		reason = inPath.Err
	}
	r := &Refusal{
		Code:    CodeLauncherNotExecutable,
		Message: fmt.Sprintf("%s: %v", printable.Line(path), reason),
		Hint:    execerr.Hint(err),
		Err:     err,
	}
	switch {
	case errors.Is(err, unix.ETXTBSY):
		r.Code = CodeLauncherChanged
	case execerr.NoRoom(err):
		r.Code = CodeExecFailed
	}
	return r
}

func incapable(path, what string, stderr []byte) *Refusal {
	message := printable.Line(path) + " " + what
	if said := firstLines(stderr); said != "" {
		message += "; it said " + said
	}
	return &Refusal{
		Code:    CodeLauncherIncapable,
		Message: message,
		Hint:    "it must be a full Codex CLI, 0.145 or newer",
	}
}

// firstLines returns up to three lines that are not blank, each quoted, so that
// what a launcher prints stays one line of a message.
func firstLines(text []byte) string {
	const lines, width = 3, 160
	var said []string
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if len(line) > width {
			line = append(line[:width:width], "..."...)
		}
		if said = append(said, strconv.Quote(string(line))); len(said) == lines {
			break
		}
	}
	return strings.Join(said, ", ")
}
