//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A repl is a running repl server.
type repl struct {
	*process
	scratch     *scratch
	environment string
	reports     string // what is on its stderr, if anything
	started     []procID
	stdin       *os.File
	stdout      *bufio.Reader
}

// name returns the name under which the server's interpreter is retained.
func (r *repl) name() string { return fmt.Sprint("repl-example ", r.cmd.Process.Pid) }

// startRepl starts a repl server in an environment, or in none if that is "".
func (s *scratch) startRepl(t *testing.T, environment string) *repl {
	t.Helper()
	stdin, toServer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromServer, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.command(t, example("repl-server"))
	cmd.Env = append(cmd.Env, "MCP_SANDBOX_EXEC="+shim)
	r := &repl{scratch: s, environment: environment, stdin: toServer, stdout: bufio.NewReader(fromServer)}
	if environment != "" {
		cmd.Env = append(cmd.Env, "REPL_ENVIRONMENT="+environment)
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	var said bytes.Buffer
	cmd.Stderr = &said
	r.process = start(t, cmd)
	stdin.Close()
	stdout.Close()
	t.Cleanup(func() {
		toServer.Close()
		<-r.ended.Done()
		fromServer.Close()
		// Whatever went wrong, nothing stays.
		all := findProcs(t)
		for _, proc := range r.started {
			if _, runs := all[proc]; runs {
				syscall.Kill(proc.pid, syscall.SIGKILL)
			}
		}
		if text := said.String(); !strings.Contains(text, r.reports) || r.reports == "" && text != "" {
			t.Errorf("the server wrote to stderr: %q, want %q", text, r.reports)
		}
	})
	return r
}

// send sends a request to the server, whose answer is yet to be received.
func (r *repl) send(t *testing.T, request []byte) {
	t.Helper()
	if _, err := r.stdin.Write(append(request, '\n')); err != nil {
		t.Fatal(err)
	}
}

func (r *repl) receive(t *testing.T) toolAnswer {
	t.Helper()
	line, err := r.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not answer: %v", err)
	}
	return decodeAnswer(t, line)
}

// call returns what the server answers to a request.
func (r *repl) call(t *testing.T, request []byte) string {
	t.Helper()
	r.send(t, request)
	return r.receive(t).text()
}

// evaluation returns a recorded request that has code evaluated.
func (s *scratch) evaluation(t *testing.T, recording, code string) []byte {
	t.Helper()
	return callTool(t, s.request(t, recording, codex(t, current)), "evaluate", map[string]string{"code": code})
}

// evaluate has code evaluated under a recorded policy.
func (r *repl) evaluate(t *testing.T, recording, code string) string {
	t.Helper()
	return r.call(t, r.scratch.evaluation(t, recording, code))
}

// expect has code evaluated under a recorded policy, and checks the whole answer.
func (r *repl) expect(t *testing.T, recording, code, want string) {
	t.Helper()
	if got := r.evaluate(t, recording, code); got != want {
		t.Errorf("%.100q: the answer is %.300q, want %.300q", code, got, want)
	}
}

// A retained is what status says of a record.
type retained struct {
	Server, Environment, Status, Fingerprint string
	Process                                  int
}

// retained returns all records.
func (s *scratch) retained(t *testing.T) (records []retained) {
	t.Helper()
	r := run(t, s.command(t, shim, "status", "--json"))
	r.expectStatus(t, 0)
	if err := json.Unmarshal([]byte(r.stdout), &records); err != nil {
		t.Fatalf("%v in %q", err, r.stdout)
	}
	return records
}

// interpreter returns the record of the server's interpreter, which runs, and all of
// its processes.
func (r *repl) interpreter(t *testing.T) (retained, []procID) {
	t.Helper()
	records := slices.DeleteFunc(r.scratch.retained(t), func(record retained) bool {
		return record.Server != r.name() || record.Environment != r.environment
	})
	if len(records) != 1 || records[0].Status != "running" {
		t.Fatalf("the records of the server are %v, want one, of a process that runs", records)
	}
	procs := family(t, records[0].Process)
	// The launcher, bash and, where there is a sandbox, its helper and two bwraps or what
	// they became.
	if len(procs) < 2 {
		t.Fatalf("only %v run for the interpreter", procs)
	}
	r.started = append(r.started, procs...)
	return records[0], procs
}

