package verify

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Names that are easily taken for each other, or for a path.
var oddNames = []string{
	"a", "A", "a ", " a", "a\n", "a.b", "none", "-", ".", "..", "../a", "/", "/etc/passwd", `a\b`, `"a"`, "a\tb", "\x1b[1m", "\x7f",
	"Ä", "ä", "A\u0308", "a\u0308", "日本", "😀", "\ufffd", "\u2028", "retained", "new-1-1", strings.Repeat("x", 255), strings.Repeat("é", 127),
}

func TestServerCheck(t *testing.T) {
	for _, name := range oddNames {
		for _, s := range []Server{{name, ""}, {name, name}, {"a", name}} {
			if err := s.Check(); err != nil {
				t.Errorf("%q: %v", s, err)
			}
			if !isLine(s.String()) {
				t.Errorf("not a line: %q", s.String())
			}
		}
	}
	for _, test := range []struct {
		s    Server
		want string // a part of the message
	}{
		{Server{"", ""}, "the name of the server is empty"},
		{Server{"", "a"}, "the name of the server is empty"},
		{Server{strings.Repeat("x", 256), ""}, "the name of the server has 256 bytes, and 255 is the most"},
		{Server{"a\x00b", ""}, "the name of the server contains a NUL"},
		{Server{"a\xff", ""}, `the name of the server is not UTF-8: "a\xff"`},
		{Server{"\xed\xa0\x80", ""}, "the name of the server is not UTF-8"},
		{Server{"a", strings.Repeat("é", 128)}, "the id of the environment has 256 bytes"},
		{Server{"a", "\x00"}, "the id of the environment contains a NUL"},
		{Server{"a", "\xff"}, "the id of the environment is not UTF-8"},
	} {
		err := test.s.Check()
		if codeOf(t, err) != CodeUsage || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v", test.s, err)
		}
	}
}

func TestServerString(t *testing.T) {
	for s, want := range map[Server]string{
		{"a", ""}:                `"a"`,
		{"a\n", ""}:              `"a\n"`,
		{`a" in the`, "Ä \x1b"}:  `"a\" in the" in the environment "Ä \x1b"`,
		{"a", `the environment`}: `"a" in the environment "the environment"`,
	} {
		if got := s.String(); got != want {
			t.Errorf("%s is not %s", got, want)
		}
	}
}

// The names of server and environment are nowhere in that of a file, and each pair of
// them has files of its own.
func TestRecordName(t *testing.T) {
	form := regexp.MustCompile(`^retained\.[0-9a-f]{32}\.([0-9a-f]{32}|none)\.12\.3-4$`)
	// What other releases look for, as sha256sum has it.
	for s, want := range map[Server]string{
		{"repl", ""}:       "retained.8233ac712e32af368b0311b1cd8c33c5.none.12.3-4",
		{"repl", "devbox"}: "retained.8233ac712e32af368b0311b1cd8c33c5.ded2012d4e1338e404067e92dffeada7.12.3-4",
	} {
		if got := newRecordName(s, 12, "3-4").String(); got != want {
			t.Errorf("%q has the file %s, not %s", s, got, want)
		}
	}
	seen := map[string]Server{}
	for _, name := range oddNames {
		for _, environment := range append(oddNames, "") {
			s := Server{name, environment}
			n := newRecordName(s, 12, "3-4")
			file := n.String()
			if other, ok := seen[file]; ok || !form.MatchString(file) || strings.Contains(file, "none") != (environment == "") {
				t.Errorf("%q has the file %s, and so has %q", s, file, other)
			}
			seen[file] = s
			if read, ok := parseRecordName(file); read != n || !ok || !read.sameServer(newRecordName(s, 0, "")) {
				t.Errorf("%s of %q is read as %+v, %v", file, s, read, ok)
			}
			for selected, want := range map[Server]bool{
				{"", ""}: true, {name, ""}: true, {"", environment}: true, s: true,
				{"other", ""}: false, {"", "other"}: false, {"other", environment}: false, {name, "other"}: false,
			} {
				wanted, err := selection(selected.Name, selected.Environment)
				if err != nil || wanted(n) != want {
					t.Errorf("%s is selected by %q: %v", file, selected, !want)
				}
			}
		}
	}
}

