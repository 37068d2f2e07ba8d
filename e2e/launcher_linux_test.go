//go:build e2e

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// What the other tests of this project suppose about the launcher, asked of the
// real one. Their stand-in for it has to behave as it says here.

// bothWays runs a test for a command that the launcher runs under the recorded
// state, without the shim and with it.
func bothWays(t *testing.T, args []string, test func(*testing.T, *scratch, *exec.Cmd)) {
	t.Helper()
	t.Run("without the shim", func(t *testing.T) {
		s := newScratch(t)
		test(t, s, s.launcher(t, codex(t, current), s.currentState(t), args...))
	})
	t.Run("with the shim", func(t *testing.T) {
		s := newScratch(t)
		test(t, s, s.shim(t, s.request(t, currentRequest, codex(t, current)), args...))
	})
}

func TestExitStatus(t *testing.T) {
	type test struct {
		name    string
		command []string
		want    int
	}
	tests := []test{
		{"no such program", []string{"no-such-program"}, 101},
		{"TERM", []string{"sh", "-c", "kill -TERM $$"}, 128 + 15},
		{"KILL", []string{"sh", "-c", "kill -KILL $$"}, 128 + 9},
		{"SEGV", []string{"sh", "-c", "kill -SEGV $$"}, 128 + 11},
	}
	for _, status := range []int{0, 1, 7, 125, 126, 127, 255} {
		n := strconv.Itoa(status)
		tests = append(tests, test{n, []string{"sh", "-c", "exit " + n}, status})
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			bothWays(t, append([]string{"--"}, c.command...), func(t *testing.T, _ *scratch, cmd *exec.Cmd) {
				run(t, cmd).expectStatus(t, c.want)
			})
		})
	}
}

func TestWhatStatesTheLauncherTakes(t *testing.T) {
	s := newScratch(t)
	state := string(s.currentState(t))
	with := func(members string) string { return "{" + members + "," + state[1:] }
	replace := func(old, replacement string) string { return string(replaceOnce(t, []byte(state), old, replacement)) }
	for _, c := range []struct {
		name, state string
		want        int
	}{
		{"as recorded", state, 0},
		{"white space", " \n" + replace(`,"sandboxCwd":`, " ,\t\"sandboxCwd\" :\r\n ") + "\t", 0},
		{"an unknown member", with(`"unknown":{"a":[1e400,null]}`), 0},
		{"an unknown member twice", with(`"unknown":1,"unknown":2`), 0},
		{"a lone surrogate in an unknown member", with(`"unknown":"\ud800"`), 0},
		{"a known member twice", with(`"sandboxCwd":"file:///"`), 1},
		{"no member", `{}`, 1},
		{"an array", `[]`, 1},
		{"no profile", replace(`"permissionProfile":`, `"noProfile":`), 1},
		{"its folder is not a URI", replace(`"sandboxCwd":"file://`, `"sandboxCwd":"`), 1},
		{"its folder is gone", replace(`"sandboxCwd":"file://`, `"sandboxCwd":"file:///gone`), 1},
		{"its helper is gone", replace(`"codexLinuxSandboxExe":null`, `"codexLinuxSandboxExe":"/gone"`), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, cmd := range []*exec.Cmd{
				s.launcher(t, codex(t, current), []byte(c.state), "--", "echo", "ran"),
				s.shim(t, newRequest([]byte(c.state), codex(t, current)), "--", "echo", "ran"),
			} {
				r := run(t, cmd)
				r.expectStatus(t, c.want)
				if ran := r.stdout == "ran\n"; ran != (c.want == 0) {
					t.Errorf("stdout %q", r.stdout)
				}
			}
		})
	}
}

func TestArgumentsThatTheLauncherRefuses(t *testing.T) {
	s := newScratch(t)
	run(t, s.launcher(t, codex(t, current), s.currentState(t), "--no-such-option", "--", "true")).expectStatus(t, 2)
	run(t, s.launcher(t, codex(t, current), s.currentState(t), "--", "echo", "\xff")).expectStatus(t, 2)

	// The shim says which one it is, and does not ask the launcher.
	r := run(t, s.shim(t, s.request(t, currentRequest, codex(t, current)), "--", "echo", "\xff"))
	r.expectRefusal(t, "command-malformed")
}

