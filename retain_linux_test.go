package mcpsandboxexec_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// A retaining is a folder for records, and what the program is run with.
type retaining struct {
	t                 *testing.T
	program, launcher string
	runtime           string // for XDG_RUNTIME_DIR
}

func newRetaining(t *testing.T) *retaining {
	t.Helper()
	_, program, err := findPrograms()
	if err != nil {
		t.Fatal(err)
	}
	return &retaining{t, program, filepath.Join(filepath.Dir(program), "shell-launcher"), t.TempDir()}
}

// folder is where the program makes its records.
func (r *retaining) folder() string { return r.runtime + "/mcp-sandbox-exec" }

// command returns the program with a state in a variable, which only those
// arguments name that call makes.
func (r *retaining) command(state string, args ...string) *exec.Cmd {
	cmd := exec.Command(r.program, args...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+r.runtime, "STATE="+state, fmt.Sprintf(`LAUNCHER={"codexExecutable":%q}`, r.launcher))
	return cmd
}

// call returns the program with arguments for a tool call with that state.
func (r *retaining) call(state string, args ...string) *exec.Cmd {
	first := 0
	if args[0] == "check" || args[0] == "fingerprint" {
		first = 1
	}
	return r.command(state, slices.Insert(args, first, "--state", "env:STATE", "--launcher", "env:LAUNCHER")...)
}

// output runs a program and returns its status, and what it wrote.
func (r *retaining) output(cmd *exec.Cmd) (status int, stdout, stderr string) {
	r.t.Helper()
	var out, err strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &err
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		r.t.Error(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), err.String()
}

// A listed record is an element of what status prints.
type listed struct {
	Server      string
	Environment string // "" for null
	Process     int
	Status      string
	Fingerprint string
}

// status lists the records, which must not fail.
func (r *retaining) status(args ...string) (records []listed) {
	r.t.Helper()
	status, stdout, stderr := r.output(r.command("", append([]string{"status", "--json"}, args...)...))
	if err := json.Unmarshal([]byte(stdout), &records); status != 0 || err != nil {
		r.t.Errorf("status %d, stdout %q (%v), stderr %q", status, stdout, err, stderr)
	}
	return records
}

// expectChecked compares a state with what is retained for the server s.
func (r *retaining) expectChecked(state string, want int, code string) {
	r.t.Helper()
	status, stdout, stderr := r.output(r.call(state, "check", "--retained", "--server", "s"))
	if status != want || !strings.HasPrefix(stderr, code) {
		r.t.Errorf("check --retained: status %d, not %d; stdout %q, stderr %q", status, want, stdout, stderr)
	}
}

const isChanged = "mcp-sandbox-exec: authority-changed: "

