package mcpsandboxexec_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	fakeLaunchers["codex-answers-late"] = func() { probing(answerLate); fakeCodex(fullHelp, runChild) }

	scriptPrograms["with-tmpfs"] = withTmpfs
	scriptPrograms["with-user-rights"] = withUserRights
	scriptPrograms["subreaper"] = func() { beSubreaper(); runProgram(os.Args[1:]) }
	scriptPrograms["becomes-subreaper"] = func() { beSubreaper(); becomeProgram(os.Args[1:]) }

	// Launchers that the system does not start, or that are not what they seem.
	for name, text := range map[string]string{
		"empty":                 "",
		"crlf":                  "#!/bin/sh\r\nexit 9\r\n",
		"bare-line":             "#!\n",
		"bare-start":            "#!",
		"folder-interpreter":    "#!/\n",
		"unexecutable":          "#!@FILES@/not-executable\n",
		"own-interpreter":       "#!@FILES@/own-interpreter\n",
		"long-interpreter":      "#!/" + strings.Repeat("./", 150) + "bin/sh\n",
		"other-machine":         "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\xef\xbe\x01\x00\x00\x00" + strings.Repeat("\x00", 40),
		"busy":                  shellLauncher,
		"busy-at-the-hand-over": busyLauncher,
		"loses-interpreter":     losingLauncher,
	} {
		executables[name] = executable{text: text, mode: 0o755}
	}
	executables["not-executable"] = executable{text: "#!/bin/sh\n", mode: 0o644}
	executables["elf-header"] = executable{copy: true, size: 64, mode: 0o755}
	executables["half-elf"] = executable{copy: true, size: 4096, mode: 0o755}
	for _, name := range writtenLaunchers {
		executables[name] = executable{copy: true, mode: 0o755}
	}
	executables["execute-only/codex"] = executable{copy: true, mode: 0o111}
	executables["execute-only-for-others/codex"] = executable{copy: true, mode: 0o711}
}

// writtenLaunchers are one for each test that opens it for writing.
var writtenLaunchers = []string{"written-0/codex", "written-1/codex", "written-2/codex"}

// busyLauncher waits in its probe until the test has opened it for writing.
const busyLauncher = `#!/bin/sh
[ "$4" = --help ] || exit 9
read -r line <"$BUSY"
echo '      --sandbox-state-json <JSON>'
`

// losingLauncher removes its interpreter in its probe. A relative path has no blank.
const losingLauncher = `#!lost-sh
[ "$4" = --help ] || exit 9
rm lost-sh
echo '      --sandbox-state-json <JSON>'
`

// answerLate answers 9 seconds after its process was started, however long that
// has taken to get here.
func answerLate() {
	recordProbe()
	var now unix.Timespec
	stat, err := os.ReadFile("/proc/self/stat")
	if err == nil {
		err = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	}
	if err != nil {
		panic(err)
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	ticks, err := strconv.Atoi(strings.Fields(fields)[19]) // of which a second has 100
	if err != nil {
		panic(err)
	}
	time.Sleep(9*time.Second + time.Duration(ticks)*10*time.Millisecond - time.Duration(now.Nano()))
	os.Stdout.WriteString(fullHelp)
	os.Exit(0)
}

// withTmpfs KIND FOLDER FILE PROGRAM [ARG...] becomes a program for which FOLDER
// is a file system of its own that has a copy of FILE, and that is noexec, full,
// full but for a cache or a folder of records that is empty, or read-only. It is the working folder then.
//
// It needs a mount namespace of its own. Nobody can have the copy open, as this
// process starts no other one.
func withTmpfs() {
	kind, folder, file := os.Args[1], os.Args[2], os.Args[3]
	check := func(err error) {
		if err != nil {
			fail(99, "with-tmpfs: %v", err)
		}
	}
	text := mustReadFile(file)
	var flags uintptr
	if kind == "noexec" {
		flags = unix.MS_NOEXEC
	}
	check(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	check(unix.Mount("tmpfs", folder, "tmpfs", flags, "mode=755,nr_inodes=8,size="+strconv.Itoa(len(text)+1<<20)))
	check(os.Chdir(folder))
	check(os.WriteFile(filepath.Base(file), []byte(text), 0o755))
	switch kind {
	case "full":
		for number := 0; ; number++ {
			err := os.WriteFile("fill-"+strconv.Itoa(number), make([]byte, 2<<20), 0o666)
			if _, missing := os.Lstat("fill-" + strconv.Itoa(number)); missing != nil && errors.Is(err, unix.ENOSPC) {
				break // there is no space, and no room for an empty file
			}
		}
	case "full-beside-a-cache", "full-beside-records":
		own := ".cache/mcp-sandbox-exec"
		if kind == "full-beside-records" {
			own = "mcp-sandbox-exec"
		}
		check(os.MkdirAll(own, 0o700))
		for size := 1 << 20; size > 0; size /= 2 {
			// To the last byte, but not to the last file.
			f, err := os.OpenFile("fill", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
			check(err)
			for err == nil {
				_, err = f.Write(make([]byte, size))
			}
			check(f.Close())
		}
		if os.WriteFile(own+"/new", []byte("x"), 0o600) == nil {
			fail(99, "with-tmpfs: there is space")
		}
		check(os.Remove(own + "/new"))
	case "read-only":
		check(unix.Mount("none", folder, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	}
	becomeProgram(os.Args[4:])
}

// withUserRights PROGRAM [ARG...] becomes a program for which permissions count
// also if it is root's.
func withUserRights() {
	runtime.LockOSThread() // which is the one that the program gets its rights from
	if os.Geteuid() == 0 {
		for _, capability := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
				fail(99, "with-user-rights: %v", err)
			}
		}
	}
	becomeProgram(os.Args[1:])
}

// beSubreaper makes this process the parent of what its descendants leave
// behind. It stays so when the process becomes another program.
func beSubreaper() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fail(99, "subreaper: %v", err)
	}
}

// runProgram runs a program and ends with its exit status.
func runProgram(argv []string) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fail(99, "%s: %v", argv[0], err)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}
