package verify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
	"weak"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/environ"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/execerr"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/pathwalk"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/printable"
)

// An identity tells a file from every other and from itself after a change.
type identity struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

func identityOf(st *unix.Stat_t) identity {
	return identity{
		dev: uint64(st.Dev), ino: st.Ino, size: st.Size,
		mtime: st.Mtim, ctime: st.Ctim,
	}
}

func (i identity) sameFile(st *unix.Stat_t) bool {
	return i.dev == uint64(st.Dev) && i.ino == st.Ino
}

// A launcherFile is the file that stood at a launcher's path when it was opened.
type launcherFile struct {
	path     string
	identity identity
	file     *os.File // nil where the system has no descriptors for execution

	// byName: the system opens the file once more by its path. It does so for
	// scripts, which their interpreter opens, and where it cannot execute a
	// descriptor. Otherwise what is put at the path afterwards is never run.
	byName bool

	owner, mode uint32
	held        bool // by a lease on file, for a pin
}

// openLauncher opens and checks a launcher's file. Symbolic links are followed:
// the file that execve(2) would run is the one that counts.
func openLauncher(path string) (*launcherFile, error) {
	f := &launcherFile{path: path}
	err := f.openAndCheck()
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *launcherFile) openAndCheck() error {
	st, err := f.open()
	if err != nil {
		return unreachable(f.path, err)
	}
	f.identity, f.owner, f.mode = identityOf(st), st.Uid, uint32(st.Mode)
	if err := checkFolders(f.path); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return &Refusal{
			Code:    CodeLauncherNotExecutable,
			Message: fmt.Sprintf("%s is not a regular file", printable.Line(f.path)),
		}
	}
	// With the effective ids, as execve(2) decides it. Root may run a file that
	// has any execute bit; a mount with noexec counts too.
	if err := unix.Faccessat(unix.AT_FDCWD, f.path, unix.X_OK, unix.AT_EACCESS); err != nil {
		return &Refusal{
			Code:    CodeLauncherNotExecutable,
			Message: fmt.Sprintf("this user may not execute %s: %v", printable.Line(f.path), err),
			Err:     err,
		}
	}
	if st.Mode&0o002 != 0 {
		return &Refusal{
			Code:    CodeLauncherUntrusted,
			Message: fmt.Sprintf("everybody may write %s (mode %04o)", printable.Line(f.path), st.Mode&0o7777),
			Hint:    "whoever can write it decides what runs outside the sandbox; chmod o-w it after checking what it is",
		}
	}
	if isThisProgram(st) {
		return &Refusal{
			Code:    CodeLauncherUntrusted,
			Message: fmt.Sprintf("%s is this program itself", printable.Line(f.path)),
			Hint:    "the launcher is the Codex CLI that the metadata names, not what calls it",
		}
	}
	if err := f.chooseHow(); err != nil {
		return unreachable(f.path, err)
	}
	return nil
}

func (f *launcherFile) close() {
	if f.file != nil {
		f.file.Close()
	}
}

// mostUnsettled is longer than the two seconds in which some file systems count.
const mostUnsettled = 3 * time.Second

var errNeverSettled = errors.New("it has been changing")

// settled calls stat until it can tell a later change from none: a file that
// was changed in the very tick of the file system's clock could be changed once
// more without its times showing it. It gives up on one that never comes to rest.
func settled(stat func() (*unix.Stat_t, error)) (*unix.Stat_t, error) {
	for end := time.Now().Add(mostUnsettled); ; {
		now := fileClock()
		st, err := stat()
		if err != nil {
			return nil, err
		}
		wait := untilSettled(now, time.Unix(st.Ctim.Unix()))
		if wait == 0 {
			return st, nil
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("%w for %v", errNeverSettled, mostUnsettled)
		}
		time.Sleep(wait)
	}
}

// untilSettled returns how long to wait before a change would get another time
// than changed. File systems that know no fractions of a second count in steps
// of up to two. A time in the future, after the clock went back, is not one that
// a change would get.
func untilSettled(now, changed time.Time) time.Duration {
	age := now.Sub(changed)
	step := time.Duration(1)
	if changed.Nanosecond() == 0 {
		step = 2 * time.Second
	}
	if age >= step || age < -time.Second {
		return 0
	}
	return max(step-age, time.Millisecond)
}

// isProgram reports whether a file is a program for this machine. Others, which
// the system gives to an interpreter by their name, are not.
func isProgram(file io.ReaderAt) bool {
	header := make([]byte, 20)
	_, err := file.ReadAt(header, 0)
	return err == nil && string(header[:4]) == "\x7fELF" && binary.NativeEndian.Uint16(header[18:]) == ownMachine()
}

