package verify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/environ"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/printable"
)

// An identity tells a file from every other and from itself after a change.
type identity struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

// identify checks the launcher's file and returns its identity. Symbolic links
// are followed: the file that execve(2) would run is the one that counts.
func identify(path string) (identity, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return identity{}, unreachable(path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return identity{}, &Refusal{
			Code:    CodeLauncherNotExecutable,
			Message: fmt.Sprintf("%s is not a regular file", printable.Line(path)),
		}
	}
	// With the effective ids, as execve(2) decides it. Root may run a file that
	// has any execute bit; a mount with noexec counts too.
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
		return identity{}, &Refusal{
			Code:    CodeLauncherNotExecutable,
			Message: fmt.Sprintf("this user may not execute %s: %v", printable.Line(path), err),
			Err:     err,
		}
	}
	if st.Mode&0o002 != 0 {
		return identity{}, &Refusal{
			Code:    CodeLauncherUntrusted,
			Message: fmt.Sprintf("everybody may write %s (mode %04o)", printable.Line(path), st.Mode&0o7777),
			Hint:    "whoever can write it decides what runs outside the sandbox; chmod o-w it after checking what it is",
		}
	}
	if isThisProgram(&st) {
		return identity{}, &Refusal{
			Code:    CodeLauncherUntrusted,
			Message: fmt.Sprintf("%s is this program itself", printable.Line(path)),
			Hint:    "the launcher is the Codex CLI that the metadata names, not what calls it",
		}
	}
	return identityOf(&st), nil
}

func identityOf(st *unix.Stat_t) identity {
	return identity{
		dev: uint64(st.Dev), ino: st.Ino, size: st.Size,
		mtime: st.Mtim, ctime: st.Ctim,
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
	return &Refusal{
		Code:    CodeLauncherNotExecutable,
		Message: fmt.Sprintf("%s: %v", printable.Line(path), err),
		Err:     err,
	}
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
