package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/ownfolder"
)

// authority is one that a call has brought, as far as it is retained.
func authority(state, launcher string) *Authority {
	return &Authority{metadata: &Metadata{state: []byte(state)}, launcher: &launcherFile{path: launcher}}
}

const codex = "/opt/codex"

// A shelf is a folder of records, for a test that fails when one cannot be written.
type shelf struct {
	Records
	t *testing.T
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	return shelf{Records{filepath.Join(t.TempDir(), "records")}, t}
}

// retain writes down that this test's process, which runs, has a state.
func (s shelf) retain(server Server, state string) *Record {
	s.t.Helper()
	record, err := s.Retain(authority(state, codex), server, os.Getpid())
	if err != nil {
		s.t.Fatal(err)
	}
	return record
}

// retainOther writes down that another process has it, which is like this one but for
// a change.
func (s shelf) retainOther(server Server, state string, change func(*process)) *Record {
	s.t.Helper()
	record := s.retain(server, state)
	if err := s.Withdraw(record); err != nil {
		s.t.Fatal(err)
	}
	change(&record.process)
	record.PID = record.process.id
	if err := s.write(record); err != nil {
		s.t.Fatal(err)
	}
	return record
}

// ended makes a process an earlier one with the same id.
func ended(p *process) { p.start = "1" + p.start }

// putBack writes a record's file once more.
func (s shelf) putBack(record *Record) {
	s.t.Helper()
	if err := s.open().Write(record.name.String(), record.encode(), false); err != nil {
		s.t.Fatal(err)
	}
}

func (s shelf) path(r *Record) string { return filepath.Join(s.Dir, r.name.String()) }

// open returns the folder.
func (s shelf) open() *ownfolder.Folder {
	s.t.Helper()
	opened, err := s.Records.open()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { opened.Close() })
	return opened
}

// states returns the states of the records that count, by their servers.
func (s shelf) states() map[Server]string {
	s.t.Helper()
	records, err := s.List("", "")
	if err != nil {
		s.t.Fatal(err)
	}
	found := map[Server]string{}
	for _, r := range records {
		found[r.Server] = string(r.state)
	}
	return found
}

func TestDefaultRecordsDir(t *testing.T) {
	for _, test := range []struct {
		env  []string
		want string
	}{
		{[]string{"XDG_RUNTIME_DIR=/run/user/7"}, "/run/user/7/mcp-sandbox-exec"},
		{[]string{"XDG_RUNTIME_DIR=/run/a b/"}, "/run/a b/mcp-sandbox-exec"},
		{[]string{"XDG_RUNTIME_DIR=run"}, ""},
		{[]string{"XDG_RUNTIME_DIR=", "HOME=/home/a", "TMPDIR=/tmp"}, ""},
		{nil, ""},
	} {
		if got := DefaultRecordsDir(test.env); got != test.want {
			t.Errorf("%q: %q", test.env, got)
		}
	}
}

// What is read is what was written, for this user alone, whatever the umask is.
func TestRetain(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o777} {
		r, s := newShelf(t), Server{"repl", "devbox"}
		before := time.Now()
		old := syscall.Umask(umask)
		written, err := r.Retain(authority(`{ "a":1}`, codex), s, os.Getpid())
		syscall.Umask(old)
		if err != nil {
			t.Fatalf("umask %04o: %v", umask, err)
		}
		for path, want := range map[string]fs.FileMode{r.Dir: fs.ModeDir | 0o700, r.path(written): 0o600} {
			if info, err := os.Lstat(path); err != nil || info.Mode() != want {
				t.Errorf("umask %04o: %s: %v, %v", umask, path, info, err)
			}
		}
		read, err := r.Compare(authority(`{"a": 1}`, codex), s)
		if err != nil {
			t.Fatalf("umask %04o: %v", umask, err)
		}
		for _, record := range []*Record{written, read} {
			if record.Server != s || record.PID != os.Getpid() || record.Fingerprint != fingerprint([]byte(`{"a":1}`), codex) ||
				record.Since.Before(before) || record.Since.After(time.Now()) || record.Since.Location() != time.UTC || record.Liveness() != Running {
				t.Errorf("it is %+v", record)
			}
		}
		if !read.Since.Equal(written.Since) || string(read.state) != `{ "a":1}` {
			t.Errorf("%+v is read as %+v", written, read)
		}
	}
}

