package mcpsandboxexec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"
)

// A fault is something that goes wrong around one run of the program. Then the
// command runs as if nothing were wrong, or nothing runs and the refusal says
// why: there is no third outcome.
type fault struct {
	name string
	set  setup
	want string // works, or the code of the refusal
	says string // a part of the refusal that shows which fault was met
}

const (
	works     = "works"
	isDryRun  = "is a dry run" // which ends well
	isUnheard = "is unheard"   // a refusal whose words nobody can get
	answers   = "answers"      // with what a subcommand prints
)

// slowLaunchers are started first, and waited for when all else is done.
var slowLaunchers = []fault{
	{"answers after 9 s", fake("codex-answers-late"), works, ""},
	{"ignores every signal and hangs", hanging("codex-ignores-signals"), "launcher-probe-timeout", "did not answer"},
	{"closes stdin and hangs", hanging("codex-closes-stdin-and-hangs"), "launcher-probe-timeout", "did not answer"},
	{"closes stdout and hangs", hanging("codex-closes-stdout-and-hangs"), "launcher-probe-timeout", "did not answer"},
	{"closes stderr and hangs", hanging("codex-closes-stderr-and-hangs"), "launcher-probe-timeout", "did not answer"},
	{"closes all and hangs", hanging("codex-closes-all-and-hangs"), "launcher-probe-timeout", "did not answer"},
	{"leaves a child that holds the output", hanging("codex-child-holds-output"), "launcher-probe-timeout", "kept the probe's output open"},
	{"hangs while signals are blocked", all(hanging("codex-hangs-with-child"), through("with-blocked", "ALL")), "launcher-probe-timeout", "did not answer"},
	{"hangs while signals are ignored", all(hanging("codex-hangs-with-child"), through("with-ignored", "ALL")), "launcher-probe-timeout", "did not answer"},
}

