// Package ownfolder keeps files in a folder that is this user's alone. A file is
// written beside its place and renamed, so that it is there whole or not at all.
package ownfolder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/pathwalk"
)

const (
	// temporary is how the names of files begin that are being written.
	temporary = "new-"
	// leftoverAge is when the file of a writer that did not come to its end is
	// taken away.
	leftoverAge = time.Hour
)

// What others may not do with a folder and with the files in it, as bits of a mode.
const (
	NoWrite  uint32 = 0o022
	NoAccess uint32 = 0o077
)

// A Folder is an open folder. What is done in it is done in the one that was
// checked, whatever is put in its place.
type Folder struct {
	path   string
	file   *os.File
	denied uint32
}

// ErrNoParent is the error for a folder of which the one above is not there either.
var ErrNoParent = errors.New("there is no such folder")

// Open opens a folder if it is this user's, and others may not do with it what is
// denied to them. What leads to it decides too: who can write there can put another
// folder in its place. If it is not there, the error is [fs.ErrNotExist].
func Open(path string, denied uint32) (*Folder, error) {
	parent, path, err := split(path)
	if err == nil {
		err = checkWay(parent)
	}
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s is no folder, or a link, which is not followed", path)
	case err != nil:
		return nil, err
	}
	f := &Folder{path, file, denied}
	if err := f.checkOwn(file, unix.S_IFDIR); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// split returns a path as an absolute one, without slashes at its end, and that of the
// folder above. Nothing is resolved in it, as only the system can follow links.
func split(path string) (parent, whole string, err error) {
	if !filepath.IsAbs(path) {
		here, err := os.Getwd()
		if err != nil {
			return "", "", err
		}
		path = here + "/" + path
	}
	whole = strings.TrimRight(path, "/")
	i := strings.LastIndex(whole, "/")
	if i < 0 || whole[i+1:] == "." || whole[i+1:] == ".." {
		return "", "", fmt.Errorf("%s does not end with the name of a folder", path)
	}
	return whole[:i+1], whole, nil
}

// Make makes a folder for this user alone, whatever the umask is. One that is there
// already is not changed.
func Make(path string) error {
	parent, path, err := split(path)
	if err == nil {
		err = checkWay(parent)
	}
	if err == nil {
		err = os.Mkdir(path, 0o700)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return os.Chmod(path, 0o700)
}

// CheckWritable reports whether this user can make files in a folder, or the folder
// itself if it is not there.
func CheckWritable(path string) error {
	parent, path, err := split(path)
	if err != nil {
		return err
	}
	err = canWrite(path)
	if errors.Is(err, fs.ErrNotExist) {
		path = parent
		if err := checkWay(parent); err != nil {
			return err
		}
		err = canWrite(parent)
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// canWrite asks with the effective ids, as the system does when it makes a file.
func canWrite(folder string) error {
	return unix.Faccessat(unix.AT_FDCWD, folder, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}

// Close closes the folder.
func (f *Folder) Close() error { return f.file.Close() }

// Names returns the names of all files but those that are being written.
func (f *Folder) Names() ([]string, error) {
	names, err := f.list()
	return slices.DeleteFunc(names, isTemporary), err
}

// largestList is the most that one call may list, in bytes.
const largestList = 32 << 20

// list returns the names of all files, from one system call where they have room in
// it: other programs cannot change a folder in the middle of that. Between two calls
// a file could be replaced by one that neither of them lists, which is what remains
// where a file system gives only a part to each.
func (f *Folder) list() (names []string, err error) {
	for size := 64 << 10; ; size *= 8 {
		if _, err := f.file.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		names = nil
		calls := 0
		for buffer := make([]byte, size); ; calls++ {
			n, err := unix.ReadDirent(f.fd(), buffer)
			if err != nil {
				return nil, &fs.PathError{Op: "list", Path: f.path, Err: err}
			}
			if n == 0 {
				break
			}
			_, _, names = unix.ParseDirent(buffer[:n], -1, names)
		}
		if calls <= 1 || size >= largestList {
			return names, nil
		}
	}
}

// Read returns the content of a file, up to a limit in bytes and one more. The file
// must be a regular one, this user's, and closed to others as the folder is.
func (f *Folder) Read(name string, limit int64) ([]byte, error) {
	// O_NONBLOCK: a FIFO in the place of a file must not hold up anything.
	fd, err := unix.Openat(f.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: f.Path(name), Err: err}
	}
	file := os.NewFile(uintptr(fd), f.Path(name))
	defer file.Close()
	if err := f.checkOwn(file, unix.S_IFREG); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(name), err)
	}
	return io.ReadAll(io.LimitReader(file, limit+1))
}

// Write writes a file for this user alone, in the place of what has that name. With
// lasting it is on the disk before it gets the name.
func (f *Folder) Write(name string, text []byte, lasting bool) (err error) {
	unfinished := temporary + Unique()
	fd, err := unix.Openat(f.fd(), unfinished, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "create", Path: f.Path(unfinished), Err: err}
	}
	file := os.NewFile(uintptr(fd), f.Path(unfinished))
	_, err = file.Write(text)
	if err == nil {
		err = file.Chmod(0o600) // whatever the umask is
	}
	if err == nil && lasting {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = unix.Renameat(f.fd(), unfinished, f.fd(), name)
	}
	if err != nil {
		unix.Unlinkat(f.fd(), unfinished, 0)
	}
	return err
}

