package mcpsandboxexec_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/descriptor"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/testprogram"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

func TestMain(m *testing.M) {
	commands := maps.Clone(fakeLaunchers)
	maps.Copy(commands, scriptPrograms)
	testscript.Main(suite{m}, commands)
}

// A suite builds the program first, with `make build`, and writes files that
// scripts execute. A file that is written while tests run may still be open for
// writing in a process that another test is just starting.
//
// The program is a file of its own, and not one more name of the test binary as
// the fakes are: it refuses a launcher that is the same file as itself.
type suite struct{ *testing.M }

// executables are the files that scripts execute, in the folder FILES.
var executables = map[string]executable{
	"group-writable": {text: "#!/bin/sh\nexit 9\n", mode: 0o775},
	"shell-launcher": {text: shellLauncher, mode: 0o755},
	"no-interpreter": {text: "#!/nowhere/sh\n", mode: 0o755},
	"no-program":     {text: "this is no program\n", mode: 0o755},
}

// An executable is a file with a text, in which @FILES@ is the folder of all of
// them, or else a copy of this test program, or of its first bytes.
type executable struct {
	text string
	mode os.FileMode
	copy bool
	size int // of the copy, if it is not whole
}

// write makes the file at a path that is in the folder files or below it.
func (e executable) write(path, files string) error {
	text := []byte(strings.ReplaceAll(e.text, "@FILES@", files))
	if e.copy {
		var err error
		if text, err = testprogram.Own(); err != nil {
			return err
		}
		if e.size > 0 {
			text = text[:e.size]
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, text, e.mode); err != nil {
		return err
	}
	return os.Chmod(path, e.mode) // whatever the umask is
}

// shellLauncher becomes the command. Unlike the fakes it is no Go program, which
// would change by itself what a test looks for.
const shellLauncher = `#!/bin/sh
if [ "$4" = --help ]; then
	echo '      --sandbox-state-json <JSON>'
	exit
fi
shift 4
exec "$@"
`

func (s suite) Run() int {
	if os.Getenv("RECORD") != "" {
		log.Fatalf("a script started %q, which is no fake", os.Args[0])
	}
	unix.Umask(0o022) // what a group can write is refused here and there
	// What the caller of the tests has left open is no part of them.
	if err := descriptor.CloseOnExec(); err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "mcp-sandbox-exec-test")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	for name, file := range executables {
		if err := file.write(filepath.Join(folder, name), folder); err != nil {
			log.Fatal(err)
		}
	}
	build := exec.Command("make", "build", "PROGRAM="+filepath.Join(folder, "mcp-sandbox-exec"))
	if out, err := build.CombinedOutput(); err != nil {
		log.Fatalf("make build: %v\n%s", err, out)
	}
	if err := makeTokenLaunchers(folder); err != nil {
		log.Fatal(err)
	}
	// Not the cache and the records of who runs the tests.
	os.Setenv("XDG_CACHE_HOME", filepath.Join(folder, "cache"))
	os.Setenv("XDG_RUNTIME_DIR", filepath.Join(folder, "run"))
	if err := os.Mkdir(os.Getenv("XDG_RUNTIME_DIR"), 0o700); err != nil {
		log.Fatal(err)
	}
	os.Setenv("PATH", folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return s.M.Run()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setupScript,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status":      scriptStatus,
			"refused":     scriptRefused,
			"handed-over": scriptHandedOver,
			"env-has":     scriptEnvHas,
			"same":        scriptSame,
			"bytes":       scriptBytes,
			"pad":         scriptPad,
			"hash":        scriptHash,
		},
	})
}

// setupScript gives each script a HOME of its own, and puts paths into its JSON
// files: @WORK@ is the script's folder, @BIN@ that of the fake launchers, @FILES@
// that of the executables, @PROGRAM@ the program, and @TRUE@ true(1).
func setupScript(env *testscript.Env) error {
	bin, program, err := findPrograms()
	if err != nil {
		return err
	}
	requests, err := filepath.Abs("testdata/requests")
	if err != nil {
		return err
	}
	truePath, err := exec.LookPath("true")
	if err != nil {
		return err
	}
	work := env.WorkDir
	env.Setenv("HOME", work+"/home")
	env.Setenv("XDG_CACHE_HOME", work+"/home/cache")
	env.Setenv("XDG_RUNTIME_DIR", work+"/home/run")
	env.Setenv("RECORD", work+"/record")
	env.Setenv("BIN", bin)
	env.Setenv("PROGRAM", program)
	env.Setenv("FILES", filepath.Dir(program))
	env.Setenv("TRUE", truePath)
	env.Setenv("REQUESTS", requests)
	env.Setenv("STATE_LIMIT", strconv.Itoa(verify.MaxStateSize()))
	paths := strings.NewReplacer("@WORK@", work, "@BIN@", bin, "@PROGRAM@", program, "@FILES@", filepath.Dir(program), "@TRUE@", truePath)
	files, err := filepath.Glob(work + "/*.json")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(paths.Replace(string(text))), 0o666)
		}
		if err != nil {
			return err
		}
	}
	return os.MkdirAll(work+"/home/run", 0o700) // whatever the umask is, nobody else may write it
}

