package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// findProcess returns the process that has an id now. The error is [fs.ErrNotExist]
// if there is none, or if all that is left of it is its status.
func findProcess(id int) (p process, err error) {
	p.id = id
	if machine, err := os.ReadFile("/etc/machine-id"); err == nil {
		p.machine = strings.TrimSpace(string(machine))
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return p, err
	}
	p.boot = strings.TrimSpace(string(boot))
	if p.space, err = ownSpace(); err != nil {
		return p, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if errors.Is(err, unix.ESRCH) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return p, err
	}
	p.start, err = startOf(string(stat))
	return p, err
}

// ownSpace names the namespaces of this process in which processes have their ids
// and, if the kernel knows such ones, their times.
func ownSpace() (string, error) {
	self, err := os.Readlink("/proc/self")
	if err == nil && self != strconv.Itoa(os.Getpid()) {
		err = errors.New("/proc is that of another PID namespace")
	}
	if err != nil {
		return "", err
	}
	ids, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", err
	}
	times, err := os.Readlink("/proc/self/ns/time")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return strings.TrimSpace(ids + " " + times), nil
}

// startOf returns the time of a process's start, in the ticks of proc(5) since the
// system was booted: the field 22. The state is the field 3, and the field 20 has how
// many threads there are.
func startOf(stat string) (string, error) {
	// The name of the program, before the last parenthesis, may be anything.
	end := strings.LastIndex(stat, ")")
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < 20 {
		return "", errors.New("/proc has another form than proc(5)")
	}
	switch state, threads := fields[0], fields[17]; {
	case state == "Z" && threads != "0" && threads != "1":
		// Only its first thread has ended.
	case state == "Z", state == "X", state == "x":
		return "", fs.ErrNotExist
	}
	return fields[19], nil
}
