package mcpsandboxexec_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// scriptPrograms are the programs that scripts run beside the launchers.
var scriptPrograms = map[string]func(){
	"cmd":           command,
	"with":          withFiles,
	"process-ended": processEnded,
	"at-once":       atOnce,
}

// command stands for what a tool call wants to run:
//
//	cmd exit N       end with that status
//	cmd kill NAME    end by that signal
//	cmd cat          copy stdin to stdout
//	cmd print ARG... print each argument on a line
//	cmd mark FILE    make a file, so that a test sees that something ran
//	cmd hang         do not end
func command() {
	if len(os.Args) < 2 {
		fail(99, "cmd: what?")
	}
	switch args := os.Args[2:]; os.Args[1] {
	case "exit":
		status, err := strconv.Atoi(args[0])
		if err != nil {
			fail(99, "cmd: %v", err)
		}
		os.Exit(status)
	case "kill":
		die(unix.SignalNum("SIG" + args[0]))
	case "cat":
		if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
			fail(99, "cmd: %v", err)
		}
	case "print":
		for _, arg := range args {
			fmt.Println(arg)
		}
	case "mark":
		if err := os.WriteFile(args[0], nil, 0o666); err != nil {
			fail(99, "cmd: %v", err)
		}
	case "hang":
		hang()
	default:
		fail(99, "cmd: what is %s?", os.Args[1])
	}
}

// hang does not return. The time is there for a test that fails: what it leaves
// behind ends by itself.
func hang() {
	time.Sleep(10 * time.Minute)
	os.Exit(98)
}

func die(signal syscall.Signal) {
	syscall.Kill(os.Getpid(), signal)
	hang()
}

// withFiles runs a program with what a script cannot give it:
//
//	with 5<FILE 6>FILE env:NAME<FILE fifo:NAME<FILE stack:BYTES -- PROGRAM [ARG...]
//
// opens FILE for reading at descriptor 5, and for writing at 6; puts FILE into a
// variable; feeds FILE to a FIFO; and sets the limit of the stack, of which
// Linux gives a quarter to the arguments.
func withFiles() {
	args := os.Args[1:]
	program := &exec.Cmd{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	for ; len(args) > 0 && args[0] != "--"; args = args[1:] {
		if pipe, ok := strings.CutPrefix(args[0], "fifo:"); ok {
			name, file, _ := strings.Cut(pipe, "<")
			feedFIFO(name, file)
		} else if variable, ok := strings.CutPrefix(args[0], "env:"); ok {
			name, file, _ := strings.Cut(variable, "<")
			os.Setenv(name, strings.TrimSuffix(mustReadFile(file), "\n"))
		} else if size, ok := strings.CutPrefix(args[0], "stack:"); ok {
			limitStack(size)
		} else if number, file, ok := strings.Cut(args[0], "<"); ok {
			setDescriptor(program, number, file, os.O_RDONLY)
		} else if number, file, ok := strings.Cut(args[0], ">"); ok {
			setDescriptor(program, number, file, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
		} else {
			fail(99, "with: what is %s?", args[0])
		}
	}
	if len(args) < 2 {
		fail(99, "with: what program?")
	}
	path, err := exec.LookPath(args[1])
	if err != nil {
		fail(99, "with: %v", err)
	}
	program.Path, program.Args = path, args[1:]
	err = program.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fail(99, "with: %v", err)
	}
	os.Exit(program.ProcessState.ExitCode())
}

func setDescriptor(program *exec.Cmd, number, file string, mode int) {
	fd, err := strconv.Atoi(number)
	if err != nil {
		fail(99, "with: %v", err)
	}
	f, err := os.OpenFile(file, mode, 0o666)
	if err != nil {
		fail(99, "with: %v", err)
	}
	switch fd {
	case 0:
		program.Stdin = f
	case 1:
		program.Stdout = f
	case 2:
		program.Stderr = f
	default:
		for len(program.ExtraFiles) <= fd-3 {
			program.ExtraFiles = append(program.ExtraFiles, nil)
		}
		program.ExtraFiles[fd-3] = f
	}
}

func mustReadFile(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		fail(99, "%v", err)
	}
	return string(text)
}

func limitStack(size string) {
	var limit unix.Rlimit
	bytes, err := strconv.ParseUint(size, 10, 64)
	if err == nil {
		err = unix.Getrlimit(unix.RLIMIT_STACK, &limit)
	}
	limit.Cur = bytes
	if err == nil {
		err = unix.Setrlimit(unix.RLIMIT_STACK, &limit)
	}
	if err != nil {
		fail(99, "with: %v", err)
	}
}

// processEnded waits until the process has ended whose number is in a file, and
// fails if it does not.
func processEnded() {
	if pid := mustReadFile(os.Args[1]); !awaitEnd(pid) {
		fail(1, "process %s goes on", pid)
	}
}

// awaitEnd waits until a process has ended, and reports whether it has. A zombie
// has ended: who reaps it is not known here.
func awaitEnd(pid string) bool {
	number, err := strconv.Atoi(pid)
	if err != nil {
		panic(err)
	}
	for range 1000 {
		if unix.Kill(number, 0) == unix.ESRCH {
			return true
		}
		if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// atOnce runs a program many times at once, and fails if one of the runs does. N in
// an argument is the number of the run:
//
//	at-once 200 PROGRAM [ARG...]
func atOnce() {
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fail(99, "at-once: %v", err)
	}
	results := make(chan error)
	for i := range count {
		args := slices.Clone(os.Args[2:])
		for j := range args {
			args[j] = strings.ReplaceAll(args[j], "N", strconv.Itoa(i))
		}
		go func() {
			said, err := exec.Command(args[0], args[1:]...).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%q: %w: %s", args, err, said)
			}
			results <- err
		}()
	}
	for range count {
		if err := <-results; err != nil {
			fail(1, "at-once: %v", err)
		}
	}
}

func feedFIFO(name, file string) {
	text := []byte(mustReadFile(file))
	if err := unix.Mkfifo(name, 0o666); err != nil {
		fail(99, "with: %v", err)
	}
	go func() {
		// Opening waits for the reader. One that goes early is its own affair.
		if f, err := os.OpenFile(name, os.O_WRONLY, 0); err == nil {
			f.Write(text)
			f.Close()
		}
	}()
}