// One server, two sessions. What the first one started is not there for the second
// one, which has another policy.
func TestReplOfTwoSessions(t *testing.T) {
	for _, modes := range [][2]string{{"workspace-write", "read-only"}, {"read-only", "workspace-write"}} {
		t.Run(modes[0]+", "+modes[1], func(t *testing.T) {
			s := newSession(t, current)
			r := s.startRepl(t, "")
			s.relayTo(t, r)
			evaluate := func(file string) modelCall {
				// The same code in all calls, but for the name of the file.
				const code = `echo "kept: ${kept-nothing}"; kept=%[1]s; (echo >%[1]s) 2>/dev/null && echo written || echo denied`
				return modelCall{"evaluate", map[string]string{"code": fmt.Sprintf(code, file)}}
			}
			sessionOf := func(mode string, calls ...modelCall) (texts []string, requests [][]byte) {
				s.mode = mode
				texts = s.endedCalls(t, run(t, s.prepareCalls(t, calls...)))
				return texts, s.calls(t)
			}
			check := func(text, kept, file, mode string) {
				t.Helper()
				want := "written"
				if mode == "read-only" {
					want = "denied"
				}
				if !strings.Contains(text, "kept: "+kept+"\n"+want+"\nexit status 0") {
					t.Errorf("%s: the model got %q, want %q kept, and its file %s", mode, text, kept, want)
				}
				if _, err := os.Stat(filepath.Join(s.project, file)); (err == nil) != (want == "written") {
					t.Errorf("%s: %v, but the file should be %s", mode, err, want)
				}
			}

			texts, first := sessionOf(modes[0], evaluate("one"), evaluate("two"))
			check(texts[0], "nothing", "one", modes[0])
			check(texts[1], "one", "two", modes[0])
			before, procs := r.interpreter(t) // which is alive when the next call comes

			texts, second := sessionOf(modes[1], evaluate("three"))
			check(texts[0], "nothing", "three", modes[1])
			after, _ := r.interpreter(t)
			if before.Process == after.Process || before.Fingerprint == after.Fingerprint {
				t.Errorf("the interpreter was %v, and is %v", before, after)
			}
			expectGone(t, procs)

			// Each call's own metadata has the fingerprint that was written down.
			for _, c := range []struct {
				requests    [][]byte
				fingerprint string
				calls       int
				status      int
			}{{first, before.Fingerprint, 2, 1}, {second, after.Fingerprint, 1, 0}} {
				if len(c.requests) != c.calls {
					t.Fatalf("%d requests", len(c.requests))
				}
				for _, request := range c.requests {
					got := run(t, s.command(t, shim, "fingerprint", "--request", s.writeRequest(t, request)))
					got.expectStatus(t, 0)
					if got.stdout != c.fingerprint+"\n" {
						t.Errorf("the fingerprint is %q, want %q", got.stdout, c.fingerprint)
					}
					checked := run(t, s.check(t, request, "--retained", "--server", r.name()))
					checked.expectStatus(t, c.status)
					if process := fmt.Sprintf("\nretained-process: %d\n", after.Process); strings.Contains(checked.stdout, process) != (c.status == 0) {
						t.Errorf("check prints %q", checked.stdout)
					}
					if changed := strings.Contains(checked.stderr, "authority-changed: "); changed != (c.status == 1) {
						t.Errorf("check says %q", checked.stderr)
					}
				}
			}
		})
	}
}

