package exec

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

func codeOf(t *testing.T, err error) verify.Code {
	t.Helper()
	if err == nil {
		return ""
	}
	var refusal *verify.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("not a refusal: %v", err)
	}
	return refusal.Code
}

func TestCheckCommand(t *testing.T) {
	for _, test := range []struct {
		command []string
		says    string // nothing for a command that is fine
	}{
		{nil, "the command is empty"},
		{[]string{""}, "the command is empty"},
		{[]string{"a", "", "é\n"}, ""},
		{[]string{"--", "-x"}, ""},
		{[]string{"\xff"}, "the command's name is not UTF-8"},
		{[]string{"a", "b", "\xed\xa0\x80"}, "argument 2 of the command is not UTF-8"},
		{[]string{"a", "b\x00"}, "argument 1 of the command contains a NUL"},
	} {
		err := CheckCommand(test.command)
		if (err == nil) != (test.says == "") || err != nil && (!strings.Contains(err.Error(), test.says) || codeOf(t, err) != verify.CodeCommandMalformed) {
			t.Errorf("%q: %v", test.command, err)
		}
	}
}

// fakeExecve records instead of replacing the process.
type fakeExecve struct {
	paths     []string
	argv, env []string
	errors    map[string]error // by path; EFAULT for others
}

func (f *fakeExecve) install(t *testing.T) *fakeExecve {
	t.Helper()
	previous := execve
	t.Cleanup(func() { execve = previous })
	execve = func(path string, argv, env []string) error {
		f.paths, f.argv, f.env = append(f.paths, path), argv, env
		if err, ok := f.errors[path]; ok {
			return err
		}
		return unix.EFAULT
	}
	return f
}

func TestReplace(t *testing.T) {
	authority := testAuthority(t)
	kept, err := unix.Open(os.DevNull, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(kept)
	other, err := unix.Dup(kept)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)

	f := (&fakeExecve{}).install(t)
	env := []string{"A=1", "A=2"}
	err = Replace(authority, Options{ReadableRoots: []string{"/a", "/b"}}, []int{kept}, env, "x", "--", "y")
	if codeOf(t, err) != verify.CodeExecFailed || !errors.Is(err, unix.EFAULT) {
		t.Errorf("a refusal of the system: %v", err)
	}
	want := []string{
		testLauncher, "sandbox", "--sandbox-state-json", authority.State(),
		"--sandbox-state-readable-root", "/a", "--sandbox-state-readable-root", "/b", "--", "x", "--", "y",
	}
	if !slices.Equal(f.argv, want) || !slices.Equal(f.paths, []string{testLauncher}) || !slices.Equal(f.env, env) {
		t.Errorf("handed over: %q %q %q", f.paths, f.argv, f.env)
	}
	for fd, open := range map[int]bool{kept: true, other: false} {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || (flags&unix.FD_CLOEXEC == 0) != open {
			t.Errorf("descriptor %d: flags %#x, %v", fd, flags, err)
		}
	}
}

