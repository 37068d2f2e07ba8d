package mcpsandboxexec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/environ"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/testcorpus"
)

// The program refuses each input of the table with its code, and runs nothing.
func TestRefused(t *testing.T) {
	cases, err := testcorpus.Read("verify/testdata/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	limitArguments(t)
	places := casePlaces(t)
	for _, c := range cases {
		t.Run(fmt.Sprintf("line-%d", c.Line), func(t *testing.T) {
			t.Parallel()
			newCaseRun(t, c, places).refused(t, c.Code)
			if c.IsCommandLine() {
				return
			}
			// The same in JSON, and with the options for metadata that is absent,
			// which do not help any that is wrong.
			more := []string{"--error-format", "json"}
			if c.Code != "metadata-missing" && c.Kind != "confined" {
				more = append(more, "--allow-unsandboxed")
			}
			if c.Code != "launcher-missing" {
				more = append(more, "--allow-path-launcher", "--default-launcher", "@BIN@/codex")
			}
			newCaseRun(t, c, places, more...).refused(t, c.Code)
		})
	}
}

// limitArguments gives the programs that a test starts 1 MiB for arguments and
// environment, as macOS has it. Linux gives them a quarter of the stack.
func limitArguments(t *testing.T) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &limit); err != nil {
		t.Fatal(err)
	}
	lower := limit
	lower.Cur = min(limit.Cur, 4<<20)
	if err := unix.Setrlimit(unix.RLIMIT_STACK, &lower); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_STACK, &limit); err != nil {
			t.Error(err)
		}
	})
}

// The complete call that the cases spoil is not refused itself, and what runs
// leaves the traces that a refusal must not have.
func TestNotRefused(t *testing.T) {
	places := casePlaces(t)
	for kind, text := range testcorpus.Good {
		r := newCaseRun(t, testcorpus.Case{Kind: kind, Words: []string{text}}, places)
		if status := r.run(t); status != 0 || !slices.Equal(r.traces(), traces) {
			t.Errorf("%s: status %d, traces %q: %s", kind, status, r.traces(), &r.stderr)
		}
	}
}

// casePlaces returns the places that are the same for all cases.
func casePlaces(t *testing.T) map[string]string {
	t.Helper()
	bin, program, err := findPrograms()
	if err != nil {
		t.Fatal(err)
	}
	truePath, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"@BIN@": bin, "@FILES@": filepath.Dir(program), "@PROGRAM@": program, "@TRUE@": truePath,
		"@ODD@": makeOddFiles(t, program), "@RETAINED@": makeRecord(t, bin, program),
	}
}

// makeRecord has the authority of a call written down for the server "server", in a
// folder that it returns.
func makeRecord(t *testing.T, bin, program string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "retained")
	c := testcorpus.Case{Kind: "args", Words: []string{
		"--retain", "--server", "server", "--environment", "here", "--retain-dir", folder, "--request", "request", "--", "cmd", "exit", "0",
	}}
	if r := newCaseRun(t, c, map[string]string{"@BIN@": bin, "@PROGRAM@": program}); r.run(t) != 0 {
		t.Fatal(&r.stderr)
	}
	return folder
}