// What was surveyed under one authority is no answer to a call that has another one,
// or none.
func TestReplSurvey(t *testing.T) {
	s := newScratch(t)
	s.write(t, "bin/perl", "#!/bin/sh\necho ran >>surveys\necho 'the perl of this test'\n", 0o755)
	s.setenv("PATH", filepath.Join(s.root, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	r := s.startRepl(t, "")
	installed := s.link(t, current)
	survey := func(recording string) string {
		return r.call(t, callTool(t, s.request(t, recording, installed), "survey", struct{}{}))
	}
	expectRuns := func(want int) {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(s.project, "surveys"))
		if string(content) != strings.Repeat("ran\n", want) {
			t.Errorf("the survey has run as %q, %v; want %d times", content, err, want)
		}
	}

	first := survey(currentRequest)
	if !strings.Contains(first, "/bin/perl\nthe perl of this test\n") {
		t.Fatalf("the survey is %q", first)
	}
	expectRuns(1)
	if again := survey(currentRequest); again != first {
		t.Errorf("the survey was %q, and is %q", first, again)
	}
	expectRuns(1)

	// This one cannot write what the first one has written, and says so.
	other := survey(readOnlyRequest)
	if !strings.Contains(other, "/bin/perl\n") || !strings.Contains(other, "surveys: Read-only file system\n") {
		t.Errorf("under another authority the survey is %q", other)
	}
	expectRuns(1)
	if err := os.Remove(filepath.Join(s.project, "surveys")); err != nil {
		t.Fatal(err)
	}
	if got := survey(readOnlyRequest); got != other {
		t.Errorf("under another authority the survey was %q, and is %q", other, got)
	}

	if err := os.Remove(installed); err != nil {
		t.Fatal(err)
	}
	if got := survey(currentRequest); !strings.HasPrefix(got, "not run: launcher-not-found: ") {
		t.Errorf("without its launcher the call gets %q", got)
	}
	s.link(t, current)
	if got := survey(currentRequest); got != first {
		t.Errorf("the survey was %q, and is %q", first, got)
	}
	expectRuns(0) // since the file was removed
}

// A call that could not start an interpreter gets nothing of the one that runs, and
// does nothing to it.
func TestReplRefuses(t *testing.T) {
	s := newScratch(t)
	r := s.startRepl(t, "")
	r.expect(t, currentRequest, "kept=yes", "exit status 0")
	before, _ := r.interpreter(t)

	const code = `echo ran >ran; kept=no`
	good := s.evaluation(t, currentRequest, code)
	meta, parts := metaOf(t, good)
	alias := append([]byte(`"codex/sandbox-state-meta":`), parts["codex/sandbox-state-meta"]...)
	for _, c := range []struct {
		name    string
		request []byte
		want    string
	}{
		{"no metadata", replaceOnce(t, good, string(meta), "{}"), "metadata-missing: "},
		{"metadata in the arguments", callTool(t, replaceOnce(t, s.request(t, currentRequest, codex(t, current)), string(meta), "{}"),
			"evaluate", map[string]any{"code": code, "_meta": meta}), "metadata-missing: "},
		{"metadata beside the parameters", replaceOnce(t, replaceOnce(t, good, string(meta), "{}"), `{"jsonrpc"`, `{"_meta":`+string(meta)+`,"jsonrpc"`), "metadata-missing: "},
		{"launcher gone", s.withLauncher(t, code, filepath.Join(s.root, "gone")), "launcher-not-found: "},
		{"no launcher", callTool(t, s.request(t, beforeLaunchersRequest, ""), "evaluate", map[string]string{"code": code}), "launcher-missing: "},
		{"launcher that takes no state", s.withLauncher(t, code, codex(t, beforeStates)), "launcher-incapable: "},
		{"conflicting states", replaceOnce(t, good, string(alias), `"codex/sandbox-state-meta":{}`), "state-conflict: "},
		{"no code", s.evaluation(t, currentRequest, ""), "there is no code, or a NUL in it"},
		{"a NUL", s.evaluation(t, currentRequest, code+"\x00"), "there is no code, or a NUL in it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.send(t, c.request)
			answer := r.receive(t)
			if got := answer.text(); !strings.HasPrefix(got, "not run: "+c.want) || !answer.Result.IsError {
				t.Errorf("the answer is %q, an error: %t", got, answer.Result.IsError)
			}
			if _, err := os.Stat(filepath.Join(s.project, "ran")); err == nil {
				t.Error("the code ran")
			}
			r.expect(t, currentRequest, `echo "$kept"`, "yes\nexit status 0")
		})
	}
	if after, _ := r.interpreter(t); after != before {
		t.Errorf("the interpreter was %v, and is %v", before, after)
	}
}

// withLauncher returns an evaluation that names another launcher.
func (s *scratch) withLauncher(t *testing.T, code, launcher string) []byte {
	t.Helper()
	return callTool(t, s.request(t, currentRequest, launcher), "evaluate", map[string]string{"code": code})
}

