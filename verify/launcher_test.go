package verify

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/testprogram"
)

func TestParseHelp(t *testing.T) {
	for _, test := range []struct {
		help string
		want bool
	}{
		{"  --option", true},
		{"  --option\n", true},
		{"\t--option <JSON>\n", true},
		{"Options:\r\n      --option=<JSON>\r\n", true},
		{"  --option[=<JSON>]\n", true},
		{"--option <JSON>\n", false},
		{"sandbox --option {} --help\n", false},
		{"  use --option\n", false},
		{"  --options\n", false},
		{"  --option-more\n", false},
		{"  --opt\n", false},
		{"  \x1b[1m--option\x1b[0m\n", false},
		{"", false},
	} {
		if got := slices.Contains(parseHelp([]byte(test.help)), "--option"); got != test.want {
			t.Errorf("%q lists it: %v", test.help, got)
		}
	}
}

func TestFirstLines(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"\n \n", ""},
		{"one", `"one"`},
		{"\none\n\n two\t\nthree\nfour\n", `"one", "two", "three"`},
		{"a\x1b[1m\xff\u2028b", `"a\x1b[1m\xff\u2028b"`},
		{strings.Repeat("x", 200), `"` + strings.Repeat("x", 160) + `..."`},
	} {
		if got := firstLines([]byte(test.text)); got != test.want {
			t.Errorf("%q: %s", test.text, got)
		}
	}
}

