package mcpsandboxexec_test

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A stepped run is made again and again. Each time it is stopped before another one
// of its system calls, from the first that looks for the folder of the records.
type stepped struct {
	*retaining
	stdin          *os.File // which has no end until the test is over
	stdout, stderr *os.File
}

func newStepped(t *testing.T) *stepped {
	t.Helper()
	r := newRetaining(t)
	// The launcher is in the cache then, and its probe no part of what is stopped.
	if status, _, stderr := r.output(r.call("{}", "--", "true")); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	s := &stepped{retaining: r, stdin: read}
	for _, file := range []**os.File{&s.stdout, &s.stderr} {
		if *file, err = os.Create(filepath.Join(t.TempDir(), "output")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*file).Close() })
	}
	return s
}

// staysNew is a run whose process stays until it is killed.
func (s *stepped) staysNew() *exec.Cmd {
	return s.call(newState, append(retain, "--", "cat")...)
}

func (s *stepped) prunes() *exec.Cmd { return s.command("", "status", "--prune") }

// steps makes a run again and again, stopped before its first call, its second and so
// on, until it comes to its end. Before each the folder is restored.
func (s *stepped) steps(before snapshot, command func() *exec.Cmd, meanwhile func()) iter.Seq2[string, tracedRun] {
	return func(yield func(string, tracedRun) bool) {
		stops, every := 0, 1
		if underRace {
			every = 5
		}
		for n := 1; ; n += every {
			s.restore(before)
			run := s.step(n, command(), meanwhile)
			if !yield(fmt.Sprintf("stopped before call %d", n), run) || !run.stopped {
				break
			}
			stops++
		}
		s.t.Logf("%d stops", stops)
	}
}

// step makes a run and stops it before its n-th call, if there is one.
func (s *stepped) step(n int, cmd *exec.Cmd, meanwhile func()) tracedRun {
	s.t.Helper()
	for _, file := range []*os.File{s.stdout, s.stderr} {
		if err := file.Truncate(0); err != nil {
			s.t.Fatal(err)
		}
		file.Seek(0, 0)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.stdin, s.stdout, s.stderr
	return runTo(s.t, cmd, s.runtime, n, meanwhile)
}

// kill ends a process that a stepped run became.
func (s *stepped) kill(pid int) {
	s.t.Helper()
	unix.Kill(pid, unix.SIGKILL)
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			if err != nil {
				s.t.Error(err)
			}
			return
		}
	}
}

