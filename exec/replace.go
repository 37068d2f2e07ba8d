package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/descriptor"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/environ"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/execerr"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// execve is a variable so that tests see what would be handed over.
var execve = unix.Exec

// Replace puts the launcher in the place of this process: same process id,
// parent, stdin, stdout and stderr. It returns only if that fails, with a
// [*verify.Refusal].
//
// Descriptors from 3 up are closed, except those in keep. Environment entries
// are passed on as they are. What the Go runtime has changed for signals when
// this process started cannot be given back: of those that were ignored only
// HUP, INT, CONT, TSTP, TTIN and TTOU still are, and most that end a process are
// no longer blocked. A parent-death signal survives if the calling goroutine is
// locked to the thread that has it.
func Replace(a *verify.Authority, o Options, keep []int, env []string, command ...string) error {
	argv, err := Argv(a, o, command...)
	if err != nil {
		return err
	}
	if err := passOnly(keep); err != nil {
		return err
	}
	release, err := a.Hold()
	if err != nil {
		return err
	}
	defer release()
	if err := a.Recheck(); err != nil {
		return err
	}
	path := argv[0]
	if fd := a.Descriptor(); fd >= 0 {
		path = descriptor.OwnPath(fd)
	}
	err = execve(path, argv, env)
	runtime.KeepAlive(a) // for its descriptor
	return refuseLauncher(argv, env, err)
}

// ReplaceUnsandboxed puts command itself in the place of this process, without
// any sandbox. It is for operators who decided that a call without sandbox
// metadata may do so, and for nothing else. A name without a slash is looked
// up in the PATH of env, as execvp(3) does it.
//
// It returns only if it fails, with a [*verify.Refusal]. Where the system refused
// the execution, that wraps an [*io/fs.PathError] with the Op "execve".
func ReplaceUnsandboxed(keep []int, env []string, command ...string) error {
	if err := CheckCommand(command); err != nil {
		return err
	}
	if err := passOnly(keep); err != nil {
		return err
	}
	if strings.Contains(command[0], "/") {
		return refuseExec(command, env, execve(command[0], command, env))
	}
	// Like execvp(3): go on while a folder does not have it, and remember a
	// file that was found and may not be executed. Unlike it, do not give a file
	// without a #! line to a shell.
	err := error(unix.ENOENT)
	for _, candidate := range candidates(command[0], env) {
		tried := execve(candidate, command, env)
		switch {
		case errors.Is(tried, unix.EACCES):
			err = tried
		case !errors.Is(tried, unix.ENOENT) && !errors.Is(tried, unix.ENOTDIR):
			return refuseExec(command, env, tried)
		}
	}
	return refuseExec(command, env, err)
}

// candidates returns the paths at which PATH may have a program of that name.
func candidates(name string, env []string) []string {
	path, found := environ.Lookup(env, "PATH")
	if !found {
		path = "/bin:/usr/bin" // as execvp(3) has it
	}
	var paths []string
	for _, folder := range strings.Split(path, ":") {
		if folder == "" {
			folder = "."
		}
		paths = append(paths, strings.TrimSuffix(folder, "/")+"/"+name)
	}
	return paths
}

// passOnly lets the descriptors 0 to 2 and those in keep through an execve, and
// no others.
func passOnly(keep []int) error {
	if err := descriptor.CloseOnExec(); err != nil {
		return failed(err)
	}
	for _, fd := range keep {
		if err := descriptor.Keep(fd); err != nil {
			return failed(err)
		}
	}
	return nil
}

func failed(err error) *verify.Refusal {
	return &verify.Refusal{Code: verify.CodeExecFailed, Message: err.Error(), Err: err}
}

// refuseLauncher tells a launcher that is being changed from other reasons.
func refuseLauncher(argv, env []string, err error) error {
	r := refuseExec(argv, env, err)
	if errors.Is(err, unix.ETXTBSY) {
		r.Code = verify.CodeLauncherChanged
	}
	return r
}

// refuseExec says what execve refused. Sizes help with E2BIG alone: they are
// what was too large.
func refuseExec(argv, env []string, err error) *verify.Refusal {
	r := &verify.Refusal{
		Code:    verify.CodeExecFailed,
		Message: fmt.Sprintf("cannot execute %q: %v", argv[0], err),
		Err:     &fs.PathError{Op: "execve", Path: argv[0], Err: err},
	}
	if errors.Is(err, unix.E2BIG) {
		r.Message += fmt.Sprintf(": the arguments have %d bytes, the longest %d, and the environment has %d",
			total(argv), longest(argv), total(env))
	}
	if strings.Contains(argv[0], "/") || !errors.Is(err, unix.ENOENT) {
		r.Hint = execerr.Hint(err)
	}
	return r
}

// total counts each string with its final NUL, as the system does.
func total(strs []string) (n int) {
	for _, s := range strs {
		n += len(s) + 1
	}
	return n
}

func longest(strs []string) (n int) {
	for _, s := range strs {
		n = max(n, len(s)+1)
	}
	return n
}