// findPrograms returns the folder of the fakes and the path of the program.
func findPrograms() (bin, program string, err error) {
	fake, err := exec.LookPath("codex-becomes-command")
	if err != nil {
		return "", "", err
	}
	program, err = exec.LookPath("mcp-sandbox-exec")
	return filepath.Dir(fake), program, err
}

// status N PROGRAM [ARG...] runs a program, which must end with exactly that
// exit status. An argument of the form @FILE stands for the bytes of a file.
func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := runFresh(ts, args[1:]); got != want {
		ts.Fatalf("exit status %d, not %d", got, want)
	}
}

// refused CODE PROGRAM [ARG...] runs a program that must refuse with that code:
// exit status 125 (1 for a check that found another authority), nothing on stdout,
// the refusal and its hint alone on stderr (after notes), no launcher started but
// for its probe, and no command that would have made the file "ran".
func scriptRefused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: refused CODE PROGRAM [ARG...]")
	}
	code, want := args[0], 125
	if code == string(verify.CodeAuthorityChanged) && args[2] == "check" {
		want = 1
	}
	if got := runFresh(ts, args[1:]); got != want {
		ts.Fatalf("exit status %d, not %d", got, want)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("a refusal wrote to stdout: %q", out)
	}
	for _, trace := range []string{"record/argv", "ran"} {
		if _, err := os.Lstat(ts.MkAbs(trace)); !errors.Is(err, os.ErrNotExist) {
			ts.Fatalf("something ran: there is %s (%v)", trace, err)
		}
	}
	asJSON := strings.Contains(strings.Join(args, " "), "--error-format json") || slices.Contains(args, "--error-format=json")
	said := ts.ReadFile("stderr")
	if got, err := refusalCode(said, asJSON); err != nil || got != code {
		ts.Fatalf("the code is %q, not %q (%v): %q", got, code, err, said)
	}
}

// runFresh runs a program after taking away what an earlier one recorded, and
// returns its exit status.
func runFresh(ts *testscript.TestScript, args []string) int {
	ts.Check(os.RemoveAll(ts.MkAbs("record")))
	ts.Check(os.RemoveAll(ts.MkAbs("ran")))
	args = fromFiles(ts, args)
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// fromFiles puts the bytes of a file in the place of each @FILE. The newline
// that a file of a script ends with is not part of it.
func fromFiles(ts *testscript.TestScript, args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if file, ok := strings.CutPrefix(arg, "@"); ok {
			args[i] = strings.TrimSuffix(ts.ReadFile(file), "\n")
		}
	}
	return args
}

// handed-over ARG... compares the argument vector that the launcher got.
func scriptHandedOver(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: handed-over ARG...")
	}
	got := ts.ReadFile("record/argv")
	if want := string(nulTerminated(fromFiles(ts, args))); got != want {
		ts.Fatalf("the launcher got %.2000q\nand not            %.2000q", got, want)
	}
}

// [!] env-has NAME=VALUE looks into the environment that the launcher got. With
// NAME alone, any value does.
func scriptEnvHas(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] env-has NAME[=VALUE]")
	}
	has := slices.ContainsFunc(strings.Split(ts.ReadFile("record/env"), "\x00"), func(entry string) bool {
		return entry == args[0] || !strings.Contains(args[0], "=") && strings.HasPrefix(entry, args[0]+"=")
	})
	if has == neg {
		ts.Fatalf("the environment has %s: %v", args[0], has)
	}
}

// same FILE FILE compares two files, or stdout or stderr, byte for byte.
func scriptSame(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: same FILE FILE")
	}
	if a, b := ts.ReadFile(args[0]), ts.ReadFile(args[1]); a != b {
		ts.Fatalf("%s is %.1000q\n%s is %.1000q", args[0], a, args[1], b)
	}
}

// bytes FILE TEXT writes a text with Go's escapes, for what a script cannot hold.
func scriptBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bytes FILE TEXT")
	}
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(args[1], `"`, `\"`) + `"`)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o666))
}

// pad FILE SIZE puts as many letters in the place of @PAD@ as make the file have
// that size, and takes its last newline off.
func scriptPad(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: pad FILE SIZE")
	}
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	before, after, found := strings.Cut(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "@PAD@")
	padding := size - len(before) - len(after)
	if !found || padding < 0 {
		ts.Fatalf("%s has no @PAD@, or is too large already", args[0])
	}
	text := before + string(bytes.Repeat([]byte("x"), padding)) + after
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o666))
}

// hash FILE puts the SHA-256 of a file into the variable HASH.
func scriptHash(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hash FILE")
	}
	ts.Setenv("HASH", fmt.Sprintf("%x", sha256.Sum256([]byte(ts.ReadFile(args[0])))))
}