// A process that is not there has no record.
func TestRetainOfNoProcess(t *testing.T) {
	for _, pid := range []int{-1, 0, math.MaxInt32} {
		r := newShelf(t)
		record, err := r.Retain(authority("{}", codex), Server{"repl", ""}, pid)
		if codeOf(t, err) != CodeRecordUnusable || record != nil || !strings.Contains(err.Error(), fmt.Sprint(pid)) {
			t.Errorf("%d: %+v, %v", pid, record, err)
		}
		if found := r.states(); len(found) > 0 {
			t.Errorf("%d: there is %q", pid, found)
		}
	}
}

func TestWrongNames(t *testing.T) {
	r := newShelf(t)
	for _, s := range []Server{{"", ""}, {"", "devbox"}, {"repl", "\xff"}} {
		if record, err := r.Retain(authority("{}", codex), s, os.Getpid()); codeOf(t, err) != CodeUsage || record != nil {
			t.Errorf("%q is retained: %+v, %v", s, record, err)
		}
		if record, err := r.Compare(authority("{}", codex), s); codeOf(t, err) != CodeUsage || record != nil {
			t.Errorf("%q is compared: %+v, %v", s, record, err)
		}
	}
	if _, err := os.Lstat(r.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
}

// Each pair of names has a record of its own, and no name is seen by the file system.
func TestOddNames(t *testing.T) {
	r := newShelf(t)
	want := map[Server]string{}
	for i, name := range oddNames {
		for j, environment := range append(oddNames, "") {
			if i != j && i > 0 && environment != "" {
				continue
			}
			s := Server{name, environment}
			want[s] = fmt.Sprint(len(want))
			r.retain(s, want[s])
		}
	}
	if got := r.states(); !maps.Equal(got, want) {
		t.Errorf("there is %q, not %q", got, want)
	}
	form := regexp.MustCompile(`^retained\.[0-9a-f]{32}\.([0-9a-f]{32}|none)\.1\.[0-9]+-[0-9]+-[0-9]+$`)
	for _, file := range files(t, r.Dir) {
		if !form.MatchString(file) {
			t.Errorf("a file is called %q", file)
		}
	}
	for s, state := range want {
		if s.Environment == "" {
			continue // then all with the name are meant
		}
		if record, err := r.Compare(authority(state, codex), s); err != nil || record.Server != s {
			t.Errorf("%q: %+v, %v", s, record, err)
		}
		if record, err := r.Compare(authority(`"another"`, codex), s); codeOf(t, err) != CodeAuthorityChanged || record.Server != s {
			t.Errorf("%q with another state: %+v, %v", s, record, err)
		}
	}
}

func TestCompare(t *testing.T) {
	r, s := newShelf(t), Server{"repl", ""}
	kept := r.retain(s, `{"n":12345678901234567890,"x":[1.0,-0],"s":"\u00e9"}`)
	for _, test := range []struct {
		state, launcher string
		want            string // a part of the refusal; "" for none
	}{
		{"{ \"s\":\"é\",\n\"x\":[1.0,-0],\"n\":12345678901234567890}", codex, ""},
		{`{"n":12345678901234567891,"x":[1.0,-0],"s":"\u00e9"}`, codex, "another state"},
		{`{"n":12345678901234567890,"x":[1,-0],"s":"\u00e9"}`, codex, "another state"},
		{`{"n":12345678901234567890,"x":[1.0,0],"s":"\u00e9"}`, codex, "another state"},
		{`{"n":12345678901234567890,"x":[1.0,-0],"s":"e\u0301"}`, codex, "another state"},
		{`{"n":12345678901234567890,"x":[1.0,-0],"s":"\u00e9"}`, "/opt/../opt/codex", "names the launcher /opt/../opt/codex, and not /opt/codex"},
		{`{}`, "/opt/\ncodex", `names the launcher "/opt/\ncodex", and not /opt/codex`},
	} {
		record, err := r.Compare(authority(test.state, test.launcher), s)
		if record == nil || record.PID != os.Getpid() || record.Fingerprint != kept.Fingerprint {
			t.Errorf("%s: the record is %+v", test.state, record)
		}
		code := codeOf(t, err)
		if test.want == "" && code != "" || test.want != "" && (code != CodeAuthorityChanged || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", test.state, err)
		}
		if err != nil && (!strings.Contains(err.Error(), fmt.Sprintf(`under which process %d of server "repl" was started`, os.Getpid())) || strings.Contains(err.Error(), "12345")) {
			t.Errorf("%s: the words are %v", test.state, err)
		}
	}
}

// By its name alone a server is found while that is one. What is not found is told from
// what is there.
func TestCompareByName(t *testing.T) {
	r := newShelf(t)
	compare := func(s Server, want string) { // the environment, or a part of the refusal
		t.Helper()
		record, err := r.Compare(authority("{}", codex), s)
		if err == nil && record.Server.Environment != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", s, record, err)
		}
		if err != nil && (codeOf(t, err) != CodeAuthorityUnknown || record != nil) {
			t.Errorf("%q: %+v, %v", s, record, err)
		}
	}
	const nothing = `no authority is retained for server "repl"`
	compare(Server{"repl", ""}, nothing) // without a folder
	r.retain(Server{"other", "laptop"}, "{}")
	compare(Server{"repl", ""}, nothing)
	compare(Server{"repl", "laptop"}, nothing+` in the environment "laptop"`)
	if _, err := r.Compare(authority("{}", codex), Server{"repl", "laptop"}); strings.Contains(err.Error(), "there is one") {
		t.Errorf("where there is none: %v", err)
	}
	r.retain(Server{"repl", "a\n"}, "{}")
	compare(Server{"repl", ""}, "a\n")
	compare(Server{"repl", "a\n"}, "a\n")
	compare(Server{"repl", "a"}, nothing+` in the environment "a"; there is one in "a\n"`)
	r.retain(Server{"repl", "none"}, "{}")
	compare(Server{"repl", ""}, `server "repl" has an authority in each of several environments: "a\n", "none"`)
	compare(Server{"repl", "none"}, "none")
	compare(Server{"repl", "laptop"}, `; there is one in "a\n", "none"`)
	r.retain(Server{"repl", ""}, "{}")
	compare(Server{"repl", ""}, `several environments: the unnamed environment, "a\n", "none"`)
	compare(Server{"repl", "laptop"}, `; there is one in the unnamed environment, "a\n", "none"`)

	r = newShelf(t)
	r.retain(Server{"repl", ""}, "{}")
	compare(Server{"repl", ""}, "")
	compare(Server{"repl", "none"}, nothing+` in the environment "none"; there is one in the unnamed environment`)
}