func TestReplAnswers(t *testing.T) {
	s := newScratch(t)
	r := s.startRepl(t, "")
	r.expect(t, currentRequest, "kept=yes", "exit status 0")
	before, _ := r.interpreter(t)
	for _, c := range []struct{ name, code, want string }{
		{"output and status", "echo out; echo err >&2; (exit 7)", "out\nerr\nexit status 7"},
		{"a last line without its end", "printf x", "x\nexit status 0"},
		{"an empty line", "echo", "\nexit status 0"},
		{"bytes that are no text", `printf 'a\000b\377'`, "a\x00b\ufffd\nexit status 0"},
		{"much output", "head -c 2000000 /dev/zero | tr '\\0' x", strings.Repeat("x", 2_000_000) + "\nexit status 0"},
		{"much code", ": " + strings.Repeat("x", 200_000) + "\necho end", "end\nexit status 0"},
		{"characters that quote", "echo 'a'\"b\"$'c\\n'`echo \\$`é # '", "abc\n$é\nexit status 0"},
		{"several lines", "cat <<END\n  a\nEND\necho b", "  a\nb\nexit status 0"},
		{"code that looks like an option", "--version", "bash: line *: --version: command not found\nexit status 127"},
		{"wrong syntax", "echo a; if", "bash: eval: line *: syntax error: unexpected end of file\nexit status 2"},
		{"a word that does not end", "echo 'a", "bash: eval: line *: unexpected EOF while looking for matching `''\nexit status 2"},
		{"reading stdin", "read -r line; cat; echo \"[$line]\"", "[]\nexit status 0"},
		{"an end of its own", "echo 'end-0123456789abcdef0123456789abcdef 0'; echo more", "end-0123456789abcdef0123456789abcdef 0\nmore\nexit status 0"},
		{"the variables of the end", "mark=x status=4 code=y; echo \"$mark $status $code\"", "x 4 y\nexit status 0"},
		{"a refusal of its own", `echo '{"code":"launcher-missing","message":"m","hint":"h"}'; (exit 125)`, "{\"code\":\"launcher-missing\",\"message\":\"m\",\"hint\":\"h\"}\nexit status 125"},
		{"break and continue", "continue 2>/dev/null; break 2>/dev/null; echo on", "on\nexit status 0"},
		{"output elsewhere", "exec >/dev/null 2>&1; echo nowhere", "exit status 0"},
		{"closed files", "exec <&- >&- 2>&-", "exit status 0"},
		{"its trace", "set -xv; set +xv", "++ set +xv\nexit status 0"},
		{"a background job", "sleep 1000 & echo on", "on\nexit status 0"},
		{"an array", "declare -A array=([a]=b)", "exit status 0"},
		{"the array", "echo \"${array[a]} $(jobs -p | wc -l)\"", "b 1\nexit status 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.evaluate(t, currentRequest, c.code)
			before, after, _ := strings.Cut(c.want, "*") // a number
			if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) || !strings.Contains(c.want, "*") && got != c.want {
				t.Errorf("the answer is %.300q, want %.300q", got, c.want)
			}
		})
	}
	r.expect(t, currentRequest, `echo "$kept"`, "yes\nexit status 0")
	if after, _ := r.interpreter(t); after != before {
		t.Errorf("the interpreter was %v, and is %v", before, after)
	}
}

// Output of a job is no matter for the end of the code, not even in the very first
// answer of a bash, for which it writes the two lines of the end one by one.
func TestReplAnswersBesideAJob(t *testing.T) {
	s := newScratch(t)
	r := s.startRepl(t, "")
	const writers = `for i in 1 2 3 4 5 6; do while printf x; do :; done & done`
	for range 3 {
		if got := r.evaluate(t, currentRequest, writers); !strings.HasSuffix(got, "\nexit status 0") || strings.Trim(strings.TrimSuffix(got, "\nexit status 0"), "x\n") != "" {
			t.Errorf("the answer is %.300q", got)
		}
		if got := r.evaluate(t, currentRequest, "exit"); !strings.HasSuffix(got, "\nthe interpreter has ended") {
			t.Errorf("the answer is %.300q", got)
		}
	}
}

