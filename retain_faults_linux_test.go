package mcpsandboxexec_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A use is one way to use the folder of the records.
type use int

const (
	retainUse use = iota
	dryUse
	retainedUse
	checkUse
	statusUse
	pruneUse
)

var uses = map[use]struct {
	name string
	set  setup
}{
	retainUse:   {"a run with --retain", options("--retain", "--server", "s")},
	dryUse:      {"a dry run with --retain", options("--dry-run", "--retain", "--server", "s")},
	retainedUse: {"a run with --retained", options("--retained", "--server", "s")},
	checkUse:    {"check --retained", all(check, options("--retained", "--server", "s"))},
	statusUse:   {"status", alone("status")},
	pruneUse:    {"status --prune", alone("status", "--prune")},
}

// outcomes says what comes of each use, as the fields of a fault do.
type outcomes map[use]string

const (
	unusable = "record-unusable"
	unknown  = "authority-unknown"
)

func noUse(code string) outcomes {
	return outcomes{retainUse: code, dryUse: code, retainedUse: code, checkUse: code, statusUse: code, pruneUse: code}
}

// but changes some outcomes.
func (o outcomes) but(code string, changed ...use) outcomes {
	for _, u := range changed {
		o[u] = code
	}
	return o
}

// everyUse is what comes of them without a fault.
func everyUse() outcomes {
	return noUse(answers).but(works, retainUse, retainedUse)
}

// readersOnly is for what writers need not read.
func readersOnly(code string) outcomes {
	return everyUse().but(code, retainedUse, checkUse, statusUse, pruneUse)
}

// writersOnly is for what readers need not write. A removal is a writer.
func writersOnly(code string) outcomes {
	return everyUse().but(code, retainUse, dryUse, pruneUse)
}

// withoutOne is for a folder that has no record.
func withoutOne() outcomes {
	return everyUse().but(unknown, retainedUse, checkUse)
}

// A recordFault is something that is wrong with the folder of the records, in which
// there is one of a process that has ended.
type recordFault struct {
	name string
	set  func(*recordFiles)
	want outcomes
	says string // in which @BASE@, @FOLDER@ and @ENTRY@ stand for the paths
}

// recordFiles are what the program has made of XDG_RUNTIME_DIR.
type recordFiles struct {
	s                   *scene
	base, folder, entry string
}