func TestParseRecordNameOfOthers(t *testing.T) {
	for _, file := range []string{
		"", ".", "retained", "retained.a.b.1", "retained.a.b.1.w.x", "Retained.a.b.1.w", "retain.a.b.1.w", "x.retained.a.b.1.w",
		"retained.a.b.01.w", "retained.a.b.+1.w", "retained.a.b.-1.w", "retained.a.b. 1.w", "retained.a.b.0x1.w", "retained.a.b.1_0.w", "retained.a.b..w",
		"retained.a.b.18446744073709551616.w", "retained.a.b.1.", "new-1-1", "README",
	} {
		if n, ok := parseRecordName(file); ok {
			t.Errorf("%q is read as %+v", file, n)
		}
	}
}

// Those of one server stand together, and the newest of them last. Numbers are compared
// as numbers. With the same one, one of the two is the newer, and it is the same for all.
func TestCompareRecordNames(t *testing.T) {
	ordered := []recordName{{"r", "f", 11, "b"}, {"s", "d", 11, "b"}, {"s", "e", 0, "a"}, {"s", "e", 9, "2"}, {"s", "e", 10, "1"}, {"s", "e", 10, "2"}, {"s", "e", 1<<64 - 1, "1"}}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := a.compare(b); got != cmp.Compare(i, j) {
				t.Errorf("%v to %v: %d", a, b, got)
			}
			if got, want := a.sameServer(b), a.server == b.server && a.environment == b.environment; got != want {
				t.Errorf("%v and %v are of the same server: %v", a, b, got)
			}
		}
	}
}

// recordOf returns a record and its file's text. Nothing of it is of this system.
func recordOf(s Server, state string) (*Record, []byte) {
	r := &Record{
		Server: s, PID: 42, Since: time.Date(2026, 11, 30, 12, 13, 14, 150_000_000, time.UTC),
		process: process{42, "machine", "boot", "pid:[1]", "123"}, launcher: "/opt/a\nb/codex", state: []byte(state),
	}
	r.Fingerprint = fingerprint(r.state, r.launcher)
	return r, r.encode()
}

// The form of a record's file is what other releases find.
func TestRecordText(t *testing.T) {
	want, text := recordOf(Server{"a\"\n", "ä"}, "{\n}")
	lines := "mcp-sandbox-exec record 1\n" + `"a\"\n"` + "\n" + `"ä"` + "\n42\n" + `"machine"` + "\n" + `"boot"` + "\n" + `"pid:[1]"` + "\n" + `"123"` + "\n" +
		"2026-11-30T12:13:14.15Z\n" + `"/opt/a\nb/codex"` + "\n{\n}"
	if hashed := fmt.Sprintf("%x\n%s", sha256.Sum256([]byte(lines)), lines); string(text) != hashed {
		t.Errorf("it is %q, not %q", text, hashed)
	}
	want.name = newRecordName(want.Server, 1, "w")
	got, err := decodeRecord(want.name, text)
	if err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Errorf("it is read as %#v, not %#v: %v", got, want, err)
	}
}

// The largest state fits in with the longest names and the longest path, each written
// with four bytes for one.
func TestRecordLimit(t *testing.T) {
	long := strings.Repeat("\x01", maxNameSize)
	r, _ := recordOf(Server{long, long}, `"`+strings.Repeat("x", MaxStateSize()-2)+`"`)
	r.launcher = "/" + strings.Repeat("\x01", 4095)
	if text := r.encode(); len(text) > recordLimit() {
		t.Errorf("a record has %d bytes, and %d are read", len(text), recordLimit())
	}
}