// The interpreter has its FIFOs and nothing else, and neither it nor what it starts
// nor the launcher has the stdin and stdout of the protocol.
func TestReplDescriptors(t *testing.T) {
	s := newScratch(t)
	r := s.startRepl(t, "")
	// What is started has them, and the folder that it lists.
	r.expect(t, currentRequest, "ls /proc/self/fd", "0\n1\n2\n3\nexit status 0")
	descriptors := func(pid int) map[string]string {
		folder := fmt.Sprintf("/proc/%d/fd", pid)
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		targets := map[string]string{}
		for _, file := range files {
			if targets[file.Name()], err = os.Readlink(filepath.Join(folder, file.Name())); err != nil {
				t.Fatal(err)
			}
		}
		return targets
	}
	ofServer := descriptors(r.cmd.Process.Pid)
	_, procs := r.interpreter(t)
	interpreters := 0
	for _, proc := range procs {
		targets := descriptors(proc.pid)
		for n, target := range targets {
			if target == ofServer["0"] || target == ofServer["1"] {
				t.Errorf("%s of the process %d is the protocol's %s", n, proc.pid, target)
			}
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", proc.pid))
		if err != nil {
			t.Fatal(err)
		}
		if string(line) != "bash\x00" {
			continue
		}
		interpreters++
		if in, out := targets["0"], targets["1"]; len(targets) != 3 || out != targets["2"] ||
			!strings.HasSuffix(in, "/in (deleted)") || !strings.HasSuffix(out, "/out (deleted)") {
			t.Errorf("the interpreter has %q", targets)
		}
	}
	if interpreters != 1 {
		t.Errorf("%d interpreters", interpreters)
	}
}

// An interpreter that ends is no end of the server, and the next call starts another.
func TestReplInterpreterEnds(t *testing.T) {
	s := newScratch(t)
	r := s.startRepl(t, "")
	for _, c := range []struct{ name, code, recording string }{
		{"exit", "echo out; exit 3", currentRequest},
		{"exec", "exec echo out", currentRequest},
		{"KILL", "echo out; kill -KILL $$", currentRequest},
		{"set -e", "echo out; set -e; false", currentRequest},
		// Where the sandbox does not end the jobs with it.
		{"exit without a sandbox", "echo out; exit 3", unconfinedRequest},
		{"exit beside a job", "echo out; sleep 1000 & exit 3", unconfinedRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.expect(t, c.recording, "kept=yes; sleep 1000 &", "exit status 0")
			_, procs := r.interpreter(t)
			r.expect(t, c.recording, c.code, "out\nthe interpreter has ended")
			expectGone(t, procs)
			r.expect(t, c.recording, `echo "${kept-nothing}"`, "nothing\nexit status 0")
		})
	}
}