// makeOddFiles makes files that are no launcher, in a folder that it returns.
func makeOddFiles(t *testing.T, program string) string {
	t.Helper()
	folder := t.TempDir()
	errs := []error{
		os.Link(program, filepath.Join(folder, "twin")),
		unix.Mkfifo(filepath.Join(folder, "fifo"), 0o666),
	}
	for _, mode := range []uint32{0, 0o400, 0o644, 0o666, 0o703, 0o757, 0o777, 0o4757} {
		path := fmt.Sprintf("%s/mode-%04o", folder, mode)
		errs = append(errs, os.WriteFile(path, []byte("is never executed"), 0o666), unix.Chmod(path, mode))
	}
	for name, target := range map[string]string{
		"dangling": "nowhere",
		"folder":   ".",
		"loop":     "loop",
		"self":     program,
		"writable": "mode-0777",
	} {
		errs = append(errs, os.Symlink(target, filepath.Join(folder, name)))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return folder
}

// A caseRun is a run of the program for a case, in a folder of its own.
type caseRun struct {
	cmd            *exec.Cmd
	asJSON         bool // refusals are to be
	stdout, stderr bytes.Buffer
}

// newCaseRun prepares what the head of the table promises. Options come before
// those of the case.
func newCaseRun(t *testing.T, c testcorpus.Case, places map[string]string, options ...string) *caseRun {
	t.Helper()
	work := t.TempDir()
	places = maps.Clone(places)
	places["@WORK@"] = work
	args, texts := caseInput(t, c)
	if !c.IsCommandLine() {
		args = slices.Concat(options, args, []string{"--", "cmd", "mark", "ran"})
	}
	r := &caseRun{cmd: exec.Command(places["@PROGRAM@"]), asJSON: wantsJSON(args)}
	for _, arg := range args {
		r.cmd.Args = append(r.cmd.Args, testcorpus.Replace(arg, places))
	}
	const replacing = "/codex-replaces-itself"
	errs := []error{os.Symlink(places["@BIN@"]+replacing, work+replacing)}
	for name, text := range texts {
		errs = append(errs, os.WriteFile(filepath.Join(work, name), []byte(testcorpus.Replace(text, places)), 0o666))
	}
	r.cmd.Dir = work
	r.cmd.Env = append(environ.Without(os.Environ(), "MCP_SANDBOX_META"),
		"RECORD="+work+"/record", "BIN="+places["@BIN@"], "SELF="+work+replacing, "EMPTY=")
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if c.Kind == "unread" {
		read, write, err := os.Pipe()
		errs = append(errs, err, read.Close())
		t.Cleanup(func() { write.Close() })
		r.cmd.Stdout = write
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return r
}

// caseInput returns the arguments of a case, and the texts of the sources.
func caseInput(t *testing.T, c testcorpus.Case) (args []string, texts map[string]string) {
	t.Helper()
	texts = maps.Clone(testcorpus.Good)
	switch c.Kind {
	case "request", "meta":
		texts[c.Kind] = c.Words[0]
		return []string{"--" + c.Kind, c.Kind}, texts
	case "state", "launcher":
		texts[c.Kind] = c.Words[0]
	case "confined":
		texts["state"] = c.Words[0]
		return []string{"--require-confined", "--state", "state", "--launcher", "launcher"}, texts
	case "path":
		launcher, err := json.Marshal(map[string]string{"codexExecutable": c.Words[0]})
		if err != nil {
			t.Fatal(err)
		}
		texts["launcher"] = string(launcher)
	case "source":
		return []string{"--meta", c.Words[0]}, texts
	case "args", "unread":
		return c.Words, texts
	default:
		t.Fatalf("there is no kind %q", c.Kind)
	}
	return []string{"--state", "state", "--launcher", "launcher"}, texts
}

// wantsJSON looks for the option in what is the program's.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	i := slices.Index(args, "--error-format")
	return i >= 0 && i+1 < len(args) && args[i+1] == "json" || slices.Contains(args, "--error-format=json")
}

// run returns the exit status.
func (r *caseRun) run(t *testing.T) int {
	t.Helper()
	var exit *exec.ExitError
	if err := r.cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return r.cmd.ProcessState.ExitCode()
}

// traces are what a launcher and the command leave behind.
var traces = []string{"record/argv", "ran"}

func (r *caseRun) traces() (found []string) {
	for _, trace := range traces {
		if _, err := os.Lstat(filepath.Join(r.cmd.Dir, trace)); !errors.Is(err, os.ErrNotExist) {
			found = append(found, trace)
		}
	}
	return found
}

// refused runs the program, which must refuse with that code and nothing else.
func (r *caseRun) refused(t *testing.T, code string) {
	t.Helper()
	if status := r.run(t); status != 125 {
		t.Errorf("exit status %d, not 125", status)
	}
	if r.stdout.Len() > 0 {
		t.Errorf("a refusal wrote to stdout: %.1000q", &r.stdout)
	}
	if found := r.traces(); len(found) > 0 {
		t.Errorf("something ran: there is %q", found)
	}
	if got, err := refusalCode(r.stderr.String(), r.asJSON); err != nil || got != code {
		t.Errorf("the code is %q, not %q (%v): %.1000s", got, code, err, &r.stderr)
	}
}

// refusalCode returns the code of a refusal, which may have notes before it and
// one indented line behind it.
func refusalCode(stderr string, asJSON bool) (string, error) {
	said, ended := strings.CutSuffix(stderr, "\n")
	if !ended {
		return "", errors.New("the last line does not end")
	}
	lines := strings.Split(said, "\n")
	if asJSON {
		return jsonRefusalCode(lines)
	}
	for len(lines) > 1 && strings.HasPrefix(lines[0], "mcp-sandbox-exec: note: ") {
		lines = lines[1:]
	}
	refusal, ours := strings.CutPrefix(lines[0], "mcp-sandbox-exec: ")
	code, message, _ := strings.Cut(refusal, ": ")
	if !ours || message == "" {
		return "", errors.New("not a line with a code and a message")
	}
	if len(lines) > 2 || len(lines) == 2 && !strings.HasPrefix(lines[1], "  ") {
		return "", errors.New("more than one indented line behind it")
	}
	return code, nil
}

func jsonRefusalCode(lines []string) (code string, err error) {
	for i, line := range lines {
		var said map[string]string
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			return "", err
		}
		want := []string{"note"}
		if i == len(lines)-1 {
			want = []string{"code", "hint", "message"}
		}
		if names := slices.Sorted(maps.Keys(said)); !slices.Equal(names, want) {
			return "", fmt.Errorf("an object has the members %q, not %q", names, want)
		}
		if code = said["code"]; said["note"] == "" && (code == "" || said["message"] == "") {
			return "", errors.New("an object says nothing")
		}
	}
	return code, nil
}
