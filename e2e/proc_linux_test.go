//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// argvs returns the argument vectors of all processes.
func argvs(t *testing.T) [][]string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found [][]string
	for _, file := range files {
		// One that has ended meanwhile is as if it had not been there.
		line, err := os.ReadFile(file)
		if err == nil && len(line) > 0 {
			found = append(found, strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"))
		}
	}
	return found
}

// A procID tells a process from a later one with the same id, by its start.
type procID struct {
	pid   int
	start string
}

// findProcs returns the processes that run, with the ids of their parents. What has
// ended, but for a status that nobody has asked for, does not run.
func findProcs(t *testing.T) map[procID]int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	found := map[procID]int{}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		pid, errPid := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, errParent := strconv.Atoi(fields[1])
		if err := errors.Join(errPid, errParent); err != nil {
			t.Fatal(err)
		}
		found[procID{pid, fields[19]}] = parent
	}
	return found
}

// family returns a process that runs, and all that it has started.
func family(t *testing.T, pid int) (found []procID) {
	t.Helper()
	all := findProcs(t)
	pids := []int{pid}
	for len(pids) > 0 {
		var next []int
		for proc, parent := range all {
			if proc.pid == pids[0] {
				found = append(found, proc)
			}
			if parent == pids[0] {
				next = append(next, proc.pid)
			}
		}
		pids = append(pids[1:], next...)
	}
	return found
}

// expectGone waits until none of some processes runs any more. They were killed by
// now, but the last of them die of the death of others, of which nobody hears.
func expectGone(t *testing.T, procs []procID) {
	t.Helper()
	await(t, func() string {
		all := findProcs(t)
		left := slices.DeleteFunc(slices.Clone(procs), func(p procID) bool { _, runs := all[p]; return !runs })
		if len(left) == 0 {
			return ""
		}
		return fmt.Sprintf("these processes still run: %v", left)
	})
}

// expectGroupGone waits until a process group has no process any more.
func expectGroupGone(t *testing.T, group int) {
	t.Helper()
	await(t, func() string {
		if err := syscall.Kill(-group, 0); err != syscall.ESRCH {
			return fmt.Sprintf("the process group %d is still there: %v", group, err)
		}
		return ""
	})
}

// await looks for what sends no word, until nothing is missing any more.
func await(t *testing.T, missing func() string) {
	t.Helper()
	const (
		poll     = 10 * time.Millisecond
		patience = 30 * time.Second
	)
	for tries := 0; ; tries++ {
		what := missing()
		if what == "" {
			return
		}
		if time.Duration(tries)*poll > patience {
			t.Fatalf("after %v %s", patience, what)
		}
		time.Sleep(poll)
	}
}