// files names what is in the folder.
func (r *retaining) files() (names []string) {
	r.t.Helper()
	entries, err := os.ReadDir(r.folder())
	if err != nil {
		r.t.Error(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// expectOnlyRecords checks that no writer left anything else behind.
func (r *retaining) expectOnlyRecords(most int) {
	r.t.Helper()
	names := r.files()
	for _, name := range names {
		if !strings.HasPrefix(name, "retained.") {
			r.t.Errorf("there is a file %s", name)
		}
	}
	if len(names) > most {
		r.t.Errorf("there are %d files, and not at most %d", len(names), most)
	}
}

// A kept process is one that the program became, and that stays until it is ended.
type kept struct {
	*exec.Cmd
	t      *testing.T
	stdin  io.Closer
	stdout *bufio.Reader
	stderr strings.Builder
}

// start starts a process that says so when it runs.
func (r *retaining) start(state string, args ...string) *kept {
	r.t.Helper()
	return r.startCommand(r.call(state, append(args, "--", "/bin/sh", "-c", "echo it runs; exec cat")...))
}

func (r *retaining) startCommand(cmd *exec.Cmd) *kept {
	r.t.Helper()
	k := &kept{Cmd: cmd, t: r.t}
	stdin, err := k.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	stdout, err := k.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	k.stdin, k.stdout, k.Stderr = stdin, bufio.NewReader(stdout), &k.stderr
	if err := k.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(k.end)
	return k
}

// keep starts a process and waits until it runs.
func (r *retaining) keep(state string, args ...string) *kept {
	r.t.Helper()
	k := r.start(state, args...)
	k.awaitRunning()
	return k
}

func (k *kept) awaitRunning() {
	k.t.Helper()
	if line, err := k.stdout.ReadString('\n'); err != nil || line != "it runs\n" {
		k.end()
		k.t.Errorf("it does not run: %q, %v, stderr %q", line, err, &k.stderr)
	}
}

func (k *kept) end() {
	if k.ProcessState == nil {
		k.stdin.Close()
		io.Copy(io.Discard, k.stdout)
		k.Wait()
	}
}

// held starts processes that wait in the program for their state, so that all of
// them can be let go at once.
func (r *retaining) held(states []string, args func(i int) []string) (processes []*kept, letGo func()) {
	r.t.Helper()
	var gates []*os.File
	folder := r.t.TempDir()
	for i := range states {
		fifo := fmt.Sprintf("%s/%d", folder, i)
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			r.t.Fatal(err)
		}
		words := slices.Concat([]string{"--state", fifo, "--launcher", "env:LAUNCHER", "--retain"}, args(i), []string{"--", "/bin/sh", "-c", "echo it runs; exec cat"})
		k := r.startCommand(r.command("", words...))
		// Opening waits for the program to do so.
		gate, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { gate.Close() })
		gate.WriteString(states[i])
		processes, gates = append(processes, k), append(gates, gate)
	}
	return processes, func() {
		for _, gate := range gates {
			gate.Close()
		}
	}
}

func manyRuns() int {
	if underRace {
		return 40
	}
	return 200
}

// numbered returns states that differ.
func numbered(n int) (states []string) {
	for i := range n {
		states = append(states, fmt.Sprintf(`{"run":%d}`, i))
	}
	return states
}

// Of many servers that are started at the same moment none is lost, also if the
// folder is not there before.
func TestManyServersAreRetainedAtOnce(t *testing.T) {
	r := newRetaining(t)
	environments := []string{"", "laptop", "devbox", "a long/one\nof \"two\" lines"}
	server := func(i int) (name, environment string) {
		return fmt.Sprintf("server %d", i/len(environments)), environments[i%len(environments)]
	}
	processes, letGo := r.held(numbered(manyRuns()), func(i int) []string {
		name, environment := server(i)
		if environment == "" {
			return []string{"--server", name}
		}
		return []string{"--server", name, "--environment", environment}
	})
	letGo()
	var want, got []string
	for i, k := range processes {
		k.awaitRunning()
		name, environment := server(i)
		want = append(want, fmt.Sprintf("%q %q %d running", name, environment, k.Process.Pid))
	}
	for _, record := range r.status() {
		got = append(got, fmt.Sprintf("%q %q %d %s", record.Server, record.Environment, record.Process, record.Status))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the records are\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	r.expectOnlyRecords(len(want))
	for _, k := range processes {
		k.end()
	}
	if left := r.status("--prune"); len(left) > 0 || len(r.files()) > 0 {
		t.Errorf("of processes that ended there is still %v, %q", left, r.files())
	}
}

// Of many processes that are started at the same moment for one server one is
// retained. Who looks meanwhile always finds a record, and a whole one.
func TestOneServerIsRetainedByManyAtOnce(t *testing.T) {
	r := newRetaining(t)
	r.keep(`{"old":true}`, "--retain", "--server", "s")
	states := numbered(manyRuns())
	processes, letGo := r.held(states, func(int) []string { return []string{"--server", "s"} })

	var over atomic.Bool
	var looks atomic.Int64
	var watchers sync.WaitGroup
	look := func(do func()) {
		watchers.Go(func() {
			for !over.Load() {
				do()
				looks.Add(1)
			}
		})
	}
	for _, args := range [][]string{nil, {"--server", "s"}} {
		look(func() {
			if records := r.status(args...); len(records) != 1 || records[0].Status != "running" {
				t.Errorf("meanwhile there is %v", records)
			}
		})
	}
	look(func() { r.expectChecked(`{"other":true}`, 1, isChanged) })
	letGo()
	for _, k := range processes {
		k.awaitRunning()
	}
	over.Store(true)
	watchers.Wait()
	if looks.Load() == 0 {
		t.Error("nobody looked at the folder meanwhile")
	}

	records := r.status()
	if len(records) != 1 {
		t.Fatalf("the records are %v", records)
	}
	i := slices.IndexFunc(processes, func(k *kept) bool { return k.Process.Pid == records[0].Process })
	if i < 0 {
		t.Fatalf("the process of %v is none of them", records)
	}
	if _, fingerprint, _ := r.output(r.call(states[i], "fingerprint")); strings.TrimSpace(fingerprint) != records[0].Fingerprint {
		t.Errorf("the authority of %v is not that of its process, %q", records, fingerprint)
	}
	r.expectChecked(states[i], 0, "")
	r.expectOnlyRecords(len(states) + 1)

	last := r.keep(`{"last":true}`, "--retain", "--server", "s")
	if records := r.status(); len(records) != 1 || records[0].Process != last.Process.Pid {
		t.Errorf("the last one is the process %d: %v", last.Process.Pid, records)
	}
	r.expectOnlyRecords(2)
}

// What is removed beside a start is never the record of a process that runs.
func TestPruneBesideRetain(t *testing.T) {
	const servers, pruners = 4, 3
	rounds := 20
	if underRace {
		rounds = 4
	}
	r := newRetaining(t)
	var over atomic.Bool
	var prunes atomic.Int64
	var starting, pruning sync.WaitGroup
	for range pruners {
		pruning.Go(func() {
			for !over.Load() {
				r.status("--prune")
				prunes.Add(1)
			}
		})
	}
	for i := range servers {
		server := fmt.Sprint("server ", i)
		starting.Go(func() {
			for range rounds {
				k := r.keep("{}", "--retain", "--server", server)
				records := r.status("--server", server)
				if len(records) != 1 || records[0].Process != k.Process.Pid || records[0].Status != "running" {
					t.Errorf("%s is the process %d, and has the records %v", server, k.Process.Pid, records)
				}
				k.end()
			}
		})
	}
	starting.Wait()
	over.Store(true)
	pruning.Wait()
	if prunes.Load() == 0 {
		t.Error("nothing was pruned meanwhile")
	}
	if left := r.status("--prune"); len(left) > 0 || len(r.files()) > 0 {
		t.Errorf("of processes that ended there is still %v, %q", left, r.files())
	}
}

// A process that has ended is shown so also while its parent has not asked for its
// status.
func TestStatusOfAZombie(t *testing.T) {
	r := newRetaining(t)
	cmd := r.call("{}", "--retain", "--server", "s", "--", "true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := awaitZombie(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if records := r.status(); len(records) != 1 || records[0].Process != cmd.Process.Pid || records[0].Status != "ended" {
		t.Errorf("the process %d is a zombie, and has %v", cmd.Process.Pid, records)
	}
	if left := r.status("--prune"); len(left) > 0 {
		t.Errorf("there is still %v", left)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// awaitZombie waits for the end of a child, and leaves its status for others.
func awaitZombie(pid int) error {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return err
		}
	}
}

// A process whose first thread has ended, and whose others have not, still runs.
// Its state in /proc is that of a zombie.
func TestStatusOfAProcessWithoutItsFirstThread(t *testing.T) {
	r := newRetaining(t)
	k := r.startCommand(r.call("{}", "--retain", "--server", "s", "--", "ends-its-first-thread"))
	k.awaitRunning()
	if records := r.status("--prune"); len(records) != 1 || records[0].Process != k.Process.Pid || records[0].Status != "running" {
		t.Errorf("the process %d runs, and has %v", k.Process.Pid, records)
	}
}

// A process that got the id of one that ended is not taken for that one. Only root
// can choose ids.
func TestStatusOfAReusedID(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	const nextID = "/proc/sys/kernel/ns_last_pid"
	r := newRetaining(t)
	cmd := r.call("{}", "--retain", "--server", "s", "--", "true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if err := awaitZombie(pid); err != nil {
		t.Fatal(err)
	}
	started := startTime(t, pid)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	for range 10_000 { // others take ids too
		if err := os.WriteFile(nextID, []byte(strconv.Itoa(pid-1)), 0); err != nil {
			(&scene{t: t}).leaveOut("root cannot choose an id: %v", err)
		}
		other := exec.Command("cat")
		stdin, err := other.StdinPipe()
		if err == nil {
			err = other.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		reused := other.Process.Pid == pid && startTime(t, pid) != started
		if reused {
			if records := r.status(); len(records) != 1 || records[0].Process != pid || records[0].Status != "ended" {
				t.Errorf("the process %d is another one, and has %v", pid, records)
			}
			if left := r.status("--prune"); len(left) > 0 {
				t.Errorf("there is still %v", left)
			}
		}
		stdin.Close()
		other.Wait()
		if reused {
			return
		}
	}
	t.Errorf("no process got the id %d", pid)
}

// startTime is the field 22 of proc(5).
func startTime(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(stat[strings.LastIndex(string(stat), ")"):]))[20]
}

// A run that is refused before the hand-over does not touch the record that is there.
func TestRefusedRunLeavesTheRecord(t *testing.T) {
	r := newRetaining(t)
	r.keep("{}", retain...)
	path := filepath.Join(r.folder(), r.files()[0])
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, options := range [][]string{{"--disable-network"}, {"--allow-launcher", r.program}, {"--readable-root", "/usr", "--dry-run"}} {
		if status, _, stderr := r.output(r.call("{}", slices.Concat(retain, options, []string{"--", "true"})...)); status != 125 {
			t.Errorf("%s: status %d: %s", options, status, stderr)
		}
		if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: the record is another file: %v", options, err)
		}
	}
}
