package verify

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The name of a program may look like what follows it in /proc/PID/stat.
func TestStartOf(t *testing.T) {
	const rest = " S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 1 21 START 23 24\n" // each field by its number
	for _, test := range []struct {
		stat, want string
		err        string // a part of the error
	}{
		{"1 (codex)" + rest, "START", ""},
		{"1 ()" + rest, "START", ""},
		{"1 (a b)" + rest, "START", ""},
		{"1 (a) S 1 (b)" + rest, "START", ""},
		{"1 (a)\n)" + rest, "START", ""},
		{"1 (a) Z )" + rest, "START", ""},
		{"1 ((()" + rest, "START", ""},
		{"1 ( Z )" + strings.Replace(rest, " S ", " R ", 1), "START", ""},
		{"1 (S)" + strings.Replace(rest, " S ", " Z ", 1), "", fs.ErrNotExist.Error()},
		{"1 (S)" + strings.Replace(rest, " S ", " X ", 1), "", fs.ErrNotExist.Error()},
		{"1 (S)" + strings.Replace(rest, " S ", " x ", 1), "", fs.ErrNotExist.Error()},
		{"1 (a)" + strings.NewReplacer(" S ", " Z ", " 1 ", " 2 ").Replace(rest), "START", ""}, // whose first thread has ended
		{"1 (a)" + strings.NewReplacer(" S ", " Z ", " 1 ", " 0 ").Replace(rest), "", fs.ErrNotExist.Error()},
		{"1 (a)" + rest[:strings.Index(rest, "START")+5], "START", ""},
		{"1 (a)" + rest[:strings.Index(rest, "START")], "", "another form"},
		{"1 (a)", "", "another form"},
		{"1 a" + rest, "", "another form"},
		{"", "", "another form"},
	} {
		got, err := startOf(test.stat)
		if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: %q, %v", test.stat, got, err)
		}
	}
}

// What is left of a process until its parent asks for its status does not run, and
// another boot makes another process of it.
func TestLivenessOnLinux(t *testing.T) {
	child := exec.Command("cat")
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := child.Process.Pid
	r := newShelf(t)
	record, err := r.Retain(authority("{}", codex), Server{"repl", ""}, pid)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, p process, want Liveness) {
		t.Helper()
		if got := p.liveness(); got != want {
			t.Errorf("%s: it is %s, not %s", name, got, want)
		}
	}
	of := record.process
	boot, ofBoot := os.ReadFile("/proc/sys/kernel/random/boot_id")
	ids, ofIDs := os.Readlink("/proc/self/ns/pid")
	times, _ := os.Readlink("/proc/self/ns/time") // which older kernels do not have
	machine, _ := os.ReadFile("/etc/machine-id")  // nor some containers
	if err := errors.Join(ofBoot, ofIDs); err != nil || of.id != pid || of.boot+"\n" != string(boot) ||
		of.space != strings.TrimSpace(ids+" "+times) || of.machine != strings.TrimSpace(string(machine)) {
		t.Errorf("the child is %+v, %v", of, err)
	}
	check("as it is", of, Running)
	of.boot += "0"
	check("in another boot", of, Ended)
	of.space = "pid:[1]"
	check("in another boot and namespace", of, Ended)
	of.boot = record.process.boot
	check("in another namespace", of, Unknown)
	of = record.process
	of.machine, of.boot = "another", "another"
	check("on another machine", of, Unknown)
	if _, err := findProcess(math.MaxInt32); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}

	stdin.Close()
	var info unix.Siginfo
	for err = unix.EINTR; err == unix.EINTR; { // until it has ended; it is not asked for its status
		err = unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	check("that has ended", record.process, Ended)
	if _, err := r.Retain(authority("{}", codex), Server{"repl", ""}, pid); codeOf(t, err) != CodeRecordUnusable {
		t.Errorf("one that has ended is retained: %v", err)
	}
	if removed, err := r.Prune("", ""); err != nil || len(removed) != 1 || removed[0].PID != pid {
		t.Errorf("%v, %v", removed, err)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	check("of which nothing is left", record.process, Ended)
}
