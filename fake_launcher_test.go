package mcpsandboxexec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// The fake launchers behave as Codex was measured to do (the end-to-end suite
// holds them against it), and write down what they were given: byte for byte,
// into the folder that the variable RECORD names.
//
//	argv, env  each string with a NUL behind it
//	pid        the process id; probe-pid that of a probe
//	fds        one line for each open descriptor: its number and what it is
//	probes     one line for each probe: its descriptors and what stdin held
//	stdin      what stdin held, if RECORD_STDIN is set; it is then empty
//
// Beside codex, each is named for what it does wrong.
var fakeLaunchers = map[string]func(){
	"codex":         func() { fakeCodex(fullHelp, runChild) },
	"codex-0.155.0": func() { fakeCodex(fullHelp, runChild) },
	"codex-0.140.0": func() { fakeCodex("", runChild) },

	// The real one does not do this: it is how a test sees the very process
	// that the shim became.
	"codex-becomes-command": func() { fakeCodex(fullHelp, becomeCommand) },

	"codex-without-extras":                   func() { fakeCodex(stateHelp, runChild) },
	"codex-help-not-indented":                func() { fakeCodex(strings.TrimSpace(stateHelp), runChild) },
	"codex-longer-option":                    func() { fakeCodex("      --sandbox-state-json-file <PATH>\n", runChild) },
	"codex-help-on-stderr":                   func() { probeOnly(func() { os.Stderr.WriteString(fullHelp) }) },
	"codex-help-but-fails":                   func() { probeOnly(func() { os.Stdout.WriteString(fullHelp); os.Exit(3) }) },
	"codex-hangs":                            func() { probeOnly(hang) },
	"codex-hangs-with-child":                 func() { probeOnly(func() { leaveChild(nil); hang() }) },
	"codex-leaves-group":                     func() { probeOnly(func() { leaveGroup(); hang() }) },
	"codex-dies":                             func() { probeOnly(func() { die(syscall.SIGKILL) }) },
	"codex-reads-stdin":                      func() { probeOnly(needStdin) },
	"codex-prints-100mib":                    func() { probeOnly(print100MiB) },
	"codex-child-holds-output":               func() { probeOnly(func() { leaveChild(os.Stdout); os.Stdout.WriteString(fullHelp) }) },
	"codex-leaves-child":                     func() { probing(func() { leaveChild(nil) }); fakeCodex(fullHelp, runChild) },
	"codex-leaves-child-and-becomes-command": func() { probing(func() { leaveChild(nil) }); fakeCodex(fullHelp, becomeCommand) },
	"codex-answers-in-bytes":                 func() { probing(answerInBytes); fakeCodex(fullHelp, runChild) },
	"codex-ignores-signals":                  func() { probeOnly(func() { signal.Ignore(); hang() }) },
	"codex-prints-binary":                    func() { probeOnly(func() { printBinary(""); os.Exit(3) }) },
	"codex-help-in-binary": func() {
		probing(func() { recordProbe(); printBinary(fullHelp); os.Exit(0) })
		fakeCodex(fullHelp, runChild)
	},
	"codex-prints-arguments": func() { fakeCodex(fullHelp, printArguments) },
	"codex-replaces-itself":  func() { probeOnly(func() { replaceItself(); os.Stdout.WriteString(fullHelp) }) },
}

// Some close what they were given, and then answer, if they still can, or hang.
func init() {
	for what, numbers := range map[string][]int{"stdin": {0}, "stdout": {1}, "stderr": {2}, "all": {0, 1, 2}} {
		closing := func(end func()) func() {
			return func() {
				probing(func() {
					recordProbe()
					for _, fd := range numbers {
						unix.Close(fd)
					}
					end()
				})
				fakeCodex(fullHelp, runChild)
			}
		}
		fakeLaunchers["codex-closes-"+what] = closing(func() { os.Stdout.WriteString(fullHelp); os.Exit(0) })
		fakeLaunchers["codex-closes-"+what+"-and-hangs"] = closing(hang)
	}
}

const stateHelp = `
      --sandbox-state-json <JSON>
          Opaque JSON value
`

const fullHelp = `Run commands within a sandbox

Usage: codex sandbox [OPTIONS] [COMMAND]...

Options:
  -c, --config <key=value>
          Override a configuration value
` + stateHelp + `
      --sandbox-state-readable-root <SANDBOX_STATE_READABLE_ROOT>
          Add a readable root to the supplied sandbox state

      --sandbox-state-disable-network
          Disable direct network access in the supplied sandbox state

  -h, --help
          Print help
`

// A run is what a command line asks the launcher for.
type run struct {
	state          string
	readableRoots  []string
	disableNetwork bool
	help           bool
	command        []string
}

