package verify

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var cachedOptions = launcherOptions{"--sandbox-state-disable-network", StateOption}

func cachedLauncher(path string) *launcherFile {
	return &launcherFile{path: path, identity: identity{
		dev: 1, ino: 2, size: 3,
		mtime: unix.NsecToTimespec(4_000_000_005),
		ctime: unix.NsecToTimespec(6_000_000_007),
	}}
}

// newCache returns a cache with an entry for a launcher, and the entry's path.
func newCache(t *testing.T) (folder, entry string, f *launcherFile) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "mcp-sandbox-exec")
	f = cachedLauncher("/opt/a\nb/codex")
	if err := cacheProbe(folder, f, cachedOptions); err != nil {
		t.Fatal(err)
	}
	return folder, filepath.Join(folder, hashOf(cacheKey(f))), f
}

func files(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestDefaultCacheDir(t *testing.T) {
	for _, test := range []struct {
		env  []string
		want string
	}{
		{[]string{"HOME=/home/a", "XDG_CACHE_HOME=/cache"}, "/cache/mcp-sandbox-exec"},
		{[]string{"HOME=/home/a", "XDG_CACHE_HOME="}, "/home/a/.cache/mcp-sandbox-exec"},
		{[]string{"HOME=/home/a", "XDG_CACHE_HOME=cache"}, "/home/a/.cache/mcp-sandbox-exec"},
		{[]string{"HOME=a"}, ""},
		{nil, ""},
	} {
		if got := DefaultCacheDir(test.env); got != test.want {
			t.Errorf("%q: %q", test.env, got)
		}
	}
}

// An entry is for one launcher as it was, and for no other.
func TestCacheKey(t *testing.T) {
	folder, _, f := newCache(t)
	if options, err := cachedProbe(folder, f); !slices.Equal(options, cachedOptions) || err != nil {
		t.Fatalf("%q, %v", options, err)
	}
	for name, change := range map[string]func(*launcherFile){
		"path":        func(f *launcherFile) { f.path = "/opt/a\nc/codex" },
		"device":      func(f *launcherFile) { f.identity.dev++ },
		"inode":       func(f *launcherFile) { f.identity.ino++ },
		"size":        func(f *launcherFile) { f.identity.size++ },
		"mtime":       func(f *launcherFile) { f.identity.mtime.Sec++ },
		"nanoseconds": func(f *launcherFile) { f.identity.mtime.Nsec++ },
		"ctime":       func(f *launcherFile) { f.identity.ctime.Sec-- },
		"its part":    func(f *launcherFile) { f.identity.ctime.Nsec-- },
	} {
		other := *f
		change(&other)
		if options, err := cachedProbe(folder, &other); options != nil || err != nil {
			t.Errorf("another %s: %q, %v", name, options, err)
		}
	}
}

// Folder and entries are for this user alone, whatever the umask is.
func TestCacheModes(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o777} {
		folder := filepath.Join(t.TempDir(), ".cache", "mcp-sandbox-exec")
		f := cachedLauncher("/codex")
		old := syscall.Umask(umask)
		err := cacheProbe(folder, f, cachedOptions)
		syscall.Umask(old)
		if err != nil {
			t.Errorf("umask %04o: %v", umask, err)
		}
		for path, want := range map[string]fs.FileMode{
			filepath.Dir(folder): fs.ModeDir | 0o700, folder: fs.ModeDir | 0o700,
			filepath.Join(folder, hashOf(cacheKey(f))): 0o600,
		} {
			if info, err := os.Lstat(path); err != nil || info.Mode() != want {
				t.Errorf("umask %04o: %s: %v, %v", umask, path, info, err)
			}
		}
		if options, err := cachedProbe(folder, f); options == nil {
			t.Errorf("umask %04o: %v", umask, err)
		}
	}
}

