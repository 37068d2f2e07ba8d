package ownfolder

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // what a group can write is refused here and there
	os.Exit(m.Run())
}

// newFolder returns an open folder with a file "a" in it.
func newFolder(t *testing.T, denied uint32) *Folder {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own")
	if err := Make(path); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, denied)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Write("a", []byte("text"), true); err != nil {
		t.Fatal(err)
	}
	return f
}

// Folder and files are for this user alone, whatever the umask is.
func TestModes(t *testing.T) {
	for _, umask := range []int{0, 0o077, 0o777} {
		top := t.TempDir()
		old := syscall.Umask(umask)
		err := Make(filepath.Join(top, "own"))
		var f *Folder
		if err == nil {
			f, err = Open(filepath.Join(top, "own"), NoAccess)
		}
		if err == nil {
			err = f.Write("a", nil, false)
			f.Close()
		}
		syscall.Umask(old)
		if err != nil {
			t.Fatalf("umask %04o: %v", umask, err)
		}
		for path, want := range map[string]fs.FileMode{"own": fs.ModeDir | 0o700, "own/a": 0o600} {
			if info, err := os.Lstat(filepath.Join(top, path)); err != nil || info.Mode() != want {
				t.Errorf("umask %04o: %s: %v, %v", umask, path, info, err)
			}
		}
	}
}

// Each bit that gives others access counts, for the folder and for a file, if it is
// one of those that are denied. The error names what is wrong.
func TestAccessOfOthers(t *testing.T) {
	for _, test := range []struct {
		denied uint32
		mode   fs.FileMode
		want   string // a part of the error; "" for none
	}{
		{NoAccess, 0o700, ""},
		{NoAccess, 0o600 | fs.ModeSticky, ""},
		{NoAccess, 0o740, "other users can read it (mode 0740)"},
		{NoAccess, 0o704, "other users can read it (mode 0704)"},
		{NoAccess, 0o710, "other users can read it"},
		{NoAccess, 0o701, "other users can read it"},
		{NoAccess, 0o720, "other users can write it (mode 0720)"},
		{NoAccess, 0o702, "other users can write it"},
		{NoWrite, 0o755, ""},
		{NoWrite, 0o720, "other users can write it"},
		{NoWrite, 0o702, "other users can write it"},
	} {
		f := newFolder(t, test.denied)
		refused := func(what string, err error) {
			t.Helper()
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), what+": ")) {
				t.Errorf("%s with mode %v where %04o is denied: %v", what, test.mode, test.denied, err)
			}
		}
		if err := os.Chmod(f.Path("a"), test.mode); err != nil {
			t.Fatal(err)
		}
		_, err := f.Read("a", 10)
		refused(f.Path("a"), err)
		if test.mode&0o100 == 0 {
			continue // a folder without it is closed to its owner
		}
		if err := os.Chmod(f.Path(""), test.mode); err != nil {
			t.Fatal(err)
		}
		again, err := Open(f.Path(""), test.denied)
		refused(f.Path(""), err)
		if err == nil {
			again.Close()
		}
	}
}

// Who can write the folder above can put another one in the place of this one, unless
// it is one like /tmp. Neither is one used there, nor made.
func TestFolderAbove(t *testing.T) {
	for _, test := range []struct {
		mode  fs.FileMode
		owner int
		ok    bool
	}{
		{0o755, -1, true},
		{0o777 | fs.ModeSticky, -1, true},
		{0o775, -1, false},
		{0o757, -1, false},
		{0o755, 12345, false},
		{0o777 | fs.ModeSticky, 12345, false},
	} {
		if test.owner >= 0 && os.Geteuid() != 0 {
			continue // who is not root cannot give files away
		}
		f := newFolder(t, NoAccess)
		above := filepath.Dir(f.Path(""))
		if err := errors.Join(os.Chown(above, test.owner, -1), os.Chmod(above, test.mode)); err != nil {
			t.Fatal(err)
		}
		_, ofOpen := Open(f.Path(""), NoAccess)
		ofMake := Make(filepath.Join(above, "other"))
		ofCheck := CheckWritable(filepath.Join(above, "third"))
		for _, err := range []error{ofOpen, ofMake, ofCheck} {
			if (err == nil) != test.ok || err != nil && !strings.Contains(err.Error(), above) {
				t.Errorf("%v of %d: %v", test.mode, test.owner, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(above, "other")); (err == nil) != test.ok {
			t.Errorf("%v of %d: the folder that was made: %v", test.mode, test.owner, err)
		}
	}
}

// What belongs to another user is not used, though root could.
func TestOtherOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		return // who is not root cannot give files away
	}
	f := newFolder(t, NoAccess)
	if err := os.Chown(f.Path("a"), 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read("a", 10); err == nil || !strings.Contains(err.Error(), f.Path("a")+": it belongs to another user") {
		t.Errorf("the file: %v", err)
	}
	if err := os.Chown(f.Path(""), 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(f.Path(""), NoAccess); err == nil || !strings.Contains(err.Error(), f.Path("")+": it belongs to another user") {
		t.Errorf("the folder: %v", err)
	}
}

// What is no folder, or no file, is not taken for one, and not for one that is not
// there; and a FIFO holds up nothing.
func TestWrongKind(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink(filepath.Dir(path), path) },
		"broken": func(path string) error { return os.Symlink("nowhere", path) },
		"FIFO":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"file":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		f := newFolder(t, NoAccess)
		if err := put(f.Path("b")); err != nil {
			t.Fatal(err)
		}
		_, ofRead := f.Read("b", 10)
		if name != "file" && (ofRead == nil || errors.Is(ofRead, fs.ErrNotExist) || !strings.Contains(ofRead.Error(), f.Path("b"))) {
			t.Errorf("%s in the place of a file: %v", name, ofRead)
		}
		inside, ofOpen := Open(f.Path("b"), NoAccess)
		if ofOpen == nil {
			inside.Close()
		}
		if name != "folder" && (ofOpen == nil || errors.Is(ofOpen, fs.ErrNotExist) || !strings.Contains(ofOpen.Error(), f.Path("b"))) {
			t.Errorf("%s in the place of a folder: %v", name, ofOpen)
		}
		if (name == "file") != (ofRead == nil) || (name == "folder") != (ofOpen == nil) {
			t.Errorf("%s: %v, %v", name, ofRead, ofOpen)
		}
		// A file can be written in the place of anything but a folder.
		if err := f.Write("b", []byte("new"), false); (err == nil) != (name != "folder") {
			t.Errorf("%s is written over: %v", name, err)
		}
		for range 2 { // nothing is left of what was not written
			if names, err := f.list(); err != nil || len(names) != 2 {
				t.Errorf("%s: there are the files %q, %v", name, names, err)
			}
		}
	}
}

func TestMakeOfWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "there")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Make(path); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("it is changed: %v, %v", info, err)
	}
	if err := Make(filepath.Join(path, "a", "b")); !errors.Is(err, ErrNoParent) {
		t.Errorf("without a folder above: %v", err)
	}
}

func TestCheckWritable(t *testing.T) {
	top := t.TempDir()
	for _, folder := range []string{"closed", "open"} {
		if err := os.Mkdir(filepath.Join(top, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(top, "closed"), 0o500); err != nil {
		t.Fatal(err)
	}
	asRoot := os.Geteuid() == 0 // for whom no folder is closed
	for path, want := range map[string]bool{
		"open": true, "open/a": true, "open/a/b": false, "closed": asRoot, "closed/a": asRoot,
	} {
		err := CheckWritable(filepath.Join(top, path))
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), top) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if names, err := os.ReadDir(filepath.Join(top, "open")); err != nil || len(names) > 0 {
		t.Errorf("the check made %v, %v", names, err)
	}
}

// Of a file that somebody has blown up no more is read than shows that it is too
// large.
func TestReadLimit(t *testing.T) {
	f := newFolder(t, NoAccess)
	if err := os.Truncate(f.Path("a"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if text, err := f.Read("a", 1000); err != nil || len(text) != 1001 {
		t.Errorf("%d bytes are read, %v", len(text), err)
	}
	if text, err := f.Read("none", 1000); text != nil || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), f.Path("none")) {
		t.Errorf("a file that is not there: %q, %v", text, err)
	}
}

// A file is replaced as a whole: who reads meanwhile finds the old or the new one,
// and nothing else, also among the names.
func TestWriteReplaces(t *testing.T) {
	f := newFolder(t, NoAccess)
	size := 100_000
	if err := f.Write("a", bytes.Repeat([]byte("0"), size), false); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	done := make(chan bool)
	for i := range 4 {
		writers.Go(func() {
			own, err := Open(f.Path(""), NoAccess)
			if err != nil {
				t.Error(err)
				return
			}
			defer own.Close()
			for range 20 {
				if err := own.Write("a", bytes.Repeat([]byte{byte('0' + i)}, size), false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { writers.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		text, err := f.Read("a", int64(size))
		if err != nil || len(text) != size || bytes.Count(text, text[:1]) != size {
			t.Fatalf("%d bytes are read, of more than one writer: %v", len(text), err)
		}
		if names, err := f.Names(); err != nil || slices.ContainsFunc(names, func(name string) bool { return name != "a" }) {
			t.Fatalf("there are the files %q, %v", names, err)
		}
	}
}

// What is done is done in the folder that was opened, also after another one was put
// in its place.
func TestFolderThatIsReplaced(t *testing.T) {
	f := newFolder(t, NoAccess)
	path, moved := f.Path(""), f.Path("")+" moved"
	if err := errors.Join(os.Rename(path, moved), os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "a"), []byte("theirs"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if text, err := f.Read("a", 10); string(text) != "text" || err != nil {
		t.Errorf("it is read as %q, %v", text, err)
	}
	if err := errors.Join(f.Remove("a"), f.Write("b", nil, false)); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{path: "a", moved: "b"} {
		names, err := filepath.Glob(path + "/*")
		if err != nil || len(names) != 1 || filepath.Base(names[0]) != want {
			t.Errorf("%s: %q, %v", path, names, err)
		}
	}
}

func TestRemove(t *testing.T) {
	f := newFolder(t, NoAccess)
	for range 2 { // the second time it is gone already
		if err := f.Remove("a"); err != nil {
			t.Error(err)
		}
	}
	if names, err := f.Names(); err != nil || len(names) > 0 {
		t.Errorf("there are the files %q, %v", names, err)
	}
	if err := os.Mkdir(f.Path("b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove("b"); err == nil || !strings.Contains(err.Error(), f.Path("b")) {
		t.Errorf("a folder is removed: %v", err)
	}
}

// The oldest of some files go away beyond the number that is kept, and what a writer
// has left behind that was killed when it is an hour old.
func TestTrimAndLeftovers(t *testing.T) {
	const left, young = temporary + "1-1", temporary + "2-2"
	for _, test := range []struct {
		keep int
		want []string
	}{
		{9, []string{"0", "1", "2", "3", "a", young}},
		{3, []string{"0", "1", "2", "a", young}},
		{1, []string{"0", "a", young}},
		{0, []string{"a", young}},
	} {
		f := newFolder(t, NoAccess)
		aged := func(name string, age time.Duration) {
			t.Helper()
			at := time.Now().Add(-age)
			if err := errors.Join(os.WriteFile(f.Path(name), nil, 0o600), os.Chtimes(f.Path(name), at, at)); err != nil {
				t.Fatal(err)
			}
		}
		aged(left, time.Hour+time.Minute)
		aged(young, time.Hour-time.Minute)
		for i := range 4 {
			aged(fmt.Sprint(i), time.Duration(i+1)*2*time.Hour)
		}
		isNumber := func(name string) bool { return name != "a" }
		if err := errors.Join(f.Trim(test.keep, isNumber), f.RemoveLeftovers()); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(f.Path(""))
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		if err != nil || !slices.Equal(names, test.want) {
			t.Errorf("of which %d are kept: %q, %v", test.keep, names, err)
		}
	}
}

// All that leads to a folder decides where it is, down from the root.
func TestWay(t *testing.T) {
	top := t.TempDir()
	at := func(path string) string { return filepath.Join(top, path) }
	folder := func(path string, mode fs.FileMode) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(at(path), 0o700), os.Chmod(at(path), mode)); err != nil {
			t.Fatal(err)
		}
	}
	for above, mode := range map[string]fs.FileMode{"own": 0o755, "group": 0o770, "all": 0o707, "sticky": 0o777 | fs.ModeSticky, "foreign": 0o755} {
		folder(above+"/between/mine", 0o700)
		folder(above, mode)
	}
	links := map[string]string{
		"link": "own/between", "sticky/link": "../own", "all/link": at("own"), "round": at("link") + "/../between",
		"loop": "loop", "dangling": "nowhere", "sticky/foreign": "../own",
	}
	for link, target := range links {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		path string
		want bool
	}{
		{"own/between/mine", true},
		{"own/between/mine/", true},
		{"own//./between/.//mine", true},
		{"own/between/../between/mine", true},
		{"sticky/between/mine", true},
		{"link/mine", true},
		{"link/../between/mine", true},
		{"round/mine", true},
		{"sticky/link/between/mine", true},
		{"group/between/mine", false},
		{"all/between/mine", false},
		{"all/link/between/mine", false},
		{"all/../own/between/mine", false},
		{"loop/mine", false},
		{"dangling/mine", false},
		{"link", false},
		{"link//", false},
		{"round", false},
		{"own/between/mine/.", false},
		{"own/between/mine/..", false},
		{"nowhere/mine", false},
	}
	if os.Geteuid() == 0 { // who alone can give files away
		for _, path := range []string{"foreign", "sticky/foreign"} {
			if err := os.Lchown(at(path), 12345, -1); err != nil {
				t.Fatal(err)
			}
			tests = append(tests, struct {
				path string
				want bool
			}{path + "/between/mine", false})
		}
	}
	t.Chdir(at("own"))
	for _, test := range tests {
		f, err := Open(top+"/"+test.path, NoAccess)
		if (err == nil) != test.want || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", test.path, err)
		}
		if err == nil {
			f.Close()
		}
		if err := Make(top + "/" + test.path); (err == nil) != (test.want || test.path == "link" || test.path == "link//" || test.path == "round") {
			t.Errorf("%s is made: %v", test.path, err)
		}
		// The same from here.
		if f, err := Open("../"+test.path, NoAccess); (err == nil) != test.want {
			t.Errorf("../%s: %v", test.path, err)
		} else if err == nil {
			f.Close()
		}
	}
	for _, path := range []string{"/", "", ".", ".."} {
		if _, err := Open(path, NoAccess); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", path, err)
		}
	}
}