var recordFaults = []recordFault{
	{"nothing", func(*recordFiles) {}, everyUse(), ""},

	{"the variable is not set", func(c *recordFiles) { c.s.unsetenv("XDG_RUNTIME_DIR") }, noUse(unusable), "XDG_RUNTIME_DIR is not set"},
	{"the variable is empty", runtimeDir(""), noUse(unusable), "XDG_RUNTIME_DIR is not set"},
	{"the variable is relative", runtimeDir("."), noUse(unusable), "XDG_RUNTIME_DIR is not set"},

	{"what is above is not there", at("@BASE@", nothing), noUse(unusable), "@BASE@"},
	{"what is above is a file", at("@BASE@", emptyFile), noUse(unusable), "@BASE@"},
	{"what is above is a FIFO", at("@BASE@", aFIFO), noUse(unusable), "@BASE@"},
	{"what is above is a link", linkAt("@BASE@"), everyUse(), ""},
	{"what is above is a link to nothing", at("@BASE@", danglingLink), noUse(unusable), "there is no such folder"},
	{"what is above is a link to itself", at("@BASE@", ownLink), noUse(unusable), "@BASE@"},
	{"what is above may be read by others", modeAt("@BASE@", 0o755), everyUse(), ""},
	{"what is above may be written by a group", modeAt("@BASE@", 0o770), noUse(unusable), "other users can write @BASE@"},
	{"what is above may be written by all", modeAt("@BASE@", 0o777), noUse(unusable), "other users can write @BASE@"},
	{"what is above is like /tmp", modeAt("@BASE@", 0o777|fs.ModeSticky), everyUse(), ""},
	{"what is above may not be entered", asUser(modeAt("@BASE@", 0o600)), noUse(unusable), "@BASE@"},
	{"what is above may not be written", asUser(modeAt("@BASE@", 0o500)), everyUse(), ""},
	{"what is above may not be written, and there is no folder", asUser(both(at("@FOLDER@", nothing), modeAt("@BASE@", 0o500))), withoutOne().but(unusable, retainUse, dryUse), "@BASE@"},
	{"what is above has a strange name", strangeName, noUse(unusable), "other users can write"},

	{"the folder is not there", at("@FOLDER@", nothing), withoutOne(), ""},
	{"the folder is a file", at("@FOLDER@", emptyFile), noUse(unusable), "@FOLDER@"},
	{"the folder is a FIFO", at("@FOLDER@", aFIFO), noUse(unusable), "@FOLDER@"},
	{"the folder is a link", linkAt("@FOLDER@"), noUse(unusable), "@FOLDER@"},
	{"the folder is a link to nothing", at("@FOLDER@", danglingLink), noUse(unusable), "@FOLDER@"},
	{"the folder may be read by a group", modeAt("@FOLDER@", 0o750), noUse(unusable), "@FOLDER@: other users can read it (mode 0750)"},
	{"the folder may be read by all", modeAt("@FOLDER@", 0o755), noUse(unusable), "@FOLDER@: other users can read it (mode 0755)"},
	{"the folder may be entered by all", modeAt("@FOLDER@", 0o711), noUse(unusable), "@FOLDER@: other users can read it (mode 0711)"},
	{"the folder may be written by a group", modeAt("@FOLDER@", 0o770), noUse(unusable), "@FOLDER@: other users can write it (mode 0770)"},
	{"the folder may be written by all", modeAt("@FOLDER@", 0o777), noUse(unusable), "@FOLDER@: other users can write it (mode 0777)"},
	{"the folder is like /tmp", modeAt("@FOLDER@", 0o777|fs.ModeSticky), noUse(unusable), "@FOLDER@: other users can write it"},
	{"the folder may not be written", asUser(modeAt("@FOLDER@", 0o500)), writersOnly(unusable), "@FOLDER@"},
	{"the folder may not be entered", asUser(modeAt("@FOLDER@", 0o600)), noUse(unusable), "@FOLDER@"},
	{"the folder may not be read", asUser(modeAt("@FOLDER@", 0o300)), noUse(unusable), "@FOLDER@"},
	{"the folder may not be used at all", asUser(modeAt("@FOLDER@", 0)), noUse(unusable), "@FOLDER@"},

	{"the record is cut", recordHolds(func(text []byte) []byte { return text[:len(text)-1] }), readersOnly(unusable), "@ENTRY@"},
	{"the record is half there", recordHolds(func(text []byte) []byte { return text[:len(text)/2] }), readersOnly(unusable), "@ENTRY@"},
	{"the record is empty", recordHolds(func([]byte) []byte { return nil }), readersOnly(unusable), "@ENTRY@"},
	{"the record is too long", recordHolds(func(text []byte) []byte { return append(text, ' ') }), readersOnly(unusable), "@ENTRY@"},
	{"the record is large", func(c *recordFiles) { c.s.check(os.Truncate(c.entry, 1<<40)) }, readersOnly(unusable), "@ENTRY@"},
	{"the record is garbage", recordHolds(func([]byte) []byte { return []byte("\xff\x00\n\x1b[2J") }), readersOnly(unusable), "@ENTRY@"},
	{"the first byte is flipped", recordHolds(flip(func([]byte) int { return 0 })), readersOnly(unusable), "@ENTRY@"},
	{"a byte in the middle is flipped", recordHolds(flip(func(text []byte) int { return len(text) / 2 })), readersOnly(unusable), "@ENTRY@"},
	{"the last byte is flipped", recordHolds(flip(func(text []byte) int { return len(text) - 1 })), readersOnly(unusable), "@ENTRY@"},
	{"the process is another", recordHolds(flip(processOf)), readersOnly(unusable), "@ENTRY@"},

	{"the record is a FIFO", at("@ENTRY@", aFIFO), readersOnly(unusable), "@ENTRY@: it is of the wrong kind"},
	{"the record is a folder", at("@ENTRY@", func(path string) error { return os.Mkdir(path, 0o700) }), readersOnly(unusable), "@ENTRY@: it is of the wrong kind"},
	{"the record is a socket", at("@ENTRY@", func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o600, 0) }), readersOnly(unusable), "@ENTRY@"},
	{"the record is a link", linkAt("@ENTRY@"), readersOnly(unusable), "@ENTRY@"},
	{"the record is a link to nothing", at("@ENTRY@", danglingLink), readersOnly(unusable), "@ENTRY@"},
	{"the record may be read by all", modeAt("@ENTRY@", 0o644), readersOnly(unusable), "@ENTRY@: other users can read it (mode 0644)"},
	{"the record may be read by a group", modeAt("@ENTRY@", 0o640), readersOnly(unusable), "@ENTRY@: other users can read it (mode 0640)"},
	{"the record may be written by a group", modeAt("@ENTRY@", 0o660), readersOnly(unusable), "@ENTRY@: other users can write it (mode 0660)"},
	{"the record may be written by all", modeAt("@ENTRY@", 0o666), readersOnly(unusable), "@ENTRY@: other users can write it (mode 0666)"},
	{"the record may only be read", modeAt("@ENTRY@", 0o400), everyUse(), ""},
	{"the record may not be read", asUser(modeAt("@ENTRY@", 0)), readersOnly(unusable), "@ENTRY@"},

	{"the record is that of another server", misnamed(1), withoutOne().but(unusable, statusUse, pruneUse), "another server or environment"},
	{"the record is that of another environment", misnamed(2), everyUse().but(unusable, retainedUse, checkUse, statusUse, pruneUse), "another server or environment"},
	{"a newer record is damaged", newerIs("garbage"), readersOnly(unusable), ".2.x: it is not a whole record"},
	{"an older record is damaged", olderIs("garbage"), everyUse(), ""},
	{"something else is there", func(c *recordFiles) { c.write("README", "") }, everyUse(), ""},
	{"something else has a similar name", similarNames, everyUse(), ""},
	{"a file is being written", func(c *recordFiles) { c.write("new-1-1", "half") }, everyUse(), ""},
	{"the record is of the future", ofTheYear3000, everyUse(), ""},

	{"no file may have a size", all(emptyRecordEnvironment, under("ulimit -f 0")).on, outcomes{retainUse: unusable, dryUse: answers, checkUse: answers, statusUse: answers, pruneUse: answers}, "@FOLDER@"},
	{"the umask is 0777", all(under("umask 0777"), recordsAreClosed).on, everyUse(), ""},
	{"the umask is 0", all(under("umask 0"), recordsAreClosed).on, everyUse(), ""},
	{"the umask is 0777, and the folder is not there", both(at("@FOLDER@", nothing), all(under("umask 0777"), recordsAreClosed).on), withoutOne(), ""},
	{"the umask is 0, and the folder is not there", both(at("@FOLDER@", nothing), all(under("umask 0"), recordsAreClosed).on), withoutOne(), ""},
	{"the file system is full", recordsOnTmpfs("full-beside-records"), withoutOne().but(unusable, retainUse), "no space left"},
	{"the file system has no room for the folder", recordsOnTmpfs("full"), withoutOne().but(unusable, retainUse), "no space left"},
	{"the file system is read-only", recordsOnTmpfs("read-only"), withoutOne().but(unusable, retainUse, dryUse), "read-only file system"},
	{"stdin, stdout and stderr are closed", under("exec <&- >&- 2>&-").on, outcomes{retainUse: works, retainedUse: works}, ""},
	{"the launcher knows no such option", all(executableFile("shell-launcher"), options("--disable-network")).on, outcomes{retainUse: "launcher-incapable", dryUse: "launcher-incapable"}, ""},
}