// A cache that is not this user's alone is not used, neither to read nor to
// write, and nothing in it or behind it is changed.
func TestCacheThatIsNotTrusted(t *testing.T) {
	elsewhere := func(t *testing.T, path string) string {
		t.Helper()
		moved := filepath.Join(t.TempDir(), "moved")
		if err := errors.Join(os.Rename(path, moved), os.Symlink(moved, path)); err != nil {
			t.Fatal(err)
		}
		return moved
	}
	chmod := func(path string, mode fs.FileMode) func(*testing.T) {
		return func(t *testing.T) {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	chown := func(path string) func(*testing.T) {
		return func(t *testing.T) {
			if err := os.Lchown(path, 12345, -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder, entry, f := "", "", (*launcherFile)(nil)
	type trust struct {
		name     string
		spoil    func(t *testing.T)
		replaced bool // an entry may be replaced, what it was is not used
	}
	tests := []trust{
		{"the folder is a link", func(t *testing.T) { elsewhere(t, folder) }, false},
		{"the folder is a file", func(t *testing.T) {
			if err := errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a group can write the folder", func(t *testing.T) { chmod(folder, 0o770)(t) }, false},
		{"everybody can write the folder", func(t *testing.T) { chmod(folder, 0o707)(t) }, false},
		{"everybody can write the folder above", func(t *testing.T) { chmod(filepath.Dir(folder), 0o757)(t) }, false},
		{"an entry is a link", func(t *testing.T) { elsewhere(t, entry) }, true},
		{"a group can write an entry", func(t *testing.T) { chmod(entry, 0o620)(t) }, true},
		{"everybody can write an entry", func(t *testing.T) { chmod(entry, 0o602)(t) }, true},
	}
	if os.Geteuid() == 0 { // who alone can give files away
		tests = append(tests, []trust{
			{"the folder is another user's", func(t *testing.T) { chown(folder)(t) }, false},
			{"the folder above is another user's", func(t *testing.T) { chown(filepath.Dir(folder))(t) }, false},
			{"an entry is another user's", func(t *testing.T) { chown(entry)(t) }, true},
		}...)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			folder, entry, f = newCache(t)
			test.spoil(t)
			if options, err := cachedProbe(folder, f); options != nil || err == nil {
				t.Errorf("it is read: %q, %v", options, err)
			}
			if err := cacheProbe(folder, f, cachedOptions); (err == nil) != test.replaced {
				t.Errorf("it is written: %v", err)
			}
			if options, err := cachedProbe(folder, f); (options != nil) != test.replaced {
				t.Errorf("after it was written: %q, %v", options, err)
			}
		})
	}
}

// Nothing is made in a folder that another user can write, as it may be his.
func TestCacheIsNotMadeElsewhere(t *testing.T) {
	home := t.TempDir()
	if err := os.Chmod(home, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"mcp-sandbox-exec", ".cache/mcp-sandbox-exec", "a/b/mcp-sandbox-exec"} {
		if err := cacheProbe(filepath.Join(home, folder), cachedLauncher("/codex"), cachedOptions); err == nil {
			t.Errorf("%s is made", folder)
		}
	}
	if made := files(t, home); len(made) > 0 {
		t.Errorf("there is %q", made)
	}
}

// A link in the place of an entry is replaced, and what it leads to stays as it
// was.
func TestCacheDoesNotFollowLinks(t *testing.T) {
	folder, entry, f := newCache(t)
	target := filepath.Join(t.TempDir(), "target")
	if err := errors.Join(os.WriteFile(target, []byte("mine"), 0o600), os.Remove(entry), os.Symlink(target, entry)); err != nil {
		t.Fatal(err)
	}
	if err := cacheProbe(folder, f, cachedOptions); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(target); string(text) != "mine" {
		t.Errorf("the target is %q, %v", text, err)
	}
	if info, err := os.Lstat(entry); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the entry is %v, %v", info, err)
	}
}

// An entry that is damaged in any byte is not used, and replaced by the next
// probe.
func TestDamagedCacheEntry(t *testing.T) {
	folder, entry, f := newCache(t)
	whole, err := os.ReadFile(entry)
	if err != nil {
		t.Fatal(err)
	}
	damaged := map[string][]byte{
		"garbage": []byte("\xff\x00garbage"), "more": append(slices.Clone(whole), '\n'),
		"twice": slices.Concat(whole, whole), "huge": make([]byte, 1<<20),
		"of another launcher": encodeCacheEntry(cacheKey(cachedLauncher("/other")), cachedOptions),
		"without the option":  encodeCacheEntry(cacheKey(f), launcherOptions{"--help"}),
		"without any option":  encodeCacheEntry(cacheKey(f), nil),
		"not an option":       encodeCacheEntry(cacheKey(f), launcherOptions{StateOption, "help"}),
		"of another format":   []byte(strings.Replace(string(whole), "probe 1", "probe 2", 1)),
	}
	for i := range whole {
		damaged[fmt.Sprintf("cut at %d", i)] = whole[:i]
		flipped := slices.Clone(whole)
		flipped[i] ^= 1
		damaged[fmt.Sprintf("flipped at %d", i)] = flipped
	}
	for name, text := range damaged {
		if err := os.WriteFile(entry, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if options, err := cachedProbe(folder, f); options != nil || err == nil {
			t.Errorf("%s: %q, %v", name, options, err)
		}
	}
	if err := cacheProbe(folder, f, cachedOptions); err != nil {
		t.Fatal(err)
	}
	if options, err := cachedProbe(folder, f); options == nil {
		t.Errorf("a damaged entry was not replaced: %v", err)
	}
}

// What is no file in the place of an entry holds up nothing.
func TestCacheEntryThatIsNoFile(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"FIFO":   func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		folder, entry, f := newCache(t)
		if err := errors.Join(os.Remove(entry), put(entry)); err != nil {
			t.Fatal(err)
		}
		if options, err := cachedProbe(folder, f); options != nil || err == nil {
			t.Errorf("%s: %q, %v", name, options, err)
		}
		cacheProbe(folder, f, cachedOptions) // which can replace only the FIFO
		if got := files(t, folder); len(got) != 1 {
			t.Errorf("%s: there are the files %q", name, got)
		}
	}
}

// The cache does not grow without end, and takes away nothing else but what a writer
// has left behind.
func TestTidyCache(t *testing.T) {
	folder, entry, f := newCache(t)
	other, leftover := filepath.Join(folder, "retained.other"), filepath.Join(folder, "new-1-1")
	if err := errors.Join(os.WriteFile(other, nil, 0o600), os.WriteFile(leftover, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	longAgo := time.Now().Add(-2 * time.Hour)
	for _, path := range []string{entry, other, leftover} {
		if err := os.Chtimes(path, longAgo, longAgo); err != nil {
			t.Fatal(err)
		}
	}
	for i := range cacheLimit {
		if err := cacheProbe(folder, cachedLauncher(fmt.Sprint("/", i)), cachedOptions); err != nil {
			t.Fatal(err)
		}
	}
	names := files(t, folder)
	if len(names) != cacheLimit+1 || !slices.Contains(names, filepath.Base(other)) {
		t.Errorf("there are %d files: %q", len(names), names)
	}
	if options, _ := cachedProbe(folder, f); options != nil {
		t.Error("the oldest entry is still there")
	}
}

// A launcher that lists more than an entry may hold is probed each time.
func TestCacheEntryLimit(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "mcp-sandbox-exec")
	f := cachedLauncher("/codex")
	options := launcherOptions{"--" + strings.Repeat("x", cacheEntryLimit), StateOption}
	if err := cacheProbe(folder, f, options); err == nil {
		t.Error("it was written")
	}
	if got, err := cachedProbe(folder, f); got != nil || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// An entry is used if and only if a plain reading of its lines finds its hash, the
// launcher, and options with the one for the state among them; and what is used is
// what these lines say.
func FuzzCacheEntry(f *testing.F) {
	launcher := cachedLauncher("/opt/codex/bin/codex")
	key := cacheKey(launcher)
	for _, options := range []launcherOptions{nil, cachedOptions, {StateOption}, {StateOption, ""}, {"--help"}, {"--a b", StateOption}, {StateOption, "-c"}} {
		entry := encodeCacheEntry(key, options)
		_, content, _ := strings.Cut(string(entry), "\n")
		f.Add(entry, false)
		f.Add([]byte(content), true)
		f.Add([]byte(content[:len(content)-1]), true)
		f.Add([]byte(content[1:]), true)
	}
	f.Add(encodeCacheEntry(cacheKey(cachedLauncher("/other")), cachedOptions), false)
	option := regexp.MustCompile(`^--[-_a-zA-Z0-9]+$`)
	f.Fuzz(func(t *testing.T, text []byte, addHash bool) {
		if addHash { // which no chance would find
			text = fmt.Appendf(nil, "%x\n%s", sha256.Sum256(text), text)
		}
		lines := strings.SplitAfter(string(text), "\n")
		valid := len(lines) > 5 && lines[len(lines)-1] == "" &&
			lines[0] == fmt.Sprintf("%x\n", sha256.Sum256(text[len(lines[0]):])) &&
			lines[1] == "mcp-sandbox-exec probe 1\n" && lines[2] == "\"/opt/codex/bin/codex\"\n" &&
			lines[3] == "1 2 3 4.000000005 6.000000007\n" && slices.Contains(lines[4:], StateOption+"\n")
		var want launcherOptions
		for i := 4; valid && i < len(lines)-1; i++ {
			name := strings.TrimSuffix(lines[i], "\n")
			valid = option.MatchString(name)
			want = append(want, name)
		}
		got, err := decodeCacheEntry(text, key)
		if valid != (err == nil) || valid && !slices.Equal(got, want) || !valid && got != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	})
}