// A text is a record if and only if a plain reading of its lines finds what one has,
// spelled as it is written; and what is read is what these lines say.
func FuzzRecord(f *testing.F) {
	servers := []Server{{"repl", ""}, {"repl", "devbox"}, {"a\"\n", "none"}, {"", ""}, {"repl", "\x00"}} // the last two cannot be
	add := func(text []byte, of int) {
		_, content, _ := strings.Cut(string(text), "\n")
		f.Add(text, of, false)
		f.Add([]byte(content), of, true)
		f.Add([]byte(content[1:]), of, true)
	}
	for i, s := range servers {
		r, text := recordOf(s, "{}")
		add(text, i)
		add(text, i+1)
		for _, change := range []string{ // what is there, and what is put in its place
			"42→042", "42→+42", "42→-42", "42→-0", "42→0x2a", "42→99999999999999999999", "42→",
			"record 1→record 2", "\n→\r\n", "\n→\n ", "\"boot\"→`boot`", `"boot"→'b'`, `"boot"→"\x62oot"`, `"boot"→boot`,
			"15Z→150Z", "15Z→15+00:00", "15Z→15+01:00", ".15Z→,15Z", "T12→t12", "T12→T24", "2026→99999", "2026→0000", "-11-30→-02-30",
			"/opt→opt", `/opt→\x00`, `/opt→\xff`, "repl→", "repl→repl2", "devbox→Devbox", "devbox→",
			"{}→", "{}→null", "{}→ null ", "{}→{", "{}→{}{}", "{}→{}\n", "{}→ {\n}", "{}→\xef\xbb\xbf{}", "{}→\"\xff\"",
		} {
			old, changed, _ := strings.Cut(change, "→")
			add([]byte(strings.Replace(string(text), old, changed, 1)), i)
		}
		r.Since = time.Time{}
		add(r.encode(), i)
	}
	asWritten := func(line string) bool {
		text, err := strconv.Unquote(line)
		return err == nil && strconv.Quote(text) == line
	}
	f.Fuzz(func(t *testing.T, text []byte, of int, addHash bool) {
		if addHash { // which no chance would find
			text = fmt.Appendf(nil, "%x\n%s", sha256.Sum256(text), text)
		}
		s := servers[uint(of)%uint(len(servers))]
		lines := strings.SplitN(string(text), "\n", 12)
		valid := s.Name != "" && s.Environment != "\x00" && len(lines) == 12 && lines[1] == "mcp-sandbox-exec record 1" &&
			lines[0] == fmt.Sprintf("%x", sha256.Sum256(text[65:])) &&
			lines[2] == strconv.Quote(s.Name) && lines[3] == strconv.Quote(s.Environment) &&
			!slices.ContainsFunc([]string{lines[5], lines[6], lines[7], lines[8], lines[10]}, func(line string) bool { return !asWritten(line) })
		if valid {
			number, err := strconv.ParseInt(lines[4], 10, 64)
			since, ofTime := time.Parse("2006-01-02T15:04:05.999999999Z07:00", lines[9])
			valid = err == nil && fmt.Sprint(number) == lines[4] && ofTime == nil && since.Format("2006-01-02T15:04:05.999999999Z07:00") == lines[9]
		}
		if valid {
			state := readTree(t, []byte(lines[11]))
			valid = state != nil && state.kind != 'n' && state.end-state.start <= MaxStateSize()
		}
		name := newRecordName(s, 7, "w")
		r, err := decodeRecord(name, text)
		if valid != (err == nil) || valid != (r != nil) {
			t.Fatalf("%q: %v, where a record of %q is %v", text, err, s, valid)
		}
		if !valid {
			return
		}
		launcher, err := strconv.Unquote(lines[10])
		if err != nil || r.Server != s || fmt.Sprint(r.PID) != lines[4] || r.launcher != launcher || string(r.state) != lines[11] || r.name != name ||
			r.PID != r.process.id || r.Fingerprint != fingerprint([]byte(lines[11]), launcher) {
			t.Errorf("%q is read as %+v", text, r)
		}
		for i, part := range []string{r.process.machine, r.process.boot, r.process.space, r.process.start} {
			if strconv.Quote(part) != lines[5+i] {
				t.Errorf("%q is read with %q", text, part)
			}
		}
	})
}