func TestReplaceRefuses(t *testing.T) {
	authority := testAuthority(t)
	f := (&fakeExecve{}).install(t)
	for _, test := range []struct {
		name    string
		options Options
		keep    []int
		command []string
		code    verify.Code
	}{
		{name: "no command", code: verify.CodeCommandMalformed},
		{name: "not UTF-8", command: []string{"\xff"}, code: verify.CodeCommandMalformed},
		{name: "a root that is an option", options: Options{ReadableRoots: []string{"-x"}}, command: []string{"x"}, code: verify.CodeUsage},
		{name: "an empty root", options: Options{ReadableRoots: []string{""}}, command: []string{"x"}, code: verify.CodeUsage},
		{name: "a descriptor that is closed", keep: []int{70000}, command: []string{"x"}, code: verify.CodeExecFailed},
	} {
		err := Replace(authority, test.options, test.keep, nil, test.command...)
		if codeOf(t, err) != test.code {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if f.paths != nil {
		t.Errorf("handed over all the same: %q", f.paths)
	}
}

func TestReplaceUnsandboxed(t *testing.T) {
	for _, test := range []struct {
		name, path string
		errors     map[string]error
		command    string
		paths      []string
		is         error
	}{
		{name: "with a slash", path: "/a", command: "b/c", paths: []string{"b/c"}, is: unix.EFAULT},
		{name: "first that is there", path: "/a:/b/:/c", command: "x", errors: map[string]error{"/a/x": unix.ENOENT}, paths: []string{"/a/x", "/b/x"}, is: unix.EFAULT},
		{name: "an empty folder is this one", path: "/a:", command: "x", errors: map[string]error{"/a/x": unix.ENOTDIR}, paths: []string{"/a/x", "./x"}, is: unix.EFAULT},
		{name: "root", path: "/", command: "x", paths: []string{"/x"}, is: unix.EFAULT},
		{name: "nowhere", path: "/a", command: "x", errors: map[string]error{"/a/x": unix.ENOENT}, paths: []string{"/a/x"}, is: fs.ErrNotExist},
		{name: "not executable, then nowhere", path: "/a:/b", command: "x", errors: map[string]error{"/a/x": unix.EACCES, "/b/x": unix.ENOENT}, paths: []string{"/a/x", "/b/x"}, is: fs.ErrPermission},
	} {
		f := (&fakeExecve{errors: test.errors}).install(t)
		env := []string{"PATH=" + test.path, "PATH=/second"}
		err := ReplaceUnsandboxed(nil, env, test.command, "arg")
		if codeOf(t, err) != verify.CodeExecFailed || !errors.Is(err, test.is) {
			t.Errorf("%s: %v", test.name, err)
		}
		if !slices.Equal(f.paths, test.paths) || !slices.Equal(f.argv, []string{test.command, "arg"}) || !slices.Equal(f.env, env) {
			t.Errorf("%s: tried %q with %q", test.name, f.paths, f.argv)
		}
	}
	(&fakeExecve{errors: map[string]error{"a/x": unix.ENOTDIR}}).install(t)
	if err := ReplaceUnsandboxed(nil, nil, "a/x"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
	f := (&fakeExecve{errors: map[string]error{"/bin/x": unix.ENOENT, "/usr/bin/x": unix.ENOENT}}).install(t)
	if err := ReplaceUnsandboxed(nil, nil, "x"); !errors.Is(err, fs.ErrNotExist) || len(f.paths) != 2 {
		t.Errorf("without PATH: tried %q, %v", f.paths, err)
	}
}

func TestRefuseExec(t *testing.T) {
	argv, env := []string{"/a/b", "cc"}, []string{"D=1"}
	for _, test := range []struct {
		err           error
		message, hint string
	}{
		{unix.E2BIG, "the arguments have 8 bytes, the longest 5, and the environment has 4", "ulimit -s"},
		{unix.ENOENT, "no such file", "interpreter"},
		{unix.ENOEXEC, "exec format error", "#!"},
		{unix.EPERM, "operation not permitted", ""},
	} {
		r := refuseExec(argv, env, test.err)
		if !strings.Contains(r.Message, test.message) || !strings.Contains(r.Hint, test.hint) || (r.Hint == "") != (test.hint == "") {
			t.Errorf("%v: %q, %q", test.err, r.Message, r.Hint)
		}
	}
}

// Cancelling ends the launcher and everything in its process group, also what
// the launcher started and does not wait for.
func TestCommandCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd, err := Command(ctx, testAuthority(t), Options{}, "sh", "-c", "sleep 600 & echo started; wait")
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewReader(stdout)
	if line, err := output.ReadString('\n'); line != "started\n" {
		t.Fatalf("%q, %v", line, err)
	}
	cancel()
	// The end of the output is the end of all who could write to it.
	if _, err := output.ReadString('\n'); err == nil {
		t.Error("there is more output")
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the launcher ended with %v", err)
	}
}

// A child gets stdin, stdout, stderr and ExtraFiles, and nothing that this
// process happens to have open.
func TestCommandDescriptors(t *testing.T) {
	authority := testAuthority(t) // first: the probe marks what is open by then
	leak, err := unix.Open(os.DevNull, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	if err := unix.Dup2(leak, 50); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(50)
	extra, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer extra.Close()
	cmd, err := Command(context.Background(), authority, Options{}, "sh", "-c", "for fd in 3 4 50; do if test -e /dev/fd/$fd; then echo $fd; fi; done")
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{extra}
	output, err := cmd.Output()
	if err != nil || string(output) != "3\n" {
		t.Errorf("open descriptors: %q, %v", output, err)
	}
}

// A launcher that is replaced after it was checked is not started.
func TestCommandAfterChange(t *testing.T) {
	link := t.TempDir() + "/codex"
	if err := os.Symlink(testLauncher, link); err != nil {
		t.Fatal(err)
	}
	metadata, err := verify.ParseMeta([]byte(strings.ReplaceAll(string(MetaOfCall()), testLauncher, link)))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := metadata.Authority(context.Background(), verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/sh", link); err != nil {
		t.Fatal(err)
	}
	if cmd, err := Command(context.Background(), authority, Options{}, "-c", "exit 9"); codeOf(t, err) != verify.CodeLauncherChanged || cmd != nil {
		t.Errorf("after the change: %v, %v", cmd, err)
	}
	(&fakeExecve{}).install(t)
	if err := Replace(authority, Options{}, nil, nil, "-c", "exit 9"); codeOf(t, err) != verify.CodeLauncherChanged {
		t.Errorf("after the change: %v", err)
	}
}
