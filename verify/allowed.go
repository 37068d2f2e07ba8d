package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/printable"
)

// An AllowedLauncher is what an operator allows to be a launcher. Symbolic links
// are followed on both sides.
type AllowedLauncher struct {
	// Path is absolute, and names a file or a folder. A folder allows what lies
	// below it. A path that does not exist allows nothing.
	Path string

	// SHA256 is the hash that the file must have, as 64 hexadecimal digits in
	// lower case, or empty for any. The whole file is read for it each time: 0.6 s
	// for the 315 MB of Codex 0.171.
	//
	// On Linux the descriptor that was hashed is the one that is executed, and the
	// file cannot be written from before it is read until [Authority.Close], if this
	// user owns it or is root. Who wants to write waits, 45 s at most by default.
	// Where a file cannot be held so, it is refused if others than this user and
	// root can write it; so is a script, always. NFS, SMB, overlayfs and FUSE
	// cannot hold a file, nor can macOS.
	SHA256 string
}

// ParseAllowedLauncher reads the notation of the command line, PATH or
// PATH=sha256:HEX.
func ParseAllowedLauncher(spelled string) (AllowedLauncher, error) {
	const mark = "=sha256:"
	a := AllowedLauncher{Path: spelled}
	if i := strings.LastIndex(spelled, mark); i >= 0 {
		a.Path, a.SHA256 = spelled[:i], strings.ToLower(spelled[i+len(mark):])
		if sum, err := hex.DecodeString(a.SHA256); err != nil || len(sum) != sha256.Size {
			return AllowedLauncher{}, fmt.Errorf("%q is not a SHA-256 of 64 hexadecimal digits", spelled[i+len(mark):])
		}
	}
	if !strings.HasPrefix(a.Path, "/") || strings.Contains(a.Path, "\x00") {
		return AllowedLauncher{}, fmt.Errorf("%q is not an absolute path", a.Path)
	}
	return a, nil
}

// checkAllowed refuses a launcher that none of the entries allows. Without any
// entry all are allowed.
func checkAllowed(ctx context.Context, f *launcherFile, allowed []AllowedLauncher) error {
	if len(allowed) == 0 {
		return nil
	}
	refuse := func(hint, format string, args ...any) error {
		return &Refusal{
			Code:    CodeLauncherNotAllowed,
			Message: printable.Line(f.path) + " " + fmt.Sprintf(format, args...),
			Hint:    hint,
		}
	}
	var pinned []string
	for _, a := range allowed {
		switch {
		case !a.covers(f):
		case a.SHA256 == "":
			return nil
		default:
			pinned = append(pinned, a.SHA256)
		}
	}
	if pinned == nil {
		return refuse("name it with --allow-launcher if it is one that you trust", "is not one of the allowed launchers")
	}
	sum, err := f.sum(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, unix.ETXTBSY):
		return f.busy()
	case err != nil:
		return refuse("", "cannot be compared with the SHA-256 that is allowed: %v", err)
	}
	if slices.Contains(pinned, sum) {
		return nil
	}
	return refuse("if it was updated, and you trust the new one, allow that", "has another SHA-256 than is allowed: %s", sum)
}

// covers reports whether a names the file or a folder above it. A hard link is
// another file.
func (a AllowedLauncher) covers(f *launcherFile) bool {
	named, err := filepath.EvalSymlinks(a.Path)
	if err != nil {
		return false
	}
	resolved, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return false
	}
	// A link may have been turned since the file was opened.
	var st unix.Stat_t
	if unix.Lstat(resolved, &st) != nil || !f.identity.sameFile(&st) {
		return false
	}
	return resolved == named || strings.HasPrefix(resolved, strings.TrimSuffix(named, "/")+"/")
}

// sum returns the SHA-256 of the file's content, in hexadecimal digits. What
// changes in it afterwards shows in the identity.
func (f *launcherFile) sum(ctx context.Context) (string, error) {
	content, err := f.content()
	if err != nil {
		return "", err
	}
	defer content.Close()
	hash := sha256.New()
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(hash, content, 1<<20)
	}
	if err != io.EOF {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