// What a launcher leaves that was killed alone, from outside, does not stay either.
func TestReplLauncherIsKilled(t *testing.T) {
	s := newScratch(t)
	r := s.startRepl(t, "")
	r.expect(t, currentRequest, "kept=yes; sleep 1000 &", "exit status 0")
	record, procs := r.interpreter(t)
	if err := syscall.Kill(record.Process, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	expectGone(t, slices.DeleteFunc(slices.Clone(procs), func(p procID) bool { return p.pid != record.Process }))
	r.expect(t, currentRequest, `echo "${kept-nothing}"`, "nothing\nexit status 0")
	expectGone(t, procs)
	r.reports = " Killed " // as bash has it
}

// Whatever ends the server ends the interpreter, and nothing is left of either.
func TestReplEnds(t *testing.T) {
	signal := func(signal syscall.Signal) func(*testing.T, *repl) {
		return func(t *testing.T, r *repl) {
			if err := syscall.Kill(r.cmd.Process.Pid, signal); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		end    func(*testing.T, *repl)
		busy   bool
		status int
	}{
		{"the end of its stdin", func(_ *testing.T, r *repl) { r.stdin.Close() }, false, 0},
		{"HUP", signal(syscall.SIGHUP), false, 129},
		{"INT", signal(syscall.SIGINT), false, 130},
		{"TERM", signal(syscall.SIGTERM), false, 143},
		{"HUP while code runs", signal(syscall.SIGHUP), true, 129},
		{"TERM while code runs", signal(syscall.SIGTERM), true, 143},
		// Nobody is left to remove the record, but its process has ended.
		{"KILL", signal(syscall.SIGKILL), false, 128 + 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScratch(t)
			r := s.startRepl(t, "")
			r.expect(t, currentRequest, "sleep 1000 &", "exit status 0")
			if c.busy {
				fifo := mkfifo(t, filepath.Join(s.project, "fifo"))
				r.send(t, s.evaluation(t, currentRequest, "echo busy >fifo; sleep 1000"))
				if got := readFIFO(r.ended, t, fifo); got != "busy\n" {
					t.Fatalf("the code wrote %q", got)
				}
			}
			_, procs := r.interpreter(t)
			c.end(t, r)
			<-r.ended.Done()
			// What the server itself has started has its stdout open, for which wait waits.
			expectGroupGone(t, r.cmd.Process.Pid)
			r.wait(t).expectStatus(t, c.status)
			expectGone(t, procs)

			if c.status == 128+9 {
				if records := s.retained(t); len(records) != 1 || records[0].Status != "ended" {
					t.Errorf("the records are %v, want one, of a process that has ended", records)
				}
				run(t, s.command(t, shim, "status", "--prune")).expectStatus(t, 0)
			}
			var files []string
			err := filepath.WalkDir(s.runtime, func(path string, _ os.DirEntry, err error) error {
				files = append(files, strings.TrimPrefix(path, s.runtime))
				return err
			})
			want := []string{"", "/mcp-sandbox-exec"}
			if c.status == 128+9 { // and nobody for the folder of the FIFOs
				files = slices.DeleteFunc(files, func(file string) bool { return strings.HasPrefix(file, "/repl-server.") })
			}
			if err != nil || !slices.Equal(files, want) {
				t.Errorf("%q is left, %v; want %q", files, err, want)
			}
		})
	}
}

// Servers that run at the same time do not use each other's interpreter, nor end it.
func TestReplsAtOnce(t *testing.T) {
	const code = `echo "${kept-nothing}"; kept=%s; (echo >%[1]s) 2>/dev/null && echo written || echo denied`
	step := func(t *testing.T, r *repl, recording, name, kept, wrote string) {
		t.Helper()
		r.expect(t, recording, fmt.Sprintf(code, name), kept+"\n"+wrote+"\nexit status 0")
	}
	for _, environments := range [][2]string{{"", ""}, {"devbox", "devbox"}, {"laptop", "devbox"}, {"", "devbox"}, {"a  b ", "../a/\nb\n"}, {"-", "--help"}} {
		t.Run(fmt.Sprintf("%q", environments), func(t *testing.T) {
			s := newScratch(t)
			a, b := s.startRepl(t, environments[0]), s.startRepl(t, environments[1])
			step(t, a, currentRequest, "a1", "nothing", "written")
			step(t, b, readOnlyRequest, "b1", "nothing", "denied")
			step(t, a, currentRequest, "a2", "a1", "written")
			step(t, b, readOnlyRequest, "b2", "b1", "denied")
			ofA, _ := a.interpreter(t)
			ofB, _ := b.interpreter(t)
			if records := s.retained(t); len(records) != 2 || ofA.Process == ofB.Process || ofA.Fingerprint == ofB.Fingerprint {
				t.Errorf("the records are %v", records)
			}
		})
	}
}

// A record of that name which is not that of the server's own process is of no use to
// it, though the authority is the same.
func TestReplRecordOfAnotherProcess(t *testing.T) {
	s := newScratch(t)
	r := s.startRepl(t, "")
	request := s.evaluation(t, currentRequest, "kept=yes")
	r.call(t, request)
	_, procs := r.interpreter(t)
	fifo := mkfifo(t, filepath.Join(s.project, "fifo"))
	other := start(t, s.shim(t, request, "--retain", "--server", r.name(), "--", "cat", "fifo"))
	end := openFIFO(other.ended, t, fifo, os.O_WRONLY)
	r.expect(t, currentRequest, `echo "${kept-nothing}"`, "nothing\nexit status 0")
	expectGone(t, procs)
	writeFIFO(t, end, "")
	other.wait(t).expectStatus(t, 0)
}