// Here the record is written already when the hand-over fails.
var takenBack = []recordFault{
	{"the environment leaves no room for the state", all(noRoomForState, options("--no-cache")).on, outcomes{retainUse: "exec-failed"}, ""},
	{"the launcher is open for writing after the probe", all(busyAfterProbe).on, outcomes{retainUse: "launcher-changed"}, ""},
	{"the launcher loses its interpreter in the probe", all(losesInterpreter).on, outcomes{retainUse: "exec-failed"}, ""},
	{"the launcher is another one after the probe", all(replacesItself).on, outcomes{retainUse: "launcher-changed", dryUse: "launcher-changed"}, ""},
}

// Only root can give files away.
var recordFaultsOfOthers = []recordFault{
	{"what is above is somebody else's", ownerAt("@BASE@"), noUse(unusable), "@BASE@ belongs to another user"},
	{"the folder is somebody else's", ownerAt("@FOLDER@"), noUse(unusable), "@FOLDER@: it belongs to another user"},
	{"the record is somebody else's", ownerAt("@ENTRY@"), readersOnly(unusable), "@ENTRY@: it belongs to another user"},
}

// Whatever is wrong with the folder, it is named in a refusal or it does no harm.
// What is refused changes nothing in it.
func TestRecordFaults(t *testing.T) {
	faults := slices.Concat(recordFaults, takenBack)
	if os.Geteuid() == 0 {
		faults = append(faults, recordFaultsOfOthers...)
	}
	made := makeSceneRecord(t)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for u, want := range f.want {
				t.Run(uses[u].name, func(t *testing.T) { f.meet(t, made, u, want) })
			}
		})
	}
}