func TestFindOnPath(t *testing.T) {
	top := t.TempDir()
	for _, folder := range []string{"empty", "one", "two"} {
		if err := os.Mkdir(filepath.Join(top, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"one/codex", "two/codex"} {
		if err := os.WriteFile(filepath.Join(top, file), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(top, "one"))
	for _, test := range []struct{ path, want string }{
		{"", ""},
		{"TOP/empty", ""},
		{":.:./:one", ""},
		{"TOP/empty:TOP/two:TOP/one", "TOP/two/codex"},
		{"../two:TOP/one/", "TOP/one/codex"},
		{"/nowhere:TOP/one/codex:TOP/two//", "TOP/two/codex"},
	} {
		env := []string{"OTHER=x", "PATH=" + strings.ReplaceAll(test.path, "TOP", top), "PATH=" + top + "/two"}
		if got := findOnPath(env); got != strings.ReplaceAll(test.want, "TOP", top) {
			t.Errorf("%q finds %q", test.path, got)
		}
	}
}

// Operator's options act where metadata is absent, and nowhere else.
func TestChooseLauncher(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(folder+"/codex", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + folder}
	for _, test := range []struct {
		name           string
		named          string
		options        Options
		path           string
		choice         Choice
		code           Code
		messageHas     string
		hintHasOptions bool
	}{
		{name: "named", named: "/a", options: Options{DefaultLauncher: "/b", AllowPathLauncher: true}, path: "/a", choice: FromMetadata},
		{name: "default", options: Options{DefaultLauncher: "/b", AllowPathLauncher: true}, path: "/b", choice: FromDefault},
		{name: "PATH", options: Options{AllowPathLauncher: true}, path: folder + "/codex", choice: FromPath},
		{name: "none", code: CodeLauncherMissing, messageHas: "0.163", hintHasOptions: true},
		{name: "relative default", options: Options{DefaultLauncher: "b"}, code: CodeLauncherMalformed},
		{name: "default with a NUL", options: Options{DefaultLauncher: "/b\x00"}, code: CodeLauncherMalformed},
		{name: "default that is not UTF-8", options: Options{DefaultLauncher: "/b\xff"}, code: CodeLauncherMalformed},
	} {
		test.options.Env = env
		m := &Metadata{state: []byte("{}"), launcher: test.named}
		path, choice, err := m.chooseLauncher(test.options)
		if code := codeOf(t, err); path != test.path || choice != test.choice || code != test.code {
			t.Errorf("%s: %q from %q, %v", test.name, path, choice, err)
		}
		if r, ok := err.(*Refusal); ok {
			if !strings.Contains(r.Message, test.messageHas) {
				t.Errorf("%s: %q", test.name, r.Message)
			}
			if test.hintHasOptions && !(strings.Contains(r.Hint, "--default-launcher") && strings.Contains(r.Hint, "--allow-path-launcher")) {
				t.Errorf("%s: %q", test.name, r.Hint)
			}
		}
	}
}

func TestAuthorityOfIncompleteMetadata(t *testing.T) {
	everything := Options{DefaultLauncher: "/bin/sh", AllowPathLauncher: true}
	for _, test := range []struct {
		m    Metadata
		code Code
	}{
		{Metadata{}, CodeMetadataMissing},
		{Metadata{launcher: "/bin/sh"}, CodeStateMissing},
		{Metadata{state: []byte("{}"), launcher: "/nowhere"}, CodeLauncherNotFound},
	} {
		a, err := test.m.Authority(context.Background(), everything)
		if code := codeOf(t, err); code != test.code || a != nil {
			t.Errorf("%v: %v, %v", test.m, a, err)
		}
	}
}

// Without an environment in the options, that of this process counts.
func TestAuthorityEnvironment(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(folder+"/codex", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	m := &Metadata{state: []byte("{}")}
	for _, test := range []struct {
		env  []string
		code Code
	}{
		{nil, CodeLauncherNotExecutable},
		{[]string{}, CodeLauncherMissing},
	} {
		_, err := m.Authority(context.Background(), Options{AllowPathLauncher: true, Env: test.env})
		if code := codeOf(t, err); code != test.code {
			t.Errorf("with %v: %v", test.env, err)
		}
	}
}

// A file can be told from a changed one only when its times are older than what
// a change would get now.
func TestUntilSettled(t *testing.T) {
	now := time.Unix(1000, 500)
	for _, test := range []struct {
		name    string
		changed time.Time
		settled bool
	}{
		{"long ago", time.Unix(900, 1), true},
		{"a tick ago", time.Unix(1000, 499), true},
		{"in this tick", now, false},
		{"in a finer tick than the clock's", time.Unix(1000, 600), false},
		{"long ago, in whole seconds", time.Unix(900, 0), true},
		{"just now, in whole seconds", time.Unix(1000, 0), false},
		{"a second ago, in whole seconds", time.Unix(999, 0), false},
		{"two seconds ago, in whole seconds", time.Unix(998, 0), true},
		{"in the future, the clock went back", time.Unix(2000, 7), true},
	} {
		if wait := untilSettled(now, test.changed); (wait == 0) != test.settled || wait < 0 || wait > 2*time.Second {
			t.Errorf("%s: wait for %v", test.name, wait)
		}
	}
}

func TestSettledAsksAgain(t *testing.T) {
	asked := 0
	st, err := settled(func() (*unix.Stat_t, error) {
		asked++
		var st unix.Stat_t
		if asked == 1 { // changed at this moment
			now := time.Now()
			st.Ctim = unix.NsecToTimespec(now.UnixNano() | 1)
		}
		st.Ino = uint64(asked)
		return &st, nil
	})
	if err != nil || asked != 2 || st.Ino != 2 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

func TestIsProgram(t *testing.T) {
	program, err := testprogram.Own()
	if err != nil {
		t.Fatal(err)
	}
	header := program[:64]
	other := slices.Clone(header)
	other[18] ^= 0x40
	for _, test := range []struct {
		name string
		text []byte
		want bool
	}{
		{"a program", header, runtime.GOOS == "linux"},
		{"one for another machine", other, false},
		{"a part of a program", header[:19], false},
		{"a script", []byte("#!/bin/sh\nexit 0 # long enough\n"), false},
		{"nothing", nil, false},
	} {
		if got := isProgram(bytes.NewReader(test.text)); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// A refusal leaves no descriptor of the launcher open.
func TestRefusedAuthorityIsClosed(t *testing.T) {
	for _, o := range []Options{
		{DefaultLauncher: "/"},
		{DefaultLauncher: "/bin/cat"},
		{DefaultLauncher: "/bin/cat", AllowedLaunchers: []AllowedLauncher{{Path: "/nowhere"}}},
	} {
		m := &Metadata{state: []byte("{}")}
		if a, err := m.Authority(context.Background(), o); err == nil || a != nil {
			t.Errorf("%v: %v", o, a)
		}
		var launcher, st unix.Stat_t
		if err := unix.Stat(o.DefaultLauncher, &launcher); err != nil {
			t.Fatal(err)
		}
		for fd := range 256 {
			if unix.Fstat(fd, &st) == nil && st.Dev == launcher.Dev && st.Ino == launcher.Ino {
				t.Errorf("%s is still open as %d", o.DefaultLauncher, fd)
			}
		}
	}
}