func (s *stepped) said(file *os.File) string {
	s.t.Helper()
	text, err := os.ReadFile(file.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// A snapshot is what the folder held.
type snapshot map[string][]byte

func (s *stepped) snapshot() snapshot {
	s.t.Helper()
	held := snapshot{}
	for _, name := range s.files() {
		text, err := os.ReadFile(s.folder() + "/" + name)
		if err != nil {
			s.t.Fatal(err)
		}
		held[name] = text
	}
	return held
}

// restore makes the folder hold that again, or not be there.
func (s *stepped) restore(held snapshot) {
	s.t.Helper()
	err := os.RemoveAll(s.folder())
	if held != nil && err == nil {
		err = os.Mkdir(s.folder(), 0o700)
	}
	for name, text := range held {
		if err == nil {
			err = os.WriteFile(s.folder()+"/"+name, text, 0o600)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// expectNoLeftover checks that no file is there that was being written.
func (s *stepped) expectNoLeftover() {
	s.t.Helper()
	s.expectOnlyRecords(len(s.files()))
}

func (s *stepped) expectRecord(when string, pid int, status string) {
	s.t.Helper()
	if records := s.status("--server", "s"); len(records) != 1 || records[0].Process != pid || records[0].Status != status {
		s.t.Errorf("%s: the process is %d, %s, and the records are %v; files %q", when, pid, status, records, s.files())
	}
}

var retain = []string{"--retain", "--server", "s"}

const (
	oldState = `{"old":true}`
	newState = `{"new":true}`
)

// A run that is killed leaves the record that was there, or its own: a whole one,
// whenever it is killed, and the next run is not disturbed by what else it leaves.
func TestKilledRetain(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	old := s.keep(oldState, retain...)
	before := s.snapshot()
	if len(before) != 1 {
		t.Fatalf("the folder holds %q", s.files())
	}
	var sawOld, sawNew int
	for when, run := range s.steps(before, s.staysNew, nil) {
		if run.handedOver {
			s.kill(run.pid)
		}
		if records := s.status(); len(records) == 1 && records[0].Process == old.Process.Pid {
			sawOld++
			s.expectRecord(when, old.Process.Pid, "running")
			s.expectChecked(oldState, 0, "")
			s.expectChecked(newState, 1, isChanged)
			if !run.stopped {
				t.Errorf("the run came to its end, and there is still the record of the one before")
			}
		} else {
			sawNew++
			s.expectRecord(when, run.pid, "ended")
			s.expectChecked(newState, 0, "")
			s.expectChecked(oldState, 1, isChanged)
		}
		again := s.keep("{}", retain...)
		s.expectRecord(when+", and again", again.Process.Pid, "running")
		again.end()
	}
	expectBoth(t, sawOld, sawNew)
}

// The same where there is not even a folder yet.
func TestKilledFirstRetain(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	var sawNone, sawNew int
	for when, run := range s.steps(nil, s.staysNew, nil) {
		if run.handedOver {
			s.kill(run.pid)
		}
		if len(s.status()) == 0 {
			sawNone++
			s.expectChecked(newState, 125, "mcp-sandbox-exec: authority-unknown: ")
		} else {
			sawNew++
			s.expectRecord(when, run.pid, "ended")
		}
		again := s.keep("{}", retain...)
		s.expectRecord(when+", and again", again.Process.Pid, "running")
		again.end()
	}
	expectBoth(t, sawNone, sawNew)
}

// A removal that is killed leaves the newest record, or none.
func TestKilledPrune(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	old := s.keep(oldState, retain...)
	old.end()
	before := s.snapshot()
	var sawOld, sawNone int
	for when := range s.steps(before, s.prunes, nil) {
		if len(s.status()) == 0 {
			sawNone++
		} else {
			sawOld++
			s.expectRecord(when, old.Process.Pid, "ended")
		}
	}
	expectBoth(t, sawOld, sawNone)
}

// expectBoth checks that a kill came early enough for one outcome, and late enough for
// the other.
func expectBoth(t *testing.T, one, other int) {
	t.Helper()
	t.Logf("%d times the one outcome, %d times the other", one, other)
	if one < 2 || other < 2 {
		t.Error("a kill has always the same outcome")
	}
}

// Whatever happens in the middle of a removal, a process that is started meanwhile
// keeps its record.
func TestPruneIsOvertaken(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(s *stepped){
		"by a start":               func(*stepped) {},
		"by a removal and a start": func(s *stepped) { s.status("--prune") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepped(t)
			s.keep(oldState, retain...).end()
			before := s.snapshot()
			var started *kept
			for when, run := range s.steps(before, s.prunes, func() {
				meanwhile(s)
				started = s.keep(newState, retain...)
			}) {
				if run.status.ExitStatus() != 0 {
					t.Errorf("%s: status %#x, %s", when, run.status, s.said(s.stderr))
				}
				if run.stopped {
					s.expectRecord(when, started.Process.Pid, "running")
					started.end()
				}
				s.expectNoLeftover()
			}
		})
	}
}

// Whatever happens in the middle of a start that had begun before, it ends well, and
// there is one record then, of a process that runs.
func TestRetainIsOvertaken(t *testing.T) {
	t.Parallel()
	prune := func(s *stepped) { s.status("--prune") }
	start := func(s *stepped) { s.keep("{}", retain...) }
	// Its launcher is seen to be another one when the record is written already.
	failing := func(s *stepped) {
		const replacing = "/codex-replaces-itself"
		bin, _, err := findPrograms()
		link := s.t.TempDir() + replacing
		if err := errors.Join(err, os.Symlink(bin+replacing, link)); err != nil {
			t.Fatal(err)
		}
		other := *s.retaining
		other.launcher = link
		cmd := other.call("{}", append(retain, "--no-cache", "--", "true")...)
		cmd.Env = append(cmd.Env, "SELF="+link)
		if status, _, stderr := s.output(cmd); status != 125 || !strings.Contains(stderr, "launcher-changed") {
			t.Errorf("a start that is refused ends with %d: %s", status, stderr)
		}
	}
	for name, test := range map[string]struct {
		meanwhile func(s *stepped)
		counts    bool // the start that was overtaken is the last one
	}{
		"by a removal":       {prune, true},
		"by a refused start": {failing, true},
		"by two starts":      {func(s *stepped) { s.output(s.call("{}", append(retain, "--", "true")...)); start(s) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepped(t)
			s.keep(oldState, retain...).end()
			before := s.snapshot()
			for when, run := range s.steps(before, s.staysNew, func() { test.meanwhile(s) }) {
				if !run.handedOver {
					t.Errorf("%s: status %#x, %s", when, run.status, s.said(s.stderr))
					continue
				}
				records := s.status()
				if len(records) != 1 || records[0].Status != "running" || test.counts && records[0].Process != run.pid {
					t.Errorf("%s: the process is %d, and the records are %v", when, run.pid, records)
				}
				s.expectNoLeftover()
				s.kill(run.pid)
			}
		})
	}
}

// Who looks for a record finds one as long as there is one, also if it is replaced
// several times in the middle of that, in a folder that is too large to be listed
// in one step.
func TestStatusIsOvertaken(t *testing.T) {
	t.Parallel()
	for _, others := range []int{0, 1000} {
		t.Run(fmt.Sprint("beside ", others), func(t *testing.T) {
			s := newStepped(t)
			s.keep("{}", "--retain", "--server", "other").end()
			for name, text := range s.snapshot() {
				for i := range others {
					_, rest, _ := strings.Cut(name, ".1.")
					path := fmt.Sprintf("%s/retained.%032x.none.1.%s", s.folder(), i, rest)
					if err := os.WriteFile(path, text, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			s.keep(oldState, retain...)
			command := func() *exec.Cmd { return s.command("", "status", "--json", "--server", "s") }
			for when, run := range s.steps(s.snapshot(), command, func() {
				for range 3 {
					s.output(s.call("{}", append(retain, "--", "true")...))
				}
			}) {
				if said := s.said(s.stdout); run.status.ExitStatus() != 0 || strings.Count(said, `"server":"s"`) != 1 {
					t.Errorf("%s: status %#x, %q, %q", when, run.status, said, s.said(s.stderr))
				}
			}
		})
	}
}