// A madeRecord is the file of one, made by the program.
type madeRecord struct {
	name, state, cache string
	text               []byte
}

// makeSceneRecord runs the program with the state that all scenes here have.
func makeSceneRecord(t *testing.T) madeRecord {
	t.Helper()
	bin, program, err := findPrograms()
	if err != nil {
		t.Fatal(err)
	}
	r := &retaining{t, program, bin + "/codex", t.TempDir()}
	m := madeRecord{state: `{"permissionProfile":{"type":"managed"},"sandboxCwd":"file:///"}`, cache: t.TempDir()}
	cmd := r.call(m.state, "--retain", "--server", "s", "--", "true")
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+m.cache)
	if status, _, stderr := r.output(cmd); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	files := r.files()
	if len(files) != 1 {
		t.Fatalf("the folder holds %q", files)
	}
	m.name = files[0]
	if m.text, err = os.ReadFile(filepath.Join(r.folder(), m.name)); err != nil {
		t.Fatal(err)
	}
	return m
}

func (f recordFault) meet(t *testing.T, made madeRecord, u use, want string) {
	base := filepath.Join(t.TempDir(), "run")
	c := &recordFiles{base: base, folder: base + "/mcp-sandbox-exec", entry: base + "/mcp-sandbox-exec/" + made.name}
	var before []string
	says := ""
	met := fault{f.name, func(s *scene) {
		c.s, s.state = s, made.state
		s.setenv("XDG_RUNTIME_DIR", base)
		s.setenv("XDG_CACHE_HOME", made.cache)
		s.check(errors.Join(os.Mkdir(base, 0o700), os.Mkdir(c.folder, 0o700), os.WriteFile(c.entry, made.text, 0o600)))
		t.Cleanup(func() { os.Chmod(c.base, 0o700); os.Chmod(c.folder, 0o700) })
		uses[u].set(s)
		f.set(c)
		before = c.listing()
		says = c.paths(f.says)
	}, want, ""}
	s := met.begin(t)
	if want == unusable {
		met.says = says
	}
	s.end(met)
	after := c.listing()
	switch {
	case u == retainUse && want == works:
		c.expectOneMore(before, after)
	case u == pruneUse && want == answers:
		if _, err := os.Stat(c.entry); err == nil && strings.HasPrefix(c.entry, c.base) {
			t.Error("the record of a process that has ended is still there")
		}
	case !slices.Equal(before, after):
		t.Errorf("before there was\n%s\nand now is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// expectOneMore checks that a run has added its record.
func (c *recordFiles) expectOneMore(before, after []string) {
	c.s.t.Helper()
	added := slices.DeleteFunc(slices.Clone(after), func(file string) bool {
		return strings.Contains(file, "mcp-sandbox-exec/\n") || slices.Contains(before, file)
	})
	var records []string
	for _, file := range added {
		if strings.Contains(file, "/retained.") && strings.HasPrefix(file, "-rw------- ") {
			records = append(records, file)
		}
	}
	if len(records) != 1 {
		c.s.t.Errorf("before there was\n%s\nand now is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	for _, file := range after {
		if strings.Contains(file, "/new-") && !slices.Contains(before, file) {
			c.s.t.Errorf("there is %s", file)
		}
	}
}

// listing says what is below the base: each file with its mode and size, and a hash of
// what it holds, unless it is huge. What cannot be read is empty.
func (c *recordFiles) listing() (files []string) {
	filepath.WalkDir(filepath.Dir(c.base), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		name, _ := filepath.Rel(filepath.Dir(c.base), path)
		line := info.Mode().String() + " " + name
		if !d.IsDir() {
			line += fmt.Sprint(" ", info.Size())
		}
		if d.Type().IsRegular() && info.Size() < 1<<20 {
			text, _ := os.ReadFile(path)
			line += fmt.Sprintf(" %x", sha256.Sum256(text))
		}
		files = append(files, line)
		return nil
	})
	return files
}

// paths puts the paths into a text, as a refusal has them.
func (c *recordFiles) paths(text string) string {
	return strings.NewReplacer("@BASE@", c.base, "@FOLDER@", c.folder, "@ENTRY@", c.entry).Replace(text)
}

func (c *recordFiles) write(name, text string) {
	c.s.check(os.WriteFile(c.folder+"/"+name, []byte(text), 0o600))
}

// on lets a setup for any scene be one for the files.
func (set setup) on(c *recordFiles) { set(c.s) }

func both(first, second func(*recordFiles)) func(*recordFiles) {
	return func(c *recordFiles) { first(c); second(c) }
}

// asUser is for permissions that do not count for root.
func asUser(set func(*recordFiles)) func(*recordFiles) {
	return both(set, through("with-user-rights").on)
}

func runtimeDir(value string) func(*recordFiles) {
	return func(c *recordFiles) { c.s.setenv("XDG_RUNTIME_DIR", value) }
}

// at puts something in the place of a file or a folder.
func at(path string, put func(path string) error) func(*recordFiles) {
	return func(c *recordFiles) {
		path := c.paths(path)
		c.s.check(errors.Join(os.RemoveAll(path), put(path)))
	}
}

func nothing(string) error           { return nil }
func emptyFile(path string) error    { return os.WriteFile(path, nil, 0o600) }
func aFIFO(path string) error        { return unix.Mkfifo(path, 0o600) }
func danglingLink(path string) error { return os.Symlink("nowhere", path) }
func ownLink(path string) error      { return os.Symlink(filepath.Base(path), path) }

// linkAt puts a link in the place of a file or a folder, which goes elsewhere.
func linkAt(path string) func(*recordFiles) {
	return func(c *recordFiles) {
		path := c.paths(path)
		target := filepath.Join(filepath.Dir(c.base), "target")
		c.s.check(errors.Join(os.Rename(path, target), os.Symlink(target, path)))
	}
}

func modeAt(path string, mode fs.FileMode) func(*recordFiles) {
	return func(c *recordFiles) { c.s.check(os.Chmod(c.paths(path), mode)) }
}

func ownerAt(path string) func(*recordFiles) {
	return func(c *recordFiles) { c.s.giveAway(c.paths(path)) }
}

// recordsOnTmpfs puts the folder on a file system of that kind, without a record, and
// prints what is in it afterwards.
func recordsOnTmpfs(kind string) func(*recordFiles) {
	return func(c *recordFiles) {
		c.s.needMounts()
		folder := c.s.mkdir("mount")
		through("with-tmpfs", kind, folder, c.s.files+"/shell-launcher")(c.s)
		through("/bin/sh", "-c", `"$@"; status=$?; [ ! -d mcp-sandbox-exec ] || ls -A mcp-sandbox-exec; exit $status`, "sh")(c.s)
		c.s.setenv("XDG_RUNTIME_DIR", folder)
		c.s.attr = ownMounts()
		c.base = folder
	}
}

// losesInterpreter has a launcher whose interpreter is gone when it has been probed.
func losesInterpreter(s *scene) {
	executableFile("loses-interpreter")(s)
	s.check(os.Symlink("/bin/sh", s.mkdir("folder")+"/lost-sh"))
	options("--no-cache")(s)
}

// replacesItself has a launcher that turns the link to it when it is probed.
func replacesItself(s *scene) {
	link := s.mkdir("swapped") + "/codex-replaces-itself"
	s.check(os.Symlink(s.launcher, link))
	s.launcher = link
	s.setenv("SELF", link)
	options("--no-cache")(s)
}

// strangeName has a base that must be printed with care.
func strangeName(c *recordFiles) {
	base := filepath.Join(filepath.Dir(c.base), "a\nb \x1b[2J\xff")
	c.s.check(errors.Join(os.Rename(c.base, base), os.Chmod(base, 0o777)))
	c.base, c.folder = base, base+"/mcp-sandbox-exec"
	c.s.setenv("XDG_RUNTIME_DIR", base)
}

func recordHolds(change func(text []byte) []byte) func(*recordFiles) {
	return func(c *recordFiles) {
		text, err := os.ReadFile(c.entry)
		c.s.check(err)
		c.s.check(os.WriteFile(c.entry, change(text), 0o600))
	}
}

func flip(where func(text []byte) int) func([]byte) []byte {
	return func(text []byte) []byte {
		text[where(text)] ^= 1
		return text
	}
}

// processOf returns where the last digit of the process id is.
func processOf(text []byte) int {
	lines := bytes.SplitAfterN(text, []byte("\n"), 6)
	return len(bytes.Join(lines[:5], nil)) - 2
}

// misnamed gives the record the name that goes with another server or environment.
func misnamed(part int) func(*recordFiles) {
	return func(c *recordFiles) {
		parts := strings.Split(filepath.Base(c.entry), ".")
		parts[part] = strings.Repeat("0", 32)
		to := filepath.Join(c.folder, strings.Join(parts, "."))
		c.s.check(os.Rename(c.entry, to))
		c.entry = to
	}
}

// numbered returns the name of another record for the same server.
func (c *recordFiles) numbered(number string) string {
	parts := strings.Split(filepath.Base(c.entry), ".")
	parts[3], parts[4] = number, "x"
	return strings.Join(parts, ".")
}

func newerIs(text string) func(*recordFiles) {
	return func(c *recordFiles) { c.write(c.numbered("2"), text) }
}

func olderIs(text string) func(*recordFiles) {
	return func(c *recordFiles) { c.write(c.numbered("0"), text) }
}

// similarNames are no names of records.
func similarNames(c *recordFiles) {
	name := filepath.Base(c.entry)
	for _, other := range []string{
		name + ".", name + ".x", "x" + name, strings.TrimPrefix(name, "retained"), "retained", "retained....",
		c.numbered("-1"), c.numbered("02"), c.numbered("+2"), c.numbered("0x2"), c.numbered("18446744073709551616"), c.numbered(""),
	} {
		c.write(other, "garbage")
	}
}

func ofTheYear3000(c *recordFiles) {
	future := time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, path := range []string{c.entry, c.folder, c.base} {
		c.s.check(os.Chtimes(path, future, future))
	}
}

// emptyRecordEnvironment has a request in a file, and no launcher that writes.
func emptyRecordEnvironment(s *scene) { s.unsetenv("RECORD") }

// recordsAreClosed checks that what was made is this user's alone, and that the next
// program can use it.
func recordsAreClosed(s *scene) {
	base := ""
	for _, entry := range s.env {
		if path, ok := strings.CutPrefix(entry, "XDG_RUNTIME_DIR="); ok {
			base = path
		}
	}
	s.also = func() {
		entries, err := filepath.Glob(base + "/mcp-sandbox-exec/*")
		s.check(err)
		for _, path := range entries {
			if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
				s.t.Errorf("%s: %v, %v", path, info, err)
			}
		}
		if info, err := os.Lstat(base + "/mcp-sandbox-exec"); err == nil && info.Mode() != 0o700|fs.ModeDir {
			s.t.Errorf("the folder has the mode %v", info.Mode())
		}
		status := exec.Command(s.files+"/mcp-sandbox-exec", "status")
		status.Env = []string{"XDG_RUNTIME_DIR=" + base}
		if out, err := status.CombinedOutput(); err != nil {
			s.t.Errorf("%v: %s", err, out)
		}
	}
}

// With each number of descriptors that the program may have, it does all or nothing.
func TestRecordsWithFewDescriptors(t *testing.T) {
	t.Parallel()
	if underRace {
		return // its program must open a library before anything else
	}
	r := newRetaining(t)
	old := r.keep(oldState, retain...)
	outcomes := map[string]int{}
	for limit := 3; limit < 20; limit++ {
		for _, cmd := range []*exec.Cmd{
			r.call("{}", append(retain, "--", "true")...),
			r.call(oldState, "--retained", "--server", "s", "--", "true"),
			r.call(oldState, "check", "--retained", "--server", "s"),
			r.command("", "status"),
			r.command("", "status", "--prune"),
		} {
			before := r.files()
			cmd.Args = slices.Concat([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, limit), cmd.Path}, cmd.Args[1:])
			cmd.Path = "/bin/sh"
			status, stdout, stderr := r.output(cmd)
			code := "works"
			if status != 0 {
				code, _, _ = strings.Cut(strings.TrimPrefix(stderr, "mcp-sandbox-exec: "), ":")
			}
			outcomes[code]++
			refused := status == 125 && stdout == "" && slices.Contains([]string{"exec-failed", unusable}, code)
			if status != 0 && !refused {
				t.Errorf("%d descriptors: %q: status %d, stdout %q, stderr %q", limit, cmd.Args[4:], status, stdout, stderr)
			}
			if after := r.files(); status != 0 && !slices.Equal(after, before) {
				t.Errorf("%d descriptors: %q: before there was %q, and now is %q", limit, cmd.Args[4:], before, after)
			}
			// What a run with --retain leaves when it works is one of a process that ended.
			if r.status("--prune"); status != 0 && len(r.files()) > 0 && r.status()[0].Process != old.Process.Pid {
				t.Errorf("%d descriptors: the record of process %d is gone", limit, old.Process.Pid)
			}
			if len(r.files()) == 0 {
				old.end()
				old = r.keep(oldState, retain...)
			}
		}
	}
	t.Logf("%v", outcomes)
	if outcomes["works"] == 0 || outcomes["exec-failed"] == 0 {
		t.Error("the limit makes no difference")
	}
}
