package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/environ"
)

// The probe cache is a folder with a file for each launcher that has passed the
// probe, as it was then. A file is written beside its place and renamed, so that
// it is there whole or not at all, and it begins with its own hash, so that a
// damaged one is noticed whatever has damaged it.

const (
	// cacheEntryLimit is the most that is read or written, in bytes. The options
	// of Codex 0.171 have 400.
	cacheEntryLimit = 64 << 10
	// cacheLimit is how many entries are kept.
	cacheLimit = 64
	// cacheLeftoverAge is when the file of a writer that did not come to its end
	// is taken away.
	cacheLeftoverAge = time.Hour

	cacheTemporary = "new-" // how the names of files begin that are being written
)

// DefaultCacheDir returns the folder in which the program mcp-sandbox-exec keeps
// its probe cache: mcp-sandbox-exec in XDG_CACHE_HOME, or in .cache of HOME. It
// is empty if neither of them is an absolute path in env.
func DefaultCacheDir(env []string) string {
	if base, _ := environ.Lookup(env, "XDG_CACHE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "mcp-sandbox-exec")
	}
	if home, _ := environ.Lookup(env, "HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "mcp-sandbox-exec")
	}
	return ""
}

// cachedProbe returns the options of a launcher that has passed the probe
// before, or nil. The error says why the cache cannot be used; that there is no
// entry is none.
func cachedProbe(folder string, f *launcherFile) (launcherOptions, error) {
	dir, err := openCache(folder)
	if err != nil {
		return nil, ignoreAbsence(err)
	}
	defer unix.Close(dir)
	key := cacheKey(f)
	text, err := readCacheEntry(dir, cacheName(key))
	if err != nil {
		return nil, ignoreAbsence(err)
	}
	return decodeCacheEntry(text, key)
}

// cacheProbe writes an entry.
func cacheProbe(folder string, f *launcherFile, options launcherOptions) error {
	key := cacheKey(f)
	text := encodeCacheEntry(key, options)
	if len(text) > cacheEntryLimit {
		return errors.New("the launcher has too many options")
	}
	dir, err := openCache(folder)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeCache(folder); err != nil {
			return err
		}
		dir, err = openCache(folder)
	}
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := writeCacheEntry(dir, cacheName(key), text); err != nil {
		return err
	}
	return tidyCache(dir)
}

func ignoreAbsence(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// openCache opens the folder if it is this user's alone to write. What is above
// it decides too: who can write there can put another folder in its place.
func openCache(folder string) (dir int, err error) {
	if err := checkCacheParent(filepath.Dir(folder)); err != nil {
		return -1, err
	}
	dir, err = unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: folder, Err: err}
	}
	if err := checkOwn(dir, unix.S_IFDIR); err != nil {
		unix.Close(dir)
		return -1, fmt.Errorf("%s: %w", folder, err)
	}
	return dir, nil
}

// checkCacheParent wants a folder that is this user's or root's, and in which no
// other user can replace something.
func checkCacheParent(folder string) error {
	var st unix.Stat_t
	if err := unix.Stat(folder, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: folder, Err: err}
	}
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", folder)
	}
	if st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("other users can write %s", folder)
	}
	return nil
}

// checkOwn wants an open file or folder that is this user's alone to write.
func checkOwn(fd int, kind uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch {
	case uint32(st.Mode)&unix.S_IFMT != kind:
		return errors.New("it is of the wrong kind")
	case int(st.Uid) != os.Geteuid():
		return errors.New("it belongs to another user")
	case st.Mode&0o022 != 0:
		return errors.New("other users can write it")
	}
	return nil
}

// makeCache makes the folder, and the one above it, for this user alone
// whatever the umask is.
func makeCache(folder string) error {
	for _, make := range []string{filepath.Dir(folder), folder} {
		err := checkCacheParent(filepath.Dir(make))
		if err == nil {
			err = os.Mkdir(make, 0o700)
		}
		switch {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return err
		default:
			if err := os.Chmod(make, 0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

func readCacheEntry(dir int, name string) ([]byte, error) {
	// O_NONBLOCK: a FIFO in the place of an entry must not hold up anything.
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	if err := checkOwn(fd, unix.S_IFREG); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return io.ReadAll(io.LimitReader(file, cacheEntryLimit+1))
}

func writeCacheEntry(dir int, name string, text []byte) (err error) {
	temporary := fmt.Sprintf("%s%d-%d", cacheTemporary, os.Getpid(), time.Now().UnixNano())
	fd, err := unix.Openat(dir, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "create", Path: temporary, Err: err}
	}
	file := os.NewFile(uintptr(fd), temporary)
	_, err = file.Write(text)
	if err == nil {
		err = file.Chmod(0o600) // whatever the umask is
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = unix.Renameat(dir, temporary, dir, name)
	}
	if err != nil {
		unix.Unlinkat(dir, temporary, 0)
	}
	return err
}

// tidyCache takes away what writers left behind that did not come to their end,
// and the oldest entries beyond the limit.
func tidyCache(dir int) error {
	copied, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	listing := os.NewFile(uintptr(copied), "cache")
	defer listing.Close()
	names, err := listing.Readdirnames(-1)
	if err != nil {
		return err
	}
	type entry struct {
		name    string
		written time.Time
	}
	var entries []entry
	for _, name := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			continue // another program has taken it away
		}
		written := time.Unix(st.Mtim.Unix())
		if !strings.HasPrefix(name, cacheTemporary) {
			entries = append(entries, entry{name, written})
		} else if time.Since(written) > cacheLeftoverAge {
			unix.Unlinkat(dir, name, 0)
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return b.written.Compare(a.written) })
	for _, e := range entries[min(cacheLimit, len(entries)):] {
		unix.Unlinkat(dir, e.name, 0)
	}
	return nil
}

// cacheKey is what must be the same for a launcher to be the one that has passed
// the probe. It is the first part of an entry, and its hash is the entry's name.
func cacheKey(f *launcherFile) string {
	i := f.identity
	return fmt.Sprintf("mcp-sandbox-exec probe 1\n%q\n%d %d %d %d.%09d %d.%09d\n",
		f.path, i.dev, i.ino, i.size, i.mtime.Sec, i.mtime.Nsec, i.ctime.Sec, i.ctime.Nsec)
}

func cacheName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// encodeCacheEntry returns the content of an entry: the hash of what follows,
// the key, and a line for each option.
func encodeCacheEntry(key string, options launcherOptions) []byte {
	content := key + strings.Join(options, "\n") + "\n"
	return []byte(cacheName(content) + "\n" + content)
}

func decodeCacheEntry(text []byte, key string) (launcherOptions, error) {
	sum, content, _ := strings.Cut(string(text), "\n")
	lines, ofKey := strings.CutPrefix(content, key)
	lines, whole := strings.CutSuffix(lines, "\n")
	options := strings.Split(lines, "\n")
	notOption := func(s string) bool { return !isOption(s) }
	if !ofKey || !whole || sum != cacheName(content) || slices.ContainsFunc(options, notOption) || !slices.Contains(options, StateOption) {
		return nil, errors.New("the entry of the launcher is damaged")
	}
	return options, nil
}