// fakeCodex behaves like the real one with that help; an empty help is that of
// a version that knows no option for the state.
func fakeCodex(help string, start func(run)) {
	r := parseLauncherArgs(os.Args[1:], help != "")
	if r.help {
		recordProbe()
		if os.Getenv("CLICOLOR_FORCE") != "" && os.Getenv("NO_COLOR") == "" {
			help = strings.ReplaceAll(help, "  --", "  \x1b[1m--")
		}
		os.Stdout.WriteString(help)
		os.Exit(0)
	}
	record()
	checkState(&r)
	start(r)
}

// probeOnly records a run as every launcher does, so that a test sees one that
// should not have been, and does what it does wrong in the probe.
func probeOnly(wrong func()) {
	probing(func() {
		recordProbe()
		wrong()
		os.Exit(0)
	})
	record()
}

// probing does something if this is a probe.
func probing(do func()) {
	if slices.Contains(os.Args, "--help") {
		do()
	}
}

func fail(status int, format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(status)
}

func parseLauncherArgs(args []string, knowsState bool) (r run) {
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			fail(2, "error: invalid UTF-8 was detected in one or more arguments")
		}
	}
	if len(args) == 0 || args[0] != "sandbox" {
		fail(2, "error: unrecognized subcommand")
	}
	seen := map[string]int{}
	for args = args[1:]; len(args) > 0; args = args[1:] {
		name, value, joined := strings.Cut(args[0], "=")
		take := func() string {
			if joined {
				return value
			}
			if len(args) == 1 || strings.HasPrefix(args[1], "-") {
				fail(2, "error: a value is required for '%s'", name)
			}
			args = args[1:]
			return args[0]
		}
		switch {
		case name == "--sandbox-state-json" && knowsState:
			r.state = take()
		case name == "--sandbox-state-readable-root" && knowsState:
			r.readableRoots = append(r.readableRoots, take())
			continue
		case name == "--sandbox-state-disable-network" && knowsState:
			r.disableNetwork = true
		case name == "--help" || name == "-h":
			r.help = true
			return r
		case name == "--":
			r.command = args[1:]
			return r
		case strings.HasPrefix(name, "-"):
			fail(2, "error: unexpected argument '%s' found", name)
		case name == "help" || name == "uninstall":
			fail(2, "error: %s is a subcommand", name)
		default:
			r.command = args
			return r
		}
		if seen[name]++; seen[name] > 1 {
			fail(2, "error: the argument '%s' cannot be used multiple times", name)
		}
	}
	return r
}

// fakeState is the part of a state that the fake understands.
type fakeState struct {
	permissionProfile struct{ Type, Network string }
	sandboxCwd        string
}

// checkState refuses what the real launcher refuses, with its exit status 1.
func checkState(r *run) {
	bad := func(reason any) { fail(1, "Error: invalid --sandbox-state-json value: %v", reason) }
	var state fakeState
	dec := json.NewDecoder(strings.NewReader(r.state))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		bad("expected an object")
	}
	seen := map[string]bool{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			bad(err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			bad(err)
		}
		known := true
		switch name {
		case "permissionProfile":
			err = json.Unmarshal(value, &state.permissionProfile)
		case "sandboxCwd":
			err = json.Unmarshal(value, &state.sandboxCwd)
		default:
			known = false
		}
		if err != nil {
			bad(err)
		}
		if known && seen[name.(string)] {
			bad(fmt.Sprintf("duplicate field `%s`", name))
		}
		seen[name.(string)] = true
	}
	if _, err := dec.Token(); err != nil {
		bad(err)
	}
	folder, isFile := strings.CutPrefix(state.sandboxCwd, "file://")
	switch {
	case state.permissionProfile.Type == "":
		bad("missing field `permissionProfile`")
	case !isFile:
		bad("sandboxCwd is not a file: URI")
	case len(r.command) == 0:
		fail(1, "Error: sandbox command must not be empty")
	case r.disableNetwork && state.permissionProfile.Type == "disabled":
		fail(1, "Error: --sandbox-state-disable-network cannot be applied to a disabled permission profile")
	}
	if err := os.Chdir(folder); err != nil {
		fail(1, "%v", err)
	}
	if r.disableNetwork || state.permissionProfile.Network == "restricted" {
		os.Setenv("CODEX_SANDBOX_NETWORK_DISABLED", "1")
	}
}

// runChild runs the command as the real launcher does, with the exit status
// that it has for one.
func runChild(r run) {
	cmd := exec.Command(r.command[0], r.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fail(101, "Failed to execvp %s: %v", r.command[0], err)
	}
	cmd.Wait()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		os.Exit(128 + int(status.Signal()))
	}
	os.Exit(status.ExitStatus())
}