func TestLargestState(t *testing.T) {
	s := newScratch(t)
	largest := 32*os.Getpagesize() - 1 // bytes; the final NUL has to fit too
	padded := func(size int) []byte {
		state := s.currentState(t)
		const member = `,"padding":"`
		fill := strings.Repeat("x", size-len(state)-len(member)-len(`"`))
		return append(state[:len(state)-1:len(state)-1], member+fill+`"}`...)
	}
	command := []string{"--", "echo", "ran"}

	fits := padded(largest)
	if len(fits) != largest {
		t.Fatalf("the state has %d bytes, want %d", len(fits), largest)
	}
	for _, cmd := range []*exec.Cmd{
		s.launcher(t, codex(t, current), fits, command...),
		s.shim(t, newRequest(fits, codex(t, current)), command...),
	} {
		r := run(t, cmd)
		r.expectStatus(t, 0)
		if r.stdout != "ran\n" {
			t.Errorf("stdout %q", r.stdout)
		}
	}

	tooLarge := padded(largest + 1)
	if err := s.launcher(t, codex(t, current), tooLarge, command...).Run(); !errors.Is(err, syscall.E2BIG) {
		t.Errorf("starting the launcher: %v, want E2BIG", err)
	}
	run(t, s.shim(t, newRequest(tooLarge, codex(t, current)), command...)).expectRefusal(t, "state-too-large")
}

func TestStdinReachesTheCommand(t *testing.T) {
	const text = "a line\n\x00\xff no newline"
	bothWays(t, []string{"--", "cat"}, func(t *testing.T, _ *scratch, cmd *exec.Cmd) {
		cmd.Stdin = strings.NewReader(text)
		r := run(t, cmd)
		r.expectStatus(t, 0)
		if r.stdout != text {
			t.Errorf("stdout %q, want %q", r.stdout, text)
		}
	})
}

func TestCommandRunsInTheFolderOfTheState(t *testing.T) {
	bothWays(t, []string{"--", "pwd", "-P"}, func(t *testing.T, s *scratch, cmd *exec.Cmd) {
		if r := run(t, cmd); r.stdout != s.project+"\n" {
			t.Errorf("the folder is %q, want %q; stderr %q", r.stdout, s.project, r.stderr)
		}
	})
}

// The launcher puts folders of its own before PATH, and sets PWD and a variable
// about the network. The rest is as it was, and the shim leaves no trace.
func TestEnvironmentReachesTheCommand(t *testing.T) {
	bothWays(t, []string{"--", "env"}, func(t *testing.T, s *scratch, cmd *exec.Cmd) {
		// The first of them would spoil the probe.
		cmd.Env = append(cmd.Env, "CLICOLOR_FORCE=1", "WITH_SPACE= a b ", "EMPTY=")
		path := s.env[0]
		want := append(slices.Clone(cmd.Env), "PWD="+s.project, "CODEX_SANDBOX_NETWORK_DISABLED=1")

		r := run(t, cmd)
		r.expectStatus(t, 0)
		got := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
		for i, variable := range got {
			if strings.HasPrefix(variable, "PATH=/") && strings.HasSuffix(variable, ":"+strings.TrimPrefix(path, "PATH=")) {
				got[i] = path
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the environment inside is\n%q\nwant\n%q", got, want)
		}
	})
}

// The question that Codex itself asks, and the shim too.
func TestHelp(t *testing.T) {
	options := []string{"--sandbox-state-json", "--sandbox-state-readable-root", "--sandbox-state-disable-network"}
	s := newScratch(t)
	help := func(version string) result {
		return run(t, s.launcher(t, codex(t, version), []byte("{}"), "--help"))
	}
	for _, version := range []string{current, beforeLaunchers} {
		r := help(version)
		r.expectStatus(t, 0)
		for _, option := range options {
			if !regexp.MustCompile(`(?m)^[ \t]+` + option + `([ \t]|$)`).MatchString(r.stdout) {
				t.Errorf("%s: no indented line starts with %s in %s", version, option, r.stdout)
			}
		}
	}
	help(beforeStates).expectStatus(t, 2)
}

// Colours stand before the options in a help that is coloured.
func TestForcedColours(t *testing.T) {
	s := newScratch(t)
	s.setenv("CLICOLOR_FORCE", "1")
	help := run(t, s.launcher(t, codex(t, current), []byte("{}"), "--help"))
	if !strings.Contains(help.stdout, "\x1b[") {
		t.Fatalf("CLICOLOR_FORCE colours nothing in %q", help.stdout)
	}
	run(t, s.shim(t, s.request(t, currentRequest, codex(t, current)), "--", "true")).expectStatus(t, 0)
}