// Remove takes a file away. That it is gone already is no error.
func (f *Folder) Remove(name string) error {
	err := unix.Unlinkat(f.fd(), name, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	return &fs.PathError{Op: "remove", Path: f.Path(name), Err: err}
}

// RemoveLeftovers takes away what writers left behind that did not come to their end.
func (f *Folder) RemoveLeftovers() error {
	files, err := f.aged(isTemporary)
	for _, file := range files {
		if time.Since(file.written) > leftoverAge {
			unix.Unlinkat(f.fd(), file.name, 0)
		}
	}
	return err
}

// Trim takes away the oldest of some files beyond the number that is to be kept.
func (f *Folder) Trim(keep int, some func(name string) bool) error {
	files, err := f.aged(func(name string) bool { return !isTemporary(name) && some(name) })
	for _, file := range files[min(keep, len(files)):] {
		unix.Unlinkat(f.fd(), file.name, 0)
	}
	return err
}

// An agedFile is a file and when it was written.
type agedFile struct {
	name    string
	written time.Time
}

// aged returns some of the files, the newest first.
func (f *Folder) aged(some func(name string) bool) (files []agedFile, err error) {
	names, err := f.list()
	for _, name := range names {
		var st unix.Stat_t
		// One that cannot be found another program has taken away.
		if some(name) && unix.Fstatat(f.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			files = append(files, agedFile{name, time.Unix(st.Mtim.Unix())})
		}
	}
	slices.SortFunc(files, func(a, b agedFile) int { return b.written.Compare(a.written) })
	return files, err
}

func isTemporary(name string) bool { return strings.HasPrefix(name, temporary) }

var written atomic.Uint64

// Unique returns a text for the name of a file that no other process or call gets.
func Unique() string {
	return fmt.Sprintf("%d-%d-%d", os.Getpid(), time.Now().UnixNano(), written.Add(1))
}

// Path returns the path of a file in the folder, for messages.
func (f *Folder) Path(name string) string { return filepath.Join(f.path, name) }

func (f *Folder) fd() int { return int(f.file.Fd()) }

// checkWay wants a folder to which only this user and root have put up the way: nobody
// else can replace a folder or a link on it.
func checkWay(folder string) error {
	root := -1
	err := pathwalk.Walk(folder, func(step string, st *unix.Stat_t) error {
		owner, mode := int(st.Uid), uint32(st.Mode)
		if step == "/" {
			root = owner // whom root is shown as in some containers
		}
		switch {
		case owner != 0 && owner != root && owner != os.Geteuid():
			return fmt.Errorf("%s belongs to another user (%d)", step, owner)
		case mode&unix.S_IFMT == unix.S_IFLNK:
			return nil // which has no mode of its own
		case mode&NoWrite != 0 && mode&unix.S_ISVTX == 0:
			return fmt.Errorf("other users can write %s (mode %04o)", step, mode&0o7777)
		}
		return nil
	})
	var failed *fs.PathError
	if errors.As(err, &failed) && errors.Is(failed.Err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", strings.TrimRight(folder, "/"), ErrNoParent)
	}
	return err
}

// checkOwn wants an open file or folder that is this user's alone.
func (f *Folder) checkOwn(file *os.File, kind uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return err
	}
	mode := uint32(st.Mode)
	switch {
	case mode&unix.S_IFMT != kind:
		return errors.New("it is of the wrong kind")
	case int(st.Uid) != os.Geteuid():
		return errors.New("it belongs to another user")
	case mode&f.denied&NoWrite != 0:
		return fmt.Errorf("other users can write it (mode %04o)", mode&0o7777)
	case mode&f.denied != 0:
		return fmt.Errorf("other users can read it (mode %04o)", mode&0o7777)
	}
	return nil
}