// A folder or a record that is not this user's alone is refused, and never taken for
// one that is not there; the refusal says which it is.
func TestUnusableRecords(t *testing.T) {
	var r shelf
	var record *Record
	of := func(change func(path string) error) func(string) error { return change }
	chmod := func(mode fs.FileMode) func(string) error {
		return of(func(path string) error { return os.Chmod(path, mode) })
	}
	// In the place of what is moved away something else is put.
	instead := func(put func(path string) error) func(string) error {
		return of(func(path string) error {
			return errors.Join(os.Rename(path, filepath.Join(filepath.Dir(r.Dir), "moved")), put(path))
		})
	}
	link := instead(func(path string) error { return os.Symlink(filepath.Join(filepath.Dir(r.Dir), "moved"), path) })
	file := instead(func(path string) error { return os.WriteFile(path, nil, 0o600) })
	fifo := instead(func(path string) error { return unix.Mkfifo(path, 0o600) })
	folder := instead(func(path string) error { return os.Mkdir(path, 0o700) })
	chown := of(func(path string) error { return os.Lchown(path, 12345, -1) })
	ofFolder := map[string]func(string) error{
		"0750": chmod(0o750), "0705": chmod(0o705), "0710": chmod(0o710), "0720": chmod(0o720), "0701": chmod(0o701), "0702": chmod(0o702),
		"link": link, "file": file, "FIFO": fifo,
	}
	ofRecord := map[string]func(string) error{
		"0640": chmod(0o640), "0604": chmod(0o604), "0620": chmod(0o620), "0602": chmod(0o602), "0601": chmod(0o601), "link": link, "FIFO": fifo, "folder": folder, "empty": file,
	}
	if os.Geteuid() == 0 { // who alone can give files away
		ofFolder["other owner"], ofRecord["other owner"] = chown, chown
	}
	check := func(name, path string, err error) {
		t.Helper()
		if codeOf(t, err) != CodeRecordUnusable || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := Server{"repl", "devbox"}
	use := func(name, path string) {
		t.Helper()
		for _, named := range []Server{s, {s.Name, ""}} {
			found, err := r.Compare(authority("{}", codex), named)
			check(name+": Compare", path, err)
			if found != nil {
				t.Errorf("%s: Compare finds %+v", name, found)
			}
		}
		for _, selected := range []Server{{}, s, {s.Name, ""}, {"", s.Environment}} {
			found, err := r.List(selected.Name, selected.Environment)
			check(name+": List", path, err)
			removed, err := r.Prune(selected.Name, selected.Environment)
			check(name+": Prune", path, err)
			if found != nil || removed != nil {
				t.Errorf("%s: List finds %v, and Prune %v", name, found, removed)
			}
		}
	}
	for name, spoil := range ofFolder {
		name = "folder " + name
		r = newShelf(t)
		record = r.retain(s, "{}")
		if err := spoil(r.Dir); err != nil {
			t.Fatal(err)
		}
		use(name, r.Dir)
		_, err := r.Retain(authority("{}", codex), s, os.Getpid())
		check(name+": Retain", r.Dir, err)
		check(name+": Withdraw", r.Dir, r.Withdraw(record))
		check(name+": CheckWritable", r.Dir, r.CheckWritable())
	}
	for name, spoil := range ofRecord {
		name = "record " + name
		r = newShelf(t)
		record = r.retain(s, "{}")
		if err := spoil(r.path(record)); err != nil {
			t.Fatal(err)
		}
		use(name, r.path(record))
		if err := r.CheckWritable(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// What is in the way of one server is not in that of another.
		r.retain(Server{"repl", "laptop"}, "[]")
		if _, err := r.Compare(authority("[]", codex), Server{"repl", "laptop"}); err != nil {
			t.Errorf("%s: in another environment: %v", name, err)
		}
		for range 3 { // a folder stays, and yet is in nobody's way
			r.retain(s, "[]")
			if _, err := r.Compare(authority("[]", codex), s); err != nil {
				t.Errorf("%s: it is not replaced: %v", name, err)
			}
		}
	}
}

// Nothing is made where another user could put something else, nor below what is not
// there; and no folder at all is none.
func TestRecordsElsewhere(t *testing.T) {
	top := t.TempDir()
	for _, folder := range []string{"open", "empty"} {
		if err := os.Mkdir(filepath.Join(top, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(top, "open"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(top, "empty")) // which could be used
	for _, dir := range []string{"open/records", "open/../empty/a/records", ""} {
		r := Records{}
		if dir != "" {
			r.Dir = filepath.Join(top, dir)
		}
		_, ofRetain := r.Retain(authority("{}", codex), Server{"repl", ""}, os.Getpid())
		for _, err := range []error{ofRetain, r.CheckWritable()} {
			if codeOf(t, err) != CodeRecordUnusable || dir != "" && !strings.Contains(err.Error(), filepath.Dir(filepath.Clean(r.Dir))) {
				t.Errorf("%q: %v", dir, err)
			}
		}
		records, ofList := r.List("", "")
		removed, ofPrune := r.Prune("", "")
		if records != nil || removed != nil || codeOf(t, ofList) != CodeRecordUnusable || codeOf(t, ofPrune) != CodeRecordUnusable {
			t.Errorf("%q: %v, %v; %v, %v", dir, records, ofList, removed, ofPrune)
		}
	}
	// The words are a line, whatever the folder is called.
	if _, err := (Records{filepath.Join(top, "a\nb", "records")}).Retain(authority("{}", codex), Server{"repl", ""}, os.Getpid()); codeOf(t, err) != CodeRecordUnusable {
		t.Error(err)
	}
	for _, folder := range []string{"open", "empty"} {
		if made := files(t, filepath.Join(top, folder)); len(made) > 0 {
			t.Errorf("%s: there is %q", folder, made)
		}
	}
}

// That a record could be written is found out without writing anything.
func TestCheckWritable(t *testing.T) {
	r := newShelf(t)
	if err := r.CheckWritable(); err != nil {
		t.Errorf("before it is made: %v", err)
	}
	if made := files(t, filepath.Dir(r.Dir)); len(made) > 0 {
		t.Errorf("there is %q", made)
	}
	r.retain(Server{"repl", ""}, "{}")
	if err := r.CheckWritable(); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(r.Dir, 0o500); err != nil {
		t.Fatal(err)
	}
	err := r.CheckWritable()
	if asRoot := os.Geteuid() == 0; asRoot != (err == nil) || err != nil && (codeOf(t, err) != CodeRecordUnusable || !strings.Contains(err.Error(), r.Dir)) {
		t.Errorf("a folder that is closed: %v", err)
	}
	if err := os.Chmod(r.Dir, 0o700); err != nil { // so that it can be removed
		t.Fatal(err)
	}
}

// A record that is damaged in any byte is not used, and not taken for one that is not
// there. It is in the way of its own server only, and only until the next process.
func TestDamagedRecord(t *testing.T) {
	r, s := newShelf(t), Server{"repl", "devbox"}
	r.retain(Server{"repl", "laptop"}, "[]")
	other := r.retain(Server{"other", "devbox"}, "{}")
	record := r.retain(s, `{"a":"secret"}`)
	path := r.path(record)
	whole := record.encode()
	rehashed := func(old, changed string) []byte {
		content := strings.Replace(string(whole[65:]), old, changed, 1)
		return []byte(hashOf(content) + "\n" + content)
	}
	damaged := map[string][]byte{
		"garbage": []byte("\xff\x00garbage"), "more": append(slices.Clone(whole), '\n'), "before": append([]byte("\n"), whole...),
		"twice": slices.Concat(whole, whole), "huge": make([]byte, 4*recordLimit()), "blown up": append(slices.Clone(whole), make([]byte, recordLimit())...),
		"of another server":      other.encode(),
		"of another environment": rehashed(`"devbox"`, `"laptop"`),
		"of another version":     rehashed("record 1", "record 2"),
		"without its state":      rehashed(`{"a":"secret"}`, ""),
		"with no JSON":           rehashed(`{"a":"secret"}`, `{"a":"secret"`),
		"with the state null":    rehashed(`{"a":"secret"}`, "null"),
		"with another spelling":  rehashed(`"devbox"`, "`devbox`"),
		"with a wrong name":      rehashed(`"repl"`, `""`),
		"of no process":          rehashed(fmt.Sprintf("\n%d\n", os.Getpid()), "\nx\n"),
		"at no time":             rehashed("Z\n", "\n"),
		"with a wrong hash":      append([]byte(hashOf("")), whole[64:]...),
		"without its hash":       whole[65:],
	}
	for i := range whole {
		damaged[fmt.Sprintf("cut at %d", i)] = whole[:i]
		for _, bit := range []byte{1, 0x20, 0x80} {
			flipped := slices.Clone(whole)
			flipped[i] ^= bit
			damaged[fmt.Sprintf("flipped at %d by %#x", i, bit)] = flipped
		}
	}
	for name, text := range damaged {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, named := range []Server{s, {s.Name, ""}} {
			found, err := r.Compare(authority(`{"a":"secret"}`, codex), named)
			if codeOf(t, err) != CodeRecordUnusable || found != nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
		if removed, err := r.Prune("", ""); codeOf(t, err) != CodeRecordUnusable || removed != nil {
			t.Errorf("%s: it is removed: %v, %v", name, removed, err)
		}
	}
	for _, s := range []Server{{"repl", "laptop"}, other.Server} {
		if _, err := r.List(s.Name, s.Environment); err != nil {
			t.Errorf("a damaged record is in the way of %s: %v", s, err)
		}
	}
	// What is said of a server that has no record is the same.
	if _, err := r.Compare(authority("{}", codex), Server{"repl", "desktop"}); codeOf(t, err) != CodeAuthorityUnknown {
		t.Errorf("a damaged record is in the way of another environment: %v", err)
	}
	r.retain(s, "{}")
	if _, err := r.Compare(authority("{}", codex), s); err != nil {
		t.Errorf("a damaged record was not replaced: %v", err)
	}
}

// What else is in the folder is nobody's record.
func TestAlienFiles(t *testing.T) {
	r := newShelf(t)
	r.retain(Server{"repl", ""}, "{}")
	of := newRecordName(Server{"repl", ""}, 99, "")
	aliens := []string{"README", "retained", ".retained", "new-1-1", "retained." + strings.Repeat("x", 80), of.String(), of.String() + "1-1.bak", strings.Replace(of.String(), ".99.", ".099.", 1) + "1-1"}
	for _, name := range aliens {
		if err := os.WriteFile(filepath.Join(r.Dir, name), []byte("theirs"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(r.Dir, "folder"), 0o777); err != nil {
		t.Fatal(err)
	}
	want := map[Server]string{{"repl", ""}: "{}"}
	if got := r.states(); !maps.Equal(got, want) {
		t.Errorf("there is %q", got)
	}
	r.retainOther(Server{"repl", ""}, "{}", ended)
	if removed, err := r.Prune("", ""); err != nil || len(removed) != 1 {
		t.Errorf("%v, %v", removed, err)
	}
	if left := files(t, r.Dir); len(left) != len(aliens)+1 {
		t.Errorf("there are %q", left)
	}
}

// The newest record is the one that counts, and the others are gone, even when there
// were more than ten.
func TestNewestCounts(t *testing.T) {
	r, s := newShelf(t), Server{"repl", ""}
	r.retain(Server{"repl", "devbox"}, "[]")
	for i := range 12 {
		state := fmt.Sprint(i)
		r.retain(s, state)
		if got := r.states()[s]; got != state {
			t.Errorf("after %s there is %s", state, got)
		}
		if left := files(t, r.Dir); len(left) != 2 {
			t.Errorf("after %s there are %q", state, left)
		}
	}
}

// What a writer has left behind that was killed goes away when it is old, with the next
// record.
func TestLeftovers(t *testing.T) {
	r, s := newShelf(t), Server{"repl", ""}
	r.retain(s, "{}")
	for name, age := range map[string]time.Duration{"new-1-1": 2 * time.Hour, "new-2-2": 0} {
		at := time.Now().Add(-age)
		path := filepath.Join(r.Dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	second := r.retain(s, "{}")
	want := []string{"new-2-2", second.name.String()}
	if got := files(t, r.Dir); !slices.Equal(got, want) {
		t.Errorf("there is %q, not %q", got, want)
	}
}

// A record that is taken back leaves what was before.
func TestWithdraw(t *testing.T) {
	r, s := newShelf(t), Server{"repl", ""}
	withdraw := func(record *Record, want map[Server]string) {
		t.Helper()
		if err := r.Withdraw(record); err != nil {
			t.Fatal(err)
		}
		if got := r.states(); !maps.Equal(got, want) {
			t.Errorf("after %s was taken back there is %q", record.state, got)
		}
	}
	first := r.retain(s, "1")
	second := r.retain(s, "2")
	withdraw(second, map[Server]string{s: "1"})
	withdraw(second, map[Server]string{s: "1"}) // which is gone already
	withdraw(r.retain(s, "3"), map[Server]string{s: "1"})
	withdraw(first, map[Server]string{})
	// Of an older one nothing is seen.
	first = r.retain(s, "1")
	r.retain(s, "2")
	withdraw(first, map[Server]string{s: "2"})
	// Of several, whichever is first.
	second, third := r.retain(s, "3"), r.retain(s, "4")
	withdraw(second, map[Server]string{s: "4"})
	withdraw(third, map[Server]string{s: "2"})
	second, third = r.retain(s, "5"), r.retain(s, "6")
	withdraw(third, map[Server]string{s: "5"})
	withdraw(second, map[Server]string{s: "2"})
}

// A number can be no higher than the highest, which only a made-up file can have.
func TestHighestNumber(t *testing.T) {
	r, s := newShelf(t), Server{"repl", ""}
	record := r.retain(s, "1")
	record.name.number = math.MaxUint64 - 1
	if err := os.WriteFile(r.path(record), record.encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	highest := r.retain(s, "2")
	if _, err := r.Retain(authority("3", codex), s, os.Getpid()); codeOf(t, err) != CodeRecordUnusable || !strings.Contains(err.Error(), r.path(highest)) {
		t.Errorf("%v", err)
	}
	if got := r.states()[s]; got != "2" {
		t.Errorf("there is %q", got)
	}
}

// A record is of the process that was there, and not of another with the same id.
func TestLiveness(t *testing.T) {
	r := newShelf(t)
	for name, test := range map[string]struct {
		change func(*process)
		want   Liveness
	}{
		"as it is":         {func(*process) {}, Running},
		"another start":    {ended, Ended},
		"no such id":       {func(p *process) { p.id = math.MaxInt32 }, Ended},
		"no id":            {func(p *process) { p.id = -1 }, Ended},
		"another space":    {func(p *process) { p.space = "pid:[1]" }, Unknown},
		"and another id":   {func(p *process) { p.space, p.id = "pid:[1]", math.MaxInt32 }, Unknown},
		"another id there": {func(p *process) { p.id = os.Getppid() }, Ended},
	} {
		s := Server{"repl", name}
		r.retainOther(s, "{}", test.change)
		record, err := r.Compare(authority("{}", codex), s)
		if err != nil {
			t.Fatal(err)
		}
		if got := record.Liveness(); got != test.want {
			t.Errorf("%s: it is %s, not %s", name, got, test.want)
		}
	}
}

// What cannot be seen from here is not said to have ended.
func TestSeenFrom(t *testing.T) {
	p := process{1, "machine", "boot", "space", "start"}
	for _, test := range []struct {
		name   string
		change func(p, now *process)
		err    error
		want   Liveness
	}{
		{"the same", func(p, now *process) {}, nil, Running},
		{"none", func(p, now *process) { now.start = "" }, fs.ErrNotExist, Ended},
		{"an error", func(p, now *process) { now.start = "" }, fs.ErrPermission, Unknown},
		{"another start", func(p, now *process) { now.start = "later" }, nil, Ended},
		{"another space", func(p, now *process) { now.space = "other" }, fs.ErrNotExist, Unknown},
		{"no space", func(p, now *process) { now.space = "" }, fs.ErrPermission, Unknown},
		{"another boot", func(p, now *process) { now.boot, now.space = "other", "other" }, fs.ErrNotExist, Ended},
		{"no boot", func(p, now *process) { now.boot, now.space = "", "" }, fs.ErrPermission, Unknown},
		{"another machine", func(p, now *process) { now.machine = "other" }, nil, Unknown},
		{"another machine and boot", func(p, now *process) { now.machine, now.boot = "other", "other" }, fs.ErrNotExist, Unknown},
		{"no machine any more", func(p, now *process) { now.machine = "" }, nil, Unknown},
		{"never a machine", func(p, now *process) { p.machine, now.machine = "", "" }, nil, Running},
		{"never a machine, and another boot", func(p, now *process) { p.machine, now.machine, now.boot = "", "", "other" }, fs.ErrNotExist, Unknown},
	} {
		was, now := p, p
		test.change(&was, &now)
		if got := was.seenFrom(now, test.err); got != test.want {
			t.Errorf("%s: %s, not %s", test.name, got, test.want)
		}
	}
}

// The records of processes that ended are removed, older ones too, and no other.
func TestPrune(t *testing.T) {
	elsewhere := func(p *process) { p.space = "pid:[1]" }
	r := newShelf(t)
	fill := func() {
		if err := os.RemoveAll(r.Dir); err != nil {
			t.Fatal(err)
		}
		running := r.retain(Server{"a", "1"}, "0")
		r.retainOther(Server{"a", "1"}, "1", ended)
		r.putBack(running) // as if both had been written at the same moment
		r.retainOther(Server{"a", "2"}, "2", ended)
		r.retainOther(Server{"b", "1"}, "3", ended)
		older := r.retainOther(Server{"b", "2"}, "0", ended)
		r.retain(Server{"b", "2"}, "4")
		r.putBack(older)
		r.retainOther(Server{"c", ""}, "5", elsewhere)
		r.retainOther(Server{"d", ""}, "6", ended)
	}
	for _, test := range []struct{ server, environment, removed, left string }{
		{"", "", "1 2 3 0 6", "0 4 5"},
		{"a", "", "1 2", "0 3 4 5 6"},
		{"", "1", "1 3", "0 2 4 5 6"},
		{"a", "1", "1", "0 2 3 4 5 6"},
		{"b", "2", "0", "1 2 3 4 5 6"},
		{"b", "3", "", "1 2 3 4 5 6"},
		{"none", "", "", "1 2 3 4 5 6"},
		{"", "none", "", "1 2 3 4 5 6"},
		{"d", "", "6", "1 2 3 4 5"},
	} {
		fill()
		removed, err := r.Prune(test.server, test.environment)
		var states []string
		for _, record := range removed {
			states = append(states, string(record.state))
		}
		left := strings.Join(slices.Sorted(maps.Values(r.states())), " ")
		if err != nil || strings.Join(states, " ") != test.removed || left != test.left {
			t.Errorf("%q in %q: %q are removed, and %q left: %v", test.server, test.environment, states, left, err)
		}
	}
}

// What was removed is returned in the order of its servers. An older record that is
// damaged goes too, and nothing is said of it.
func TestPruned(t *testing.T) {
	r := newShelf(t)
	var want []string
	for i := range 9 {
		s := Server{fmt.Sprint(i), ""}
		older := r.path(r.retain(s, "{}"))
		r.retainOther(s, fmt.Sprint(i), ended)
		if err := os.WriteFile(older, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		want = append(want, s.Name)
	}
	removed, err := r.Prune("", "")
	var got []string
	for _, record := range removed {
		got = append(got, record.Server.Name)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q are removed, not %q: %v", got, want, err)
	}
	if left := files(t, r.Dir); len(left) > 0 {
		t.Errorf("there is %q", left)
	}
}

// A record that cannot be read is not pruned, nor anything else of its server; a damaged
// one is named when all others are pruned.
func TestPruneOfWhatIsWrong(t *testing.T) {
	r := newShelf(t)
	older, damaged := Server{"a", ""}, Server{"b", ""}
	first := r.retain(older, "1")
	r.retainOther(older, "2", ended)
	r.putBack(first)
	r.retainOther(Server{"c", ""}, "3", ended)
	if err := os.Chmod(r.path(first), 0o640); err != nil {
		t.Fatal(err)
	}
	if removed, err := r.Prune("", ""); codeOf(t, err) != CodeRecordUnusable || removed != nil || !strings.Contains(err.Error(), r.path(first)) {
		t.Errorf("%v, %v", removed, err)
	}
	if err := os.Chmod(r.path(first), 0o600); err != nil {
		t.Fatal(err)
	}
	path := r.path(r.retain(damaged, "4"))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	removed, err := r.Prune("", "")
	if codeOf(t, err) != CodeRecordUnusable || len(removed) != 2 || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, %v", removed, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, want := r.states(), map[Server]string{older: "1"}; !maps.Equal(got, want) {
		t.Errorf("there is %q", got)
	}
}

// If an older record cannot be removed, the newest one stays too, or the older one would
// count again.
func TestPruneOfWhatStays(t *testing.T) {
	r, s := newShelf(t), Server{"repl", ""}
	older := r.path(r.retain(s, "1"))
	r.retainOther(s, "2", ended)
	if err := os.Mkdir(older, 0o700); err != nil {
		t.Fatal(err)
	}
	if removed, err := r.Prune("", ""); codeOf(t, err) != CodeRecordUnusable || removed != nil || !strings.Contains(err.Error(), older) {
		t.Errorf("%v, %v", removed, err)
	}
	if got := r.states()[s]; got != "2" {
		t.Errorf("there is %q", got)
	}
}

// The records are listed in the order of their names, whatever that of the folder is.
func TestList(t *testing.T) {
	r := newShelf(t)
	for _, s := range []Server{{"b", "ä"}, {"a", "c"}, {"b", "a"}, {"Z", "z"}, {"a", ""}, {"a b", ""}, {"b", "Z"}} {
		r.retain(s, "{}")
	}
	for _, test := range []struct{ server, environment, want string }{
		{"", "", `["Z" in the environment "z" "a" "a" in the environment "c" "a b" "b" in the environment "Z" "b" in the environment "a" "b" in the environment "ä"]`},
		{"a", "", `["a" "a" in the environment "c"]`},
		{"", "z", `["Z" in the environment "z"]`},
		{"b", "a", `["b" in the environment "a"]`},
		{"a", "a", `[]`},
	} {
		records, err := r.List(test.server, test.environment)
		servers := []Server{}
		for _, record := range records {
			servers = append(servers, record.Server)
		}
		if got := fmt.Sprint(servers); got != test.want || err != nil {
			t.Errorf("%q in %q: %s, %v", test.server, test.environment, got, err)
		}
	}
}

// Programs that write and read at the same time are not in each other's way: there is
// always a record, which is a whole one, and in the end it is one of the last.
func TestRecordsAtTheSameTime(t *testing.T) {
	r, s := newShelf(t), Server{"repl", ""}
	r.retain(s, `"first"`)
	state := func(i int) string { return fmt.Sprintf(`"%d%s"`, i, bytes.Repeat([]byte("x"), 10_000)) }
	var writers, readers sync.WaitGroup
	done := make(chan bool)
	for range 2 {
		readers.Go(func() {
			for {
				if records, err := r.List("", ""); err != nil || len(records) != 1 {
					t.Errorf("there is %v, %v", records, err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	last := make([]string, 4)
	for i := range last {
		writers.Go(func() {
			for j := range 20 {
				last[i] = state(100*i + j)
				if _, err := r.Retain(authority(last[i], codex), s, os.Getpid()); err != nil {
					t.Error(err)
				}
				if i == 0 { // in one of them not all processes can be started
					record, err := r.Retain(authority(`"withdrawn"`, codex), s, os.Getpid())
					if err == nil {
						err = r.Withdraw(record)
					}
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	if got := r.states()[s]; !slices.Contains(last, got) {
		t.Errorf("there is %.20q", got)
	}
}

// A large record is written and read as any other.
func TestLargestRecord(t *testing.T) {
	r, long := newShelf(t), strings.Repeat("\x01", maxNameSize)
	state := `"` + strings.Repeat("x", MaxStateSize()-2) + `"`
	r.retain(Server{long, long}, state)
	if _, err := r.Compare(authority(state, codex), Server{long, ""}); err != nil {
		t.Error(err)
	}
}
