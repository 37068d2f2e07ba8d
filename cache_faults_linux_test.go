package mcpsandboxexec_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// The probe cache is never a reason to fail, and what is wrong with it is not
// used: the launcher is probed then.
var caches = []fault{
	{"is as it should be", primed(asItIs), works, ""},
	{"is of the future", primed(ofTheFuture), works, ""},

	{"knows a launcher that is open for writing", writtenLater(0), "launcher-changed", "text file busy"},
	{"knows a launcher that is open for writing, for a check", all(writtenLater(1), check), "launcher-changed", "text file busy"},
	{"knows a launcher that is open for writing, for a dry run", all(writtenLater(2), options("--dry-run")), "launcher-changed", "text file busy"},

	{"is garbage", primed(entryHolds("\xff\x00")), works, ""},
	{"is empty", primed(entryHolds("")), works, ""},
	{"is cut", primed(cutEntry), works, ""},
	{"is a folder", primed(entryIs(func(path string) error { return os.Mkdir(path, 0o700) })), works, ""},
	{"is a FIFO", primed(entryIs(func(path string) error { return unix.Mkfifo(path, 0o600) })), works, ""},
	{"is a link", primed(linkedEntry), works, ""},
	{"is in a folder that is a link", primed(linkedFolder), works, ""},
	{"is in a folder that is a file", primed(folderIs(func(path string) error { return os.WriteFile(path, nil, 0o600) })), works, ""},
	{"is in a folder that is a FIFO", primed(folderIs(func(path string) error { return unix.Mkfifo(path, 0o600) })), works, ""},
	{"may be written by everybody", primed(modes("entry", 0o666)), works, ""},
	{"is in a folder that everybody may write", primed(modes("folder", 0o777)), works, ""},
	{"is below a folder that everybody may write", primed(modes("base", 0o777)), works, ""},
	{"may not be read", all(primed(modes("entry", 0)), through("with-user-rights")), works, ""},
	{"is in a folder that may not be written", all(primed(noEntry(0o500)), through("with-user-rights")), works, ""},
	{"is in a folder that may not be entered", all(primed(noEntry(0)), through("with-user-rights")), works, ""},
	{"is on a full file system", onTmpfs("full-beside-a-cache"), works, ""},
	{"may not have a size", all(withoutRecord, under("ulimit -f 0")), works, ""},
	{"is made with the umask 0777", all(under("umask 0777"), madeForThisUser), works, ""},
	{"is made with the umask 0", all(under("umask 0"), madeForThisUser), works, ""},
}

// Only root can give files away.
var cachesOfOthers = []fault{
	{"is somebody else's", primed(func(c *cacheFiles) { c.s.giveAway(c.entry) }), works, ""},
	{"is in a folder of somebody else", primed(func(c *cacheFiles) { c.s.giveAway(c.folder) }), works, ""},
	{"is below a folder of somebody else", primed(func(c *cacheFiles) { c.s.giveAway(c.base) }), works, ""},
}

// cacheFiles are what the program has made of HOME.
type cacheFiles struct {
	s                   *scene
	base, folder, entry string
	used                bool   // the launcher need not be probed
	also                func() // checks more
}

// primed runs the program once, so that there is an entry, and then spoils it.
func primed(spoil func(*cacheFiles)) setup {
	return func(s *scene) {
		base := s.work + "/home/.cache"
		cmd := exec.Command(s.files+"/mcp-sandbox-exec", "--state", "env:STATE", "--default-launcher", s.launcher, "--", "true")
		cmd.Env = append(slices.Clone(s.env), "STATE="+s.state, "RECORD="+s.t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			s.t.Fatalf("%v: %s", err, out)
		}
		entries, err := filepath.Glob(base + "/mcp-sandbox-exec/*")
		if err != nil || len(entries) != 1 {
			s.t.Fatalf("the cache holds %q, %v", entries, err)
		}
		c := &cacheFiles{s: s, base: base, folder: base + "/mcp-sandbox-exec", entry: entries[0]}
		// Nothing may keep the test from removing its folders.
		s.t.Cleanup(func() { os.Chmod(c.folder, 0o700) })
		spoil(c)
		s.also = func() {
			if c.also != nil {
				c.also()
			}
			if probed := s.recorded("probes") != ""; probed == c.used {
				s.t.Errorf("the launcher was probed: %v", probed)
			}
			if left, _ := filepath.Glob(c.folder + "/new-*"); len(left) > 0 {
				s.t.Errorf("there is still %q", left)
			}
		}
	}
}

