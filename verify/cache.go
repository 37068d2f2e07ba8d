package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/environ"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/ownfolder"
)

// The probe cache is a folder with a file for each launcher that has passed the
// probe, as it was then. A file begins with its own hash, so that a damaged one is
// noticed whatever has damaged it.

const (
	// cacheEntryLimit is the most that is read or written, in bytes. The options
	// of Codex 0.171 have 400.
	cacheEntryLimit = 64 << 10
	// cacheLimit is how many entries are kept.
	cacheLimit = 64
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
func cachedProbe(path string, f *launcherFile) (launcherOptions, error) {
	folder, err := ownfolder.Open(path, ownfolder.NoWrite)
	if err != nil {
		return nil, ignoreAbsence(err)
	}
	defer folder.Close()
	key := cacheKey(f)
	text, err := folder.Read(hashOf(key), cacheEntryLimit)
	if err != nil {
		return nil, ignoreAbsence(err)
	}
	return decodeCacheEntry(text, key)
}

// cacheProbe writes an entry.
func cacheProbe(path string, f *launcherFile, options launcherOptions) error {
	key := cacheKey(f)
	text := encodeCacheEntry(key, options)
	if len(text) > cacheEntryLimit {
		return errors.New("the launcher has too many options")
	}
	folder, err := ownfolder.Open(path, ownfolder.NoWrite)
	if err != nil && ignoreAbsence(err) == nil {
		// The folder above is the user's for all caches, and may not be there either.
		for _, missing := range []string{filepath.Dir(path), path} {
			if err := ownfolder.Make(missing); err != nil {
				return err
			}
		}
		folder, err = ownfolder.Open(path, ownfolder.NoWrite)
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Write(hashOf(key), text, false); err != nil {
		return err
	}
	if err := folder.RemoveLeftovers(); err != nil {
		return err
	}
	return folder.Trim(cacheLimit, isCacheEntry)
}

// isCacheEntry tells the entries from other files, as the folder may be that of
// something else too.
func isCacheEntry(name string) bool {
	return len(name) == 2*sha256.Size && strings.Trim(name, "0123456789abcdef") == ""
}

func ignoreAbsence(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ownfolder.ErrNoParent) {
		return nil
	}
	return err
}

// cacheKey is what must be the same for a launcher to be the one that has passed
// the probe. It is the first part of an entry, and its hash is the entry's name.
func cacheKey(f *launcherFile) string {
	i := f.identity
	return fmt.Sprintf("mcp-sandbox-exec probe 1\n%q\n%d %d %d %d.%09d %d.%09d\n",
		f.path, i.dev, i.ino, i.size, i.mtime.Sec, i.mtime.Nsec, i.ctime.Sec, i.ctime.Nsec)
}

// hashOf returns the SHA-256 of a text in hexadecimal digits.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// encodeCacheEntry returns the content of an entry: the hash of what follows,
// the key, and a line for each option.
func encodeCacheEntry(key string, options launcherOptions) []byte {
	content := key + strings.Join(options, "\n") + "\n"
	return []byte(hashOf(content) + "\n" + content)
}

func decodeCacheEntry(text []byte, key string) (launcherOptions, error) {
	sum, content, _ := strings.Cut(string(text), "\n")
	lines, ofKey := strings.CutPrefix(content, key)
	lines, whole := strings.CutSuffix(lines, "\n")
	options := strings.Split(lines, "\n")
	notOption := func(s string) bool { return !isOption(s) }
	if !ofKey || !whole || sum != hashOf(content) || slices.ContainsFunc(options, notOption) || !slices.Contains(options, StateOption) {
		return nil, errors.New("the entry of the launcher is damaged")
	}
	return options, nil
}