// ownMachine returns e_machine of the programs for this machine, as the ELF
// specification has it. Package debug/elf has names for the numbers, and brings
// others with it that each start of the program would pay for.
func ownMachine() uint16 {
	switch runtime.GOARCH {
	case "386":
		return 3
	case "mips", "mipsle", "mips64", "mips64le":
		return 8
	case "ppc64", "ppc64le":
		return 21
	case "s390x":
		return 22
	case "arm":
		return 40
	case "amd64":
		return 62
	case "arm64":
		return 183
	case "riscv64":
		return 243
	case "loong64":
		return 258
	}
	return 0 // which no program has
}

// check compares the file that stands at the path now with the one that was
// opened. It sees a change of its content too, by the times.
func (f *launcherFile) check() error {
	var st unix.Stat_t
	if err := unix.Stat(f.path, &st); err != nil {
		return err
	}
	if identityOf(&st) != f.identity {
		return errors.New("its device, inode, size or times are others")
	}
	if f.held && !f.stillHeld() {
		return errors.New("its lease has ended: somebody wants to write it")
	}
	return nil
}

// busy is the refusal of a file that is open for writing.
func (f *launcherFile) busy() *Refusal {
	return &Refusal{
		Code:    CodeLauncherChanged,
		Message: fmt.Sprintf("%s: %v", printable.Line(f.path), unix.ETXTBSY),
		Hint:    execerr.Hint(unix.ETXTBSY),
		Err:     unix.ETXTBSY,
	}
}

// sharedFiles has the open file of each launcher that somebody has an authority
// of, so that a server that is called often does not hold one for each call.
var sharedFiles sync.Map // of identity to weak.Pointer[os.File]

// share puts the file that others have open into the place of its own. One that
// is held is not shared, as it is held by its own descriptor.
func (f *launcherFile) share() {
	for f.file != nil && !f.held {
		other, found := sharedFiles.LoadOrStore(f.identity, weak.Make(f.file))
		if !found {
			return
		}
		if file := other.(weak.Pointer[os.File]).Value(); file != nil {
			f.file.Close()
			f.file = file
			return
		}
		sharedFiles.CompareAndDelete(f.identity, other)
	}
}

// isThisProgram guards against a program that starts itself without end. Where
// the own file cannot be found, the probe still fails on it.
func isThisProgram(st *unix.Stat_t) bool {
	own, err := os.Executable()
	if err != nil {
		return false
	}
	var ownStat unix.Stat_t
	return unix.Stat(own, &ownStat) == nil && ownStat.Dev == st.Dev && ownStat.Ino == st.Ino
}

// checkFolders refuses a launcher that everybody can replace: no folder on the way to
// it may be writable for everybody, unless it is one like /tmp, in which nobody can
// replace what is another's.
func checkFolders(path string) error {
	err := pathwalk.Walk(path, func(step string, st *unix.Stat_t) error { return checkFolder(path, step, st) })
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return unreachable(path, failed.Err)
	}
	return err
}

func checkFolder(launcher, folder string, st *unix.Stat_t) error {
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mode&0o002 == 0 || st.Mode&unix.S_ISVTX != 0 {
		return nil
	}
	return &Refusal{
		Code:    CodeLauncherUntrusted,
		Message: fmt.Sprintf("everybody may replace %s: they may write the folder %s (mode %04o)", printable.Line(launcher), printable.Line(folder), st.Mode&0o7777),
		Hint:    "whoever can replace it decides what runs outside the sandbox; chmod o-w the folder after checking what is in it",
	}
}

func unreachable(path string, err error) *Refusal {
	for _, absent := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG} {
		if errors.Is(err, absent) {
			return &Refusal{
				Code:    CodeLauncherNotFound,
				Message: fmt.Sprintf("%s: %v", printable.Line(path), err),
				Hint:    "it must be on this host: a server that runs elsewhere than the client (remote, container) does not have it",
				Err:     err,
			}
		}
	}
	r := &Refusal{
		Code:    CodeLauncherNotExecutable,
		Message: fmt.Sprintf("%s: %v", printable.Line(path), err),
		Err:     err,
	}
	switch {
	case execerr.NoRoom(err):
		r.Code = CodeExecFailed
	case errors.Is(err, errNeverSettled):
		r.Code, r.Hint = CodeLauncherChanged, hintChanged
	}
	return r
}

// findOnPath returns the first file named codex in an absolute folder of PATH,
// or "". A folder that is named relative to the working folder is passed by:
// what is there may be anybody's.
func findOnPath(env []string) string {
	path, _ := environ.Lookup(env, "PATH")
	for _, folder := range filepath.SplitList(path) {
		if !strings.HasPrefix(folder, "/") {
			continue
		}
		candidate := strings.TrimRight(folder, "/") + "/codex"
		if _, err := os.Stat(candidate); err == nil {
			return candidate
		}
	}
	return ""
}