func becomeCommand(r run) {
	path, err := exec.LookPath(r.command[0])
	if err == nil {
		err = unix.Exec(path, r.command, os.Environ())
	}
	fail(101, "Failed to execvp %s: %v", r.command[0], err)
}

// needStdin is for a launcher that takes what the command should read.
func needStdin() {
	if text, _ := io.ReadAll(os.Stdin); len(text) == 0 {
		fail(1, "there is nothing on stdin")
	}
	os.Stdout.WriteString(fullHelp)
}

func answerInBytes() {
	recordProbe()
	for _, b := range []byte(fullHelp) {
		os.Stdout.Write([]byte{b})
	}
	os.Exit(0)
}

// printBinary prints every byte there is, with a text in the middle of them.
func printBinary(text string) {
	var bytes []byte
	for b := range 256 {
		bytes = append(bytes, byte(b))
	}
	os.Stderr.Write(bytes)
	os.Stdout.Write(bytes)
	os.Stdout.WriteString("\n" + text)
	os.Stdout.Write(bytes)
}

// printArguments is for a run that can write no record. The environment stands
// behind the arguments.
func printArguments(run) {
	os.Stdout.Write(nulTerminated(launcherArgv()))
	os.Stdout.Write(nulTerminated(os.Environ()))
	os.Exit(7)
}

func print100MiB() {
	line := []byte(stateHelp + strings.Repeat(" ", 1<<20))
	for range 100 {
		if _, err := os.Stdout.Write(line); err != nil {
			os.Exit(1)
		}
	}
}

// leaveChild starts a process that goes on after the launcher, in its group,
// and writes its number down.
func leaveChild(stdout *os.File) {
	child := exec.Command("cmd", "hang")
	child.Stdout = stdout
	if err := child.Start(); err != nil {
		panic(err)
	}
	writeRecord("child", []byte(strconv.Itoa(child.Process.Pid)))
}

// leaveGroup goes from its own process group to that of its parent.
func leaveGroup() {
	group, err := unix.Getpgid(os.Getppid())
	if err == nil {
		err = unix.Setpgid(0, group)
	}
	if err != nil {
		panic(err)
	}
}

// replaceItself puts another program in the place of the symbolic link under
// which the launcher was started.
func replaceItself() {
	self := os.Getenv("SELF")
	if err := os.Symlink("/bin/sh", self+".new"); err != nil {
		panic(err)
	}
	if err := os.Rename(self+".new", self); err != nil {
		panic(err)
	}
}

func record() {
	stdin := ""
	if os.Getenv("RECORD_STDIN") != "" {
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			panic(err)
		}
		stdin = string(text)
	}
	writeRecord("fds", []byte(strings.Join(openDescriptors(), "\n")+"\n"))
	writeRecord("argv", nulTerminated(launcherArgv()))
	writeRecord("env", nulTerminated(os.Environ()))
	writeRecord("pid", []byte(strconv.Itoa(os.Getpid())))
	writeRecord("stdin", []byte(stdin))
}

// recordProbe adds a line, as several probes may be made in one script.
func recordProbe() {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	writeRecord("probe-pid", []byte(strconv.Itoa(os.Getpid())))
	appendRecord("probes", fmt.Appendf(nil, "%q %q stdin %q\n", launcherArgv()[1:], openDescriptors(), stdin))
}

// launcherArgv returns the real arguments: testscript has put the bare name of
// the command into os.Args[0].
func launcherArgv() []string {
	if text, err := os.ReadFile("/proc/self/cmdline"); err == nil {
		return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	}
	return append([]string{os.Getenv("BIN") + "/" + os.Args[0]}, os.Args[1:]...)
}

// openDescriptors lists what was open when this program was started: what Go
// opened since is close-on-exec.
func openDescriptors() (open []string) {
	for fd := range 1024 {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			panic(err)
		}
		open = append(open, fmt.Sprintf("%d %d:%d", fd, st.Dev, st.Ino))
	}
	return open
}

func nulTerminated(strs []string) []byte {
	var b bytes.Buffer
	for _, s := range strs {
		b.WriteString(s)
		b.WriteByte(0)
	}
	return b.Bytes()
}

func writeRecord(name string, text []byte)  { putRecord(name, text, os.O_TRUNC) }
func appendRecord(name string, text []byte) { putRecord(name, text, os.O_APPEND) }

func putRecord(name string, text []byte, how int) {
	folder := os.Getenv("RECORD")
	if folder == "" {
		return
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		panic(err)
	}
	f, err := os.OpenFile(filepath.Join(folder, name), os.O_WRONLY|os.O_CREATE|how, 0o666)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.Write(text); err != nil {
		panic(err)
	}
}