func asItIs(c *cacheFiles) { c.used = true }

// writtenLater has a launcher that is opened for writing when it is in the cache.
func writtenLater(number int) setup {
	return all(executableFile(writtenLaunchers[number]), primed(func(c *cacheFiles) {
		c.used = true
		c.s.open(c.s.launcher, unix.O_WRONLY)
	}))
}

// ofTheFuture has files that are from after the clock went back.
func ofTheFuture(c *cacheFiles) {
	c.used = true
	future := time.Now().AddDate(10, 0, 0)
	for _, path := range []string{c.entry, c.folder, c.base} {
		c.s.check(os.Chtimes(path, future, future))
	}
}

func entryHolds(text string) func(*cacheFiles) {
	return func(c *cacheFiles) { c.s.check(os.WriteFile(c.entry, []byte(text), 0o600)) }
}

func cutEntry(c *cacheFiles) {
	info, err := os.Stat(c.entry)
	c.s.check(err)
	c.s.check(os.Truncate(c.entry, info.Size()-1))
}

func entryIs(put func(path string) error) func(*cacheFiles) {
	return func(c *cacheFiles) { c.s.check(errors.Join(os.Remove(c.entry), put(c.entry))) }
}

func folderIs(put func(path string) error) func(*cacheFiles) {
	return func(c *cacheFiles) { c.s.check(errors.Join(os.RemoveAll(c.folder), put(c.folder))) }
}

// elsewhere puts a link in the place of a file or folder. What it leads to must
// stay as it is.
func (c *cacheFiles) elsewhere(path string) {
	target := filepath.Join(c.s.t.TempDir(), "target")
	c.s.check(errors.Join(os.Rename(path, target), os.Symlink(target, path)))
	before := c.listing(target)
	c.also = func() {
		if after := c.listing(target); !slices.Equal(before, after) {
			c.s.t.Errorf("behind the link there was %q, and now is %q", before, after)
		}
	}
}

// listing says what a file, or each in a folder, is and when it was changed.
func (c *cacheFiles) listing(path string) (files []string) {
	c.s.check(filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			files = append(files, fs.FormatFileInfo(info)+info.ModTime().String())
		}
		return err
	}))
	return files
}

func linkedEntry(c *cacheFiles)  { c.elsewhere(c.entry) }
func linkedFolder(c *cacheFiles) { c.elsewhere(c.folder) }

func modes(which string, mode fs.FileMode) func(*cacheFiles) {
	return func(c *cacheFiles) {
		path := map[string]string{"entry": c.entry, "folder": c.folder, "base": c.base}[which]
		c.s.check(os.Chmod(path, mode))
	}
}

// noEntry leaves an empty folder of that mode.
func noEntry(mode fs.FileMode) func(*cacheFiles) {
	return func(c *cacheFiles) { c.s.check(errors.Join(os.Remove(c.entry), os.Chmod(c.folder, mode))) }
}

// withoutRecord has a launcher that prints what it gets, as it may write no file.
func withoutRecord(s *scene) {
	emptyEnvironment(s)
	s.setenv("HOME", s.work+"/home")
	s.also = func() {
		if left, _ := filepath.Glob(s.work + "/home/.cache/mcp-sandbox-exec/*"); len(left) > 0 {
			s.t.Errorf("there is still %q", left)
		}
	}
}

// madeForThisUser checks that the next run finds what this one has made.
func madeForThisUser(s *scene) {
	s.also = func() {
		base := s.work + "/home/.cache"
		entries, _ := filepath.Glob(base + "/mcp-sandbox-exec/*")
		if len(entries) != 1 {
			s.t.Fatalf("the cache holds %q", entries)
		}
		for path, want := range map[string]fs.FileMode{base: 0o700, base + "/mcp-sandbox-exec": 0o700, entries[0]: 0o600} {
			if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != want {
				s.t.Errorf("%s: %v, %v", path, info, err)
			}
		}
	}
}