var launchers = []fault{
	{"closes stdin", fake("codex-closes-stdin"), works, ""},
	{"closes stdout", fake("codex-closes-stdout"), "launcher-incapable", "does not list"},
	{"closes stderr", fake("codex-closes-stderr"), works, ""},
	{"closes all", fake("codex-closes-all"), "launcher-incapable", "does not list"},
	{"leaves a child in its group", fake("codex-leaves-child"), works, ""},
	{"answers in single bytes", fake("codex-answers-in-bytes"), works, ""},
	{"dies by a signal", fake("codex-dies"), "launcher-incapable", "signal: killed"},
	{"prints all bytes and fails", fake("codex-prints-binary"), "launcher-incapable", "exit status 3"},
	{"prints its help among all bytes", fake("codex-help-in-binary"), works, ""},

	{"is on a file system without execution", onTmpfs("noexec"), "launcher-not-executable", "permission denied"},
	{"is on a full file system", onTmpfs("full"), works, ""},
	{"is on a read-only file system", onTmpfs("read-only"), works, ""},

	{"is open for writing", busy, "launcher-changed", ""},
	{"is open for writing after the probe", busyAfterProbe, "launcher-changed", ""},

	{"is empty", executableFile("empty"), "launcher-not-executable", "neither a program"},
	{"is a text", executableFile("no-program"), "launcher-not-executable", "neither a program"},
	{"is for another machine", executableFile("other-machine"), "launcher-not-executable", "neither a program"},
	{"is the header of a program", executableFile("elf-header"), "launcher-not-executable", "neither a program"},
	{"is the start of a program", all(executableFile("half-elf"), under("ulimit -c 0")), "launcher-incapable", "signal: "},
	{"has no interpreter", executableFile("no-interpreter"), "launcher-not-executable", "interpreter is missing"},
	{"has an interpreter with CRLF", executableFile("crlf"), "launcher-not-executable", "interpreter is missing"},
	{"has an interpreter without a name", executableFile("bare-line"), "launcher-not-executable", "neither a program"},
	{"has only the start of a line", executableFile("bare-start"), "launcher-not-executable", ""},
	{"has a folder for its interpreter", executableFile("folder-interpreter"), "launcher-not-executable", "permission denied"},
	{"has an interpreter without permission", executableFile("unexecutable"), "launcher-not-executable", ""},
	{"has itself for its interpreter", executableFile("own-interpreter"), "launcher-not-executable", ""},
	{"has an interpreter line that is too long", executableFile("long-interpreter"), "launcher-not-executable", ""},

	{"may only be executed", executableFile("execute-only/codex"), works, ""},
	{"may only be executed, also by root", all(executableFile("execute-only/codex"), through("with-user-rights")), works, ""},
	{"is another's and may only be executed", all(ofSomebodyElse("execute-only-for-others/codex"), through("with-user-rights")), works, ""},
	{"may not be executed", executableFile("not-executable"), "launcher-not-executable", "permission denied"},
	{"is in a folder that may not be entered", all(belowClosedFolder, through("with-user-rights")), "launcher-not-executable", "permission denied"},

	{"has a path of 4000 bytes", atLongPath(4000), works, ""},
	{"has a path that is too long", atPath(strings.Repeat("/x", 2048)), "launcher-not-found", "name too long"},
	{"has a newline in its path", linked("a\nb"), works, ""},
	{"has spaces in its path", linked(" a  b "), works, ""},
	{"has an emoji in its path", linked("😀"), works, ""},
	{"has quotes in its path", linked(`'"$x\`), works, ""},

	{"is a FIFO", special(unix.S_IFIFO), "launcher-not-executable", "not a regular file"},
	{"is a socket", special(unix.S_IFSOCK), "launcher-not-executable", "not a regular file"},
	{"is a folder", atPath("/"), "launcher-not-executable", "not a regular file"},
	{"is a device", atPath("/dev/null"), "launcher-not-executable", "not a regular file"},
	{"is a link to nothing", linkTo("nothing"), "launcher-not-found", "no such file"},
	{"is a link to itself", linkTo("codex"), "launcher-not-found", "too many levels"},
}

// A source that cannot be read is never taken for a call without metadata, so
// that each of these runs has --allow-unsandboxed.
var sources = []fault{
	{"is endless", source("/dev/zero"), "metadata-unreadable", "larger than"},
	{"is a FIFO without an end", fifo(feedSpaces), "metadata-unreadable", "larger than"},
	{"is a FIFO", fifo(feedRequest), works, ""},
	{"is a FIFO with nothing in it", fifo(func(*scene, io.Writer) {}), "metadata-malformed", "empty"},
	{"is a folder", source("/"), "metadata-unreadable", "is a directory"},
	{"is a socket", socketSource, "metadata-unreadable", "no such device"},
	{"is the memory of the program", source("/proc/self/mem"), "metadata-unreadable", "input/output error"},
	{"may not be read", unreadableRequest, unlessRoot("metadata-unreadable"), ""},
	{"may not be read, also by root", all(unreadableRequest, through("with-user-rights")), "metadata-unreadable", "permission denied"},

	{"is descriptor 0", requestOnStdin("-"), works, ""},
	{"is descriptor 0 by its path", requestOnStdin("/proc/self/fd/0"), works, ""},
	{"is descriptor 0, which is closed", all(source("-"), under("exec <&-")), "metadata-malformed", "empty"},
	{"is descriptor 0, which is a folder", all(source("-"), onStdin("/", unix.O_RDONLY)), "metadata-unreadable", "is a directory"},
	{"is descriptor 0, which is for writing", all(source("-"), onStdin("/dev/null", unix.O_WRONLY)), "metadata-unreadable", "bad file descriptor"},
	{"is descriptor 0, which is a terminal that hung up", all(source("-"), hungUpTerminal), "metadata-malformed", "empty"},
	{"is descriptor 1", source("fd:1"), "usage", "the command's output"},
	{"is descriptor 2", source("fd:2"), "usage", "the command's output"},
	{"is descriptor 3", requestOnDescriptor, works, ""},
	{"is descriptor 3, which is closed", source("fd:3"), "metadata-unreadable", "is not open"},
	{"is descriptor 3, which is a folder", all(source("fd:3"), onDescriptor("/", unix.O_RDONLY)), "metadata-unreadable", "is a directory"},
	{"is descriptor 3, which is for writing", all(source("fd:3"), onDescriptor("/dev/null", unix.O_WRONLY)), "metadata-unreadable", "bad file descriptor"},
	{"is descriptor 3, which is only a path", all(source("fd:3"), onDescriptor("/dev/null", unix.O_PATH)), "metadata-unreadable", "bad file descriptor"},
	{"is descriptor 70000", source("fd:70000"), "metadata-unreadable", "is not open"},
}

// Where one of 0 to 2 is closed, Go opens /dev/null there before anything else,
// as the manual says: a dry run then prints to nowhere.
var surroundings = []fault{
	{"stdin is closed", under("exec <&-"), works, ""},
	{"stdout is closed", under("exec >&-"), works, ""},
	{"stderr is closed", under("exec 2>&-"), works, ""},
	{"stdin, stdout and stderr are closed", under("exec <&- >&- 2>&-"), works, ""},
	{"a refusal, and stdin is closed", all(atPath("/nowhere"), under("exec <&-")), "launcher-not-found", ""},
	{"a refusal, and stdout is closed", all(atPath("/nowhere"), under("exec >&-")), "launcher-not-found", ""},
	{"a refusal, and stderr is closed", all(atPath("/nowhere"), under("exec 2>&-")), isUnheard, ""},
	{"a refusal, and all three are closed", all(atPath("/nowhere"), under("exec <&- >&- 2>&-")), isUnheard, ""},
	{"a refusal, and stderr is full", all(atPath("/nowhere"), under("exec 2>/dev/full")), isUnheard, ""},
	{"a dry run, and stdout is closed", all(options("--dry-run"), under("exec >&-")), isDryRun, ""},
	{"a dry run, and stdout is full", all(options("--dry-run"), under("exec >/dev/full")), "output-failed", "no space left"},
	{"a dry run, and stdout is for reading", all(options("--dry-run"), under("exec >&- 1</dev/null")), "output-failed", "bad file descriptor"},
	{"a check, and stdout is full", all(check, under("exec >/dev/full")), "output-failed", "no space left"},
	{"stdin is the terminal", terminal, works, ""},

	{"there is no HOME", without("HOME"), works, ""},
	{"HOME is empty", with("HOME="), works, ""},
	{"HOME is relative", with("HOME=."), works, ""},
	{"HOME is not there", with("HOME=@WORK@/nowhere"), works, ""},
	{"HOME is a file", with("HOME=@FILES@/empty"), works, ""},
	{"HOME is somebody else's", homeOfSomebodyElse, works, ""},
	{"HOME is somebody else's, also for root", all(homeOfSomebodyElse, through("with-user-rights")), works, ""},
	{"the environment is empty", emptyEnvironment, works, ""},
	{"the environment has 10,000 variables", tenThousandVariables, works, ""},
	{"the environment leaves no room for the state", noRoomForState, "exec-failed", "the longest 120001"},
	{"the environment leaves no room for the probe", noRoomForProbe, "exec-failed", "argument list too long"},

	{"the working folder is deleted", under("mkdir d; cd d; rmdir ../d"), works, ""},
	{"the working folder may not be entered", closedWorkingFolder, works, ""},
	{"the working folder may not be entered, also by root", all(through("with-user-rights"), closedWorkingFolder), works, ""},
	{"the umask is 0777", under("umask 0777"), works, ""},
	{"the umask is 0", under("umask 0"), works, ""},
	{"no file may have a size", all(emptyEnvironment, under("ulimit -f 0")), works, ""},

	{"64 descriptors are open", open64, works, ""},
	{"the caller is a subreaper", all(fake("codex-leaves-child", "child"), through("subreaper")), works, ""},
	{"the program is a subreaper", all(fake("codex-leaves-child", "child"), through("becomes-subreaper")), works, ""},
	{"all signals are blocked", through("with-blocked", "ALL"), works, ""},
	{"all signals are ignored", through("with-ignored", "ALL"), works, ""},
}

// The program that the race detector makes must open a library before anything
// else.
var fewDescriptors = []fault{
	{"3 descriptors are allowed", under("ulimit -n 3"), "exec-failed", "too many open files"},
	{"4 descriptors are allowed", under("ulimit -n 4"), "exec-failed", "too many open files"},
	{"8 descriptors are allowed", under("ulimit -n 8"), "exec-failed", "too many open files"},
	{"16 descriptors are allowed", under("ulimit -n 16"), works, ""},
	{"64 descriptors are open, and 16 allowed by the soft limit", all(open64, under("ulimit -S -n 16")), works, ""},
	{"64 descriptors are open, and 16 allowed", all(open64, under("ulimit -n 16")), "exec-failed", "too many open files"},
}

func TestFaults(t *testing.T) {
	var met atomic.Int64
	t.Cleanup(func() { t.Logf("%d faults", met.Load()) })
	caches, surroundings := slices.Clone(caches), slices.Clone(surroundings)
	if os.Geteuid() == 0 {
		caches = append(caches, cachesOfOthers...)
	}
	if !underRace {
		surroundings = append(surroundings, fewDescriptors...)
	}
	var slow []*scene
	for _, f := range slowLaunchers {
		slow = append(slow, f.begin(t))
	}
	for _, group := range []struct {
		name   string
		faults []fault
	}{
		{"the launcher", launchers},
		{"the source", sources},
		{"the surroundings", surroundings},
		{"the cache", caches},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, f := range group.faults {
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					f.begin(t).end(f)
					met.Add(1)
				})
			}
		})
	}
	t.Run("the slow launcher", func(t *testing.T) {
		for i, f := range slowLaunchers {
			t.Run(f.name, func(t *testing.T) {
				slow[i].t = t
				slow[i].end(f)
				met.Add(1)
			})
		}
	})
}

// A scene is where one fault is met: the program with all that it gets, in
// folders of its own. A setup changes it before the program is started.
type scene struct {
	t      *testing.T
	work   string // holds all folders but the next
	record string // what the launcher writes down, and the file "ran" of the command
	files  string // the folder of the executables

	launcher, state string   // as the metadata has them
	source          []string // the options for them; variables if there are none
	subcommand      []string
	alone           bool // the subcommand takes no call
	options         []string
	env             []string
	before          []string // words that become the program
	stdin           *os.File
	extra           []*os.File // from descriptor 3 up
	attr            *syscall.SysProcAttr

	fifos     []string      // which someone may wait for
	meanwhile func()        // runs beside the program
	over      chan struct{} // is closed when that has ended
	prints    bool          // the launcher prints what it would write down
	needs     []string      // what the launcher must have written down
	also      func()        // checks more

	cmd            *exec.Cmd
	argv           []string // that the launcher must get
	stdout, stderr bytes.Buffer
	made           []string // the files below work
}

type setup func(*scene)

// begin starts the program.
func (f fault) begin(t *testing.T) *scene {
	t.Helper()
	bin, program, err := findPrograms()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, work: t.TempDir(), record: t.TempDir(), files: filepath.Dir(program)}
	s.mkdir("home")
	s.mkdir("folder")
	s.state = fmt.Sprintf(`{"permissionProfile":{"type":"managed"},"sandboxCwd":"file://%s"}`, s.work)
	s.launcher = bin + "/codex"
	s.env = []string{"PATH=" + os.Getenv("PATH"), "RECORD=" + s.record, "HOME=" + s.work + "/home", "TMPDIR=" + s.work + "/folder"}
	if options := os.Getenv("GORACE"); options != "" {
		s.setenv("GORACE", options)
	}
	f.set(s)

	env := s.env
	if s.source == nil {
		s.source = []string{"--state", "env:STATE", "--launcher", "env:LAUNCHER"}
		env = append(slices.Clone(env), "STATE="+s.state, "LAUNCHER="+s.launcherObject())
	}
	command := []string{"/bin/sh", "-c", `: >"$0"; exit 7`, s.record + "/ran"}
	s.argv = append([]string{s.launcher, "sandbox", "--sandbox-state-json", s.state, "--"}, command...)
	words := slices.Concat(s.before, []string{program}, s.subcommand, s.source, s.options, []string{"--"}, command)
	if s.alone {
		words = slices.Concat(s.before, []string{program}, s.subcommand)
	}
	s.cmd = exec.Command(words[0], words[1:]...)
	s.cmd.Env, s.cmd.Dir, s.cmd.ExtraFiles, s.cmd.SysProcAttr = env, s.work+"/folder", s.extra, s.attr
	s.cmd.Stdout, s.cmd.Stderr = &s.stdout, &s.stderr
	if s.stdin != nil {
		s.cmd.Stdin = s.stdin
	}
	s.made = s.list()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil { // a test that failed, or was left out
			s.cmd.Process.Signal(syscall.SIGTERM)
			s.wait()
		}
	})
	s.over = make(chan struct{})
	go func() {
		defer close(s.over)
		if s.meanwhile != nil {
			s.meanwhile()
		}
	}()
	return s
}

// wait waits for the program, and what it became, and for what ran beside it.
func (s *scene) wait() error {
	err := s.cmd.Wait()
	for _, path := range s.fifos {
		// Whoever still waits for a reader has one, and then has none.
		if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
			unix.Close(fd)
		}
	}
	<-s.over
	return err
}

// end waits for the program and checks what came of it.
func (s *scene) end(f fault) {
	t := s.t
	t.Helper()
	var exit *exec.ExitError
	if err := s.wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	switch f.want {
	case works:
		s.expectRun()
	case isDryRun:
		s.expectNothing(0)
	case isUnheard:
		s.expectNothing(125)
	case answers:
		if s.stdout.Len() == 0 {
			t.Error("there is no answer")
		}
		s.stdout.Reset()
		s.expectNothing(0)
	default:
		s.expectNothing(125)
		s.expectRefusal(f.want, f.says)
	}
	for _, name := range s.needs {
		if s.recorded(name) == "" {
			t.Errorf("the launcher has not written down %s", name)
		}
	}
	for line := range strings.Lines(s.recorded("probes")) {
		if above2.MatchString(line) || !strings.HasSuffix(line, " stdin \"\"\n") {
			t.Errorf("a probe has more than it should: %s", line)
		}
	}
	for _, process := range []string{"pid", "probe-pid", "child"} {
		if pid := s.recorded(process); pid != "" && !awaitEnd(pid) {
			t.Errorf("process %s (%s) goes on", pid, process)
		}
	}
	for _, file := range s.list() {
		if !slices.Contains(s.made, file) {
			t.Errorf("there is a new file %s", file)
		}
	}
	if s.also != nil {
		s.also()
	}
}

// above2 finds a descriptor from 3 up in what a launcher writes down.
var above2 = regexp.MustCompile(`(?m)(^|")([3-9]|\d\d+) \d+:\d+`)

func (s *scene) expectRun() {
	s.t.Helper()
	if status := s.cmd.ProcessState.ExitCode(); status != 7 || s.stderr.Len() > 0 {
		s.t.Fatalf("status %d, stderr %.1000q", status, &s.stderr)
	}
	want := string(nulTerminated(s.argv))
	if s.prints {
		if !strings.HasPrefix(s.stdout.String(), want) {
			s.t.Errorf("the launcher got %.2000q\nand not            %.2000q", &s.stdout, want)
		}
		return
	}
	if got := s.recorded("argv"); got != want {
		s.t.Errorf("the launcher got %.2000q\nand not            %.2000q", got, want)
	}
	if fds := s.recorded("fds"); above2.MatchString(fds) || fds == "" {
		s.t.Errorf("the launcher has the descriptors\n%s", fds)
	}
	if s.stdout.Len() > 0 {
		s.t.Errorf("stdout is %q", &s.stdout)
	}
	if !s.ran() {
		s.t.Error("the command has not run")
	}
}

func (s *scene) expectNothing(status int) {
	s.t.Helper()
	if got := s.cmd.ProcessState.ExitCode(); got != status {
		s.t.Errorf("status %d, not %d; stderr %.1000q", got, status, &s.stderr)
	}
	if s.stdout.Len() > 0 {
		s.t.Errorf("stdout is %q", &s.stdout)
	}
	if s.ran() || s.recorded("argv") != "" {
		s.t.Error("something ran")
	}
}

// expectRefusal checks what a person reads: one line, and perhaps an indented
// one behind it, with nothing in them that a terminal could take for a command.
func (s *scene) expectRefusal(code, says string) {
	s.t.Helper()
	said := s.stderr.String()
	lines := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
	printable := func(line string) bool {
		return !strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
	}
	switch {
	case !strings.HasPrefix(said, "mcp-sandbox-exec: "+code+": ") || !strings.Contains(said, says):
		s.t.Errorf("not a refusal with the code %s that says %q: %.1000q", code, says, said)
	case len(lines) > 2 || len(lines) == 2 && !strings.HasPrefix(lines[1], "  "):
		s.t.Errorf("a refusal is one line, and an indented one behind it: %q", lines)
	case !printable(strings.Join(lines, "")):
		s.t.Errorf("a refusal is a text: %q", said)
	}
}

// recorded returns what the launcher has written down, whatever its umask was.
func (s *scene) recorded(name string) string {
	path := filepath.Join(s.record, name)
	os.Chmod(path, 0o600)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s *scene) ran() bool {
	_, err := os.Lstat(s.record + "/ran")
	return err == nil
}

// list names all files below work, except those of a cache in HOME.
func (s *scene) list() (files []string) {
	filepath.WalkDir(s.work, func(path string, _ fs.DirEntry, err error) error {
		if path == s.work+"/home/.cache" {
			return fs.SkipDir
		}
		files = append(files, path)
		return nil // what cannot be read is empty
	})
	return files
}

func (s *scene) launcherObject() string {
	object, err := json.Marshal(map[string]string{"codexExecutable": s.launcher})
	s.check(err)
	return string(object)
}

// request writes a whole request to a file.
func (s *scene) request() (path string) {
	path = s.work + "/request.json"
	s.check(os.WriteFile(path, []byte(s.requestText()), 0o666))
	return path
}

func (s *scene) requestText() string {
	return fmt.Sprintf(`{"params":{"_meta":{"codex/sandbox-state":%s,"codex/sandbox-launcher":%s}}}`, s.state, s.launcherObject())
}

func (s *scene) mkdir(name string) (path string) {
	path = filepath.Join(s.work, name)
	s.check(os.MkdirAll(path, 0o755)) // whatever the umask is, not for everybody
	return path
}

// open opens a file until the scene is over.
func (s *scene) open(path string, mode int) *os.File {
	s.t.Helper()
	// Not os.OpenFile, which knows no O_PATH.
	fd, err := unix.Open(path, mode|unix.O_CLOEXEC|unix.O_NOCTTY, 0o666)
	s.check(err)
	return s.file(fd)
}

func (s *scene) file(fd int) *os.File {
	f := os.NewFile(uintptr(fd), "file")
	s.t.Cleanup(func() { f.Close() })
	return f
}

func (s *scene) mkfifo() (path string) {
	path = s.work + "/fifo"
	s.check(unix.Mkfifo(path, 0o666))
	s.fifos = append(s.fifos, path)
	return path
}

func (s *scene) setenv(name, value string) {
	s.unsetenv(name)
	s.env = append(s.env, name+"="+value)
}

func (s *scene) unsetenv(name string) {
	s.env = slices.DeleteFunc(s.env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}

func (s *scene) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// Setups that any fault may need.

func all(setups ...setup) setup {
	return func(s *scene) {
		for _, set := range setups {
			set(s)
		}
	}
}

// through puts a program before the others that becomes them.
func through(words ...string) setup {
	return func(s *scene) { s.before = append(s.before, words...) }
}

// under puts a shell before them that sets something up.
func under(script string) setup {
	return through("/bin/sh", "-c", script+`; exec "$@"`, "sh")
}

func options(words ...string) setup {
	return func(s *scene) { s.options = append(s.options, words...) }
}

// alone takes a subcommand that is about no call.
func alone(words ...string) setup {
	return func(s *scene) { s.subcommand, s.alone = words, true }
}

func check(s *scene) { s.subcommand = []string{"check"} }

func with(entry string) setup {
	return func(s *scene) {
		name, value, _ := strings.Cut(strings.NewReplacer("@WORK@", s.work, "@FILES@", s.files).Replace(entry), "=")
		s.setenv(name, value)
	}
}

func without(name string) setup {
	return func(s *scene) { s.unsetenv(name) }
}

// Setups for launchers.

func atPath(path string) setup {
	return func(s *scene) { s.launcher = path }
}

// fake takes one of the fakes, which must have been probed, and have written
// down what else is named.
func fake(name string, needs ...string) setup {
	return func(s *scene) {
		s.launcher = filepath.Join(filepath.Dir(s.launcher), name)
		s.needs = append(needs, "probes")
	}
}

// hanging takes a fake that does not answer. Its time is as long as what it does
// before could need on a busy machine, and others are waited for longer.
func hanging(name string) setup {
	needs := []string{"probe-pid"}
	if strings.Contains(name, "child") {
		needs = append(needs, "child")
	}
	return all(fake(name, needs...), options("--probe-timeout", "8s"))
}

// executableFile takes one of the executables.
func executableFile(name string) setup {
	return func(s *scene) { s.launcher = filepath.Join(s.files, name) }
}

func ofSomebodyElse(name string) setup {
	return func(s *scene) {
		executableFile(name)(s)
		if os.Getuid() == 0 {
			s.giveAway(s.launcher)
		}
	}
}

// giveAway makes a file somebody else's, which root can.
func (s *scene) giveAway(path string) {
	s.t.Helper()
	if err := os.Chown(path, 65534, 65534); err != nil {
		s.leaveOut("there is nobody else: %v", err)
	}
}

func belowClosedFolder(s *scene) {
	folder := s.mkdir("closed")
	s.check(os.Symlink(s.launcher, folder+"/codex"))
	s.launcher = folder + "/codex"
	s.check(os.Chmod(folder, 0))
	s.t.Cleanup(func() { os.Chmod(folder, 0o700) })
}

// linked puts a folder with a link to the launcher into its path.
func linked(folder string) setup {
	return func(s *scene) {
		path := s.mkdir(folder) + "/codex"
		s.check(os.Symlink(s.launcher, path))
		s.launcher = path
	}
}

func atLongPath(size int) setup {
	return func(s *scene) {
		var folder string
		for rest := size - len(s.work) - len("/") - len("/codex"); rest > 0; rest -= 200 {
			if rest <= 200 {
				folder += strings.Repeat("x", rest)
				break
			}
			folder += strings.Repeat("x", 199) + "/"
		}
		linked(folder)(s)
		if len(s.launcher) != size {
			s.t.Fatalf("the path has %d bytes", len(s.launcher))
		}
	}
}

func linkTo(target string) setup {
	return func(s *scene) {
		s.launcher = s.work + "/codex"
		s.check(os.Symlink(target, s.launcher))
	}
}

func special(kind uint32) setup {
	return func(s *scene) {
		s.launcher = s.work + "/codex"
		s.check(unix.Mknod(s.launcher, kind|0o755, 0))
	}
}

// onTmpfs puts the launcher on a file system of that kind, with HOME and the
// working folder.
func onTmpfs(kind string) setup {
	return func(s *scene) {
		s.needMounts()
		folder := s.mkdir("mount")
		through("with-tmpfs", kind, folder, s.launcher)(s)
		s.launcher = folder + "/codex"
		s.setenv("HOME", folder)
		s.setenv("TMPDIR", folder)
		s.attr = ownMounts()
	}
}

// ownMounts is for a process that may mount what it alone sees.
func ownMounts() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// needMounts is for a test that needs mounts of its own.
func (s *scene) needMounts() {
	s.t.Helper()
	cmd := exec.Command("with-tmpfs", "read-only", s.mkdir("mount"), s.files+"/shell-launcher", "true")
	cmd.SysProcAttr = ownMounts()
	if out, err := cmd.CombinedOutput(); err != nil {
		s.leaveOut("this user cannot mount: %v: %s", err, out)
	}
}

// leaveOut skips a test that this system does not let this user make. Where all
// tests must run, that is a failure.
func (s *scene) leaveOut(format string, args ...any) {
	s.t.Helper()
	if os.Getenv("CI") != "" {
		s.t.Fatalf(format, args...)
	}
	s.t.Skipf(format, args...)
}

// busy holds the launcher open for writing in this process.
func busy(s *scene) {
	executableFile("busy")(s)
	s.open(s.launcher, unix.O_WRONLY)
	s.needTextBusy()
}

// busyAfterProbe does so while the probe waits for it.
func busyAfterProbe(s *scene) {
	busy(s)
	executableFile("busy-at-the-hand-over")(s)
	fifo := s.mkfifo()
	s.setenv("BUSY", fifo)
	s.meanwhile = func() {
		f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err != nil {
			s.t.Error(err)
			return
		}
		defer f.Close()
		launcher, err := os.OpenFile(s.launcher, os.O_WRONLY, 0)
		if err != nil {
			s.t.Error(err)
			return
		}
		s.t.Cleanup(func() { launcher.Close() })
		f.WriteString("go on\n")
	}
}

// needTextBusy is for a test that needs a kernel which does not execute a file that
// is open for writing. Linux 6.11 and 6.12 do.
func (s *scene) needTextBusy() {
	s.t.Helper()
	if err := exec.Command(s.launcher).Run(); !errors.Is(err, unix.ETXTBSY) {
		s.leaveOut("a file that is open for writing is executed: %v", err)
	}
}

// Setups for sources.

func source(spelled string) setup {
	return func(s *scene) {
		s.source = []string{"--request", spelled}
		s.options = append(s.options, "--allow-unsandboxed")
	}
}

// fifo makes a FIFO the source. Its writer is there until feed returns.
func fifo(feed func(*scene, io.Writer)) setup {
	return func(s *scene) {
		path := s.mkfifo()
		source(path)(s)
		s.meanwhile = func() {
			// This waits for the program to open it.
			if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				feed(s, f)
				f.Close()
			}
		}
	}
}

func feedRequest(s *scene, to io.Writer) { io.WriteString(to, s.requestText()) }

func feedSpaces(_ *scene, to io.Writer) {
	spaces := bytes.Repeat([]byte(" "), 1<<16)
	for {
		if _, err := to.Write(spaces); err != nil {
			return // the reader is gone
		}
	}
}

func socketSource(s *scene) {
	path := s.work + "/socket"
	s.check(unix.Mknod(path, unix.S_IFSOCK|0o600, 0))
	source(path)(s)
}

func unreadableRequest(s *scene) {
	path := s.request()
	s.check(os.Chmod(path, 0))
	source(path)(s)
}

// unlessRoot is the code for an ordinary user of what works for root.
func unlessRoot(code string) string {
	if os.Getuid() == 0 {
		return works
	}
	return code
}

func requestOnStdin(spelled string) setup {
	return func(s *scene) {
		source(spelled)(s)
		onStdin(s.request(), unix.O_RDONLY)(s)
	}
}

func onStdin(path string, mode int) setup {
	return func(s *scene) { s.stdin = s.open(path, mode) }
}

func requestOnDescriptor(s *scene) {
	source("fd:3")(s)
	onDescriptor(s.request(), unix.O_RDONLY)(s)
}

// onDescriptor opens a file as descriptor 3.
func onDescriptor(path string, mode int) setup {
	return func(s *scene) { s.extra = []*os.File{s.open(path, mode)} }
}

func hungUpTerminal(s *scene) {
	master, slave := s.openTerminal()
	master.Close()
	s.stdin = slave
}

// Setups for surroundings.

// terminal starts the program in a session of its own, on a terminal.
func terminal(s *scene) {
	_, s.stdin = s.openTerminal()
	s.attr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}

func (s *scene) openTerminal() (master, slave *os.File) {
	s.t.Helper()
	master = s.open("/dev/ptmx", unix.O_RDWR)
	s.check(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	s.check(err)
	return master, s.open(fmt.Sprintf("/dev/pts/%d", number), unix.O_RDWR)
}

func homeOfSomebodyElse(s *scene) {
	if os.Getuid() != 0 {
		s.setenv("HOME", "/root")
		return
	}
	home := s.work + "/home"
	s.check(os.Chmod(home, 0o700))
	s.giveAway(home)
}

// emptyEnvironment takes a launcher that needs to be told nothing, and writes no
// file.
func emptyEnvironment(s *scene) {
	fake("codex-prints-arguments")(s)
	s.prints, s.needs = true, nil
	s.source = []string{"--request", s.request()}
	s.env = []string{}
	s.also = func() {
		if s.before == nil && s.stdout.String() != string(nulTerminated(s.argv)) {
			s.t.Errorf("the launcher got an environment: %q", &s.stdout)
		}
	}
}

func tenThousandVariables(s *scene) {
	var want []string
	for number := range 10_000 {
		want = append(want, fmt.Sprintf("VARIABLE_%d=%d", number, number))
	}
	s.env = append(s.env, want...)
	s.also = func() {
		got := strings.Split(s.recorded("env"), "\x00")
		got = slices.DeleteFunc(got, func(entry string) bool { return !strings.HasPrefix(entry, "VARIABLE_") })
		if !slices.Equal(got, want) {
			s.t.Errorf("the launcher got %d of %d variables", len(got), len(want))
		}
	}
}

// noRoomForState fills most of the 256 KiB that arguments and environment can
// have together under such a limit of the stack. The probe has no state.
func noRoomForState(s *scene) {
	s.state = `{"x":"` + strings.Repeat("x", 120_000-len(`{"x":""}`)) + `"}`
	s.source = []string{"--request", s.request()}
	for number := range 20 {
		s.setenv(fmt.Sprintf("VARIABLE_%d", number), strings.Repeat("x", 10_000))
	}
	s.needs = []string{"probes"}
	under("ulimit -S -s 1024")(s)
}

// noRoomForProbe takes the room away when the program is there, and waits for its
// source. Before it has opened that, execve(2) could still set the limit back.
func noRoomForProbe(s *scene) {
	for number := range 10 {
		s.setenv(fmt.Sprintf("VARIABLE_%d", number), strings.Repeat("x", 100_000))
	}
	fifo(func(s *scene, to io.Writer) {
		var limit unix.Rlimit
		pid := s.cmd.Process.Pid
		err := unix.Prlimit(pid, unix.RLIMIT_STACK, nil, &limit)
		limit.Cur = 1 << 20
		if err == nil {
			err = unix.Prlimit(pid, unix.RLIMIT_STACK, &limit, nil)
		}
		if err != nil {
			s.t.Error(err)
		}
		feedRequest(s, to)
	})(s)
}

func closedWorkingFolder(s *scene) {
	folder := s.mkdir("folder/closed")
	s.t.Cleanup(func() { os.Chmod(folder, 0o700) })
	under("cd closed; chmod 0 .")(s)
}

// open64 gives the program 64 descriptors: files, two sockets and a pipe.
func open64(s *scene) {
	path := s.request()
	for range 60 {
		s.extra = append(s.extra, s.open(path, unix.O_RDWR))
	}
	sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	s.check(err)
	var pipe [2]int
	s.check(unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	for _, fd := range append(sockets[:], pipe[:]...) {
		s.extra = append(s.extra, s.file(fd))
	}
}
