package verify

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Texts to start from: JSON values of all kinds, and texts that are none.
var (
	values = []string{
		`null`, `true`, `false`, `0`, `-0`, `1`, `1.0`, `10`, `1e1`, `1E1`, `1e+1`, `"1"`, `"null"`,
		`12345678901234567890`, `12345678901234567891`, `1e999`,
		`""`, `"\ud83d\ude00"`, `"😀"`, `"\ud800"`, `"\uD800"`, `"\udfff"`, `"\ufffd"`, "\"\ufffd\"", `"\udc00\ud800"`, `"\ud800\ud83d\ude00"`, `"\ud800😀"`, `"\ud820"`,
		`"\u0061\/\b\f\n\r\t\"\\"`, `"a/\u0008\u000C\u000a\u000d\u0009\u0022\u005c"`, `"\\u0061"`, "\"\u007f\u2028\"",
		`[]`, `{}`, `[1,2]`, `[2,1]`, `[12]`, `[[1]]`, `[[],1]`, `["a,b"]`, `["a","b"]`, `["a\",\"b"]`, " [ 1 ,\t2 ]\r\n",
		`{"a":1,"b":[2,{}]}`, `{"b":[2,{}],"\u0061":1}`, `{"a":1,"a":2}`, `{"a":2,"a":1}`, `{"a":1,"a":1}`,
		`{"A":1}`, `{"s":1}`, `{"\u017f":1}`, `{"\ud800":1,"\udfff":2}`, `{"\udfff":2,"\ud800":1}`, `{"a\":1,\"b":2}`, `{"":{"":""}}`,
		`"/opt/codex"`, `"\/opt\u002fcodex"`, `"opt/codex"`, `"/\ud83d\ude00"`, `"/😀"`, `"/a\u0000"`, `"/a\ud800"`, `"/\udc00\ud800"`, `"/\ud800b"`, `" /a"`, `"/\u2028\n"`, `"//a/./b/../c/"`,
		strings.Repeat("[", 200) + strings.Repeat("]", 200), strings.Repeat(`{"":`, 200) + `0` + strings.Repeat("}", 200),
	}
	broken = []string{
		"", " ", "\ufeff{}", "\xff\xfe{\x00}\x00", "\xfe\xff\x00{\x00}", "\"\xff\"", "\"\xed\xa0\x80\"", "\"\xc0\xaf\"", "{}\xff", "{}\x00", "\v{}", "\u00a0{}",
		`{}{}`, `{} x`, `1 2`, `{}}`, `[1,]`, `[,1]`, `[1 2]`, `{"a":1,}`, `{,}`, `{a:1}`, `{"a"}`, `{1:1}`, `{"a":1 "b":2}`, `{} // c`,
		`'a'`, `01`, `-`, `+1`, `1.`, `.5`, `1e`, `1e+`, `0x1`, `--1`, `NaN`, `tru`, `nulll`, `True`,
		`"\x"`, `"\u12"`, `"\u12g4"`, `"\u+123"`, `"\u 123"`, `"\U0061"`, "\"\t\"", "\"a\x00\"", `"\`, `"\u`, `"`, `"a`, `[`, `{`, `{"a"`, `{"a":`, `{"a":1`, `]`, `[}`,
	}
	launchers = []string{
		`{}`, `{"codexExecutable":"/opt/codex"}`, ` {"other":[{}],"codexExecutable" : "\/a" } `, `{"codex\u0045xecutable":"/a"}`,
		`{"codexExecutable":"/a","codexExecutable":"/a"}`, `{"codexExecutable":"/a","codexE\u0078ecutable":"/b"}`, `{"codexExecutable":"","codexExecutable":7}`,
		`{"codexexecutable":"/a"}`, `{"CodexExecutable":"/a","codexExecutable":"/b"}`, `{"codexExecutable":["/a"]}`, `{"codexExecutable":{"codexExecutable":"/a"}}`,
	}
	// Of these, "STATE" is replaced by some of the values.
	metas = []string{
		`{"progressToken":1}`, `{"codex/sandbox-state":STATE}`, `{"codex/sandbox-state-meta": STATE }`, `{"codex\/sandbox-st\u0061te":STATE}`,
		`{"codex/sandbox-state":STATE,"codex/sandbox-state-meta":STATE,"codex/sandbox-launcher":{"codexExecutable":"/opt/codex"}}`,
		`{"codex/sandbox-state-meta":{"b":STATE,"a":"\u0061"},"codex/sandbox-state":{"a":"a","b" : STATE}}`,
		`{"codex/sandbox-state":STATE,"codex/sandbox-state":STATE}`, `{"codex/sandbox-state-meta":STATE,"codex/sandbox-state-met\u0061":STATE}`,
		`{"codex/sandbox-state":STATE,"codex/sandbox-state-meta":1}`, `{"codex/sandbox-state":{"a":"STATE"},"codex/sandbox-state-meta":{"a":"STATE "}}`,
		`{"Codex/sandbox-state":STATE,"codex/\u017fandbox-state":STATE,"codex/sandbox-launcher":{"codexExecutable":"/a"}}`,
		`{"codex/sandbox-launcher":{"codexExecutable":"/a"},"codex/sandbox-launcher":{"codexExecutable":"/a"}}`,
		`{" codex/sandbox-state":STATE,"codex/sandbox-state-meta\u0000":STATE,"codex/sandbox-launcher\ud800":STATE,"codex/sandbox-state/":STATE}`,
		`{"codex/sandbox-state":STATE,"codex/sandbox-launcher":null}`, `{"codex/sandbox-state":STATE,"codex/sandbox-launcher":{"codexExecutable":7}}`,
		`{"a":{"codex/sandbox-state":STATE},"codex/sandbox-state":{"codex/sandbox-state":null}}`, `{"codex/sandbox-state":{"a":"a private folder", "b"`,
		`{"codex/sandbox-state":[…      ]}`, `{"codex/sandbox-state":[…       ]}`, `{"codex/sandbox-state-meta":[…      ],"codex/sandbox-state":[]}`,
	}
	requests = []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"_meta":META},"_meta":META}}`,
		`{"params":{"_meta":META,"_meta":META}}`, `{"params":{"_meta":META},"par\u0061ms":{}}`, `{"params":{},"params":{"_met\u0061":META}}`,
		`{"Params":{"_meta":META},"param\u017f":{"_meta":META},"params":{"_Meta":META}}`, `{"_meta":META,"params":{"params":{"_meta":META}}}`,
		` {"par\u0061ms" : { "\u005fmeta":META} } `, `{"params":{"arguments":{"_meta":META},"name":{"params":{"_meta":META}}}}`, `{"params ":{"_meta":META},"\ud800params":{"_meta":META}}`, `{"params":[META]}`, `{"params":null}`, `{"params":{"_meta":[META]}}`, `{"params":{"_meta":META}}}`,
	}
)

// recorded returns the texts that were recorded of Codex.
func recorded(f *testing.F) (texts [][]byte) {
	f.Helper()
	files, err := filepath.Glob("../testdata/requests/*.json*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no recorded requests: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		texts = append(texts, bytes.Split(text, []byte("\n"))...)
	}
	return texts
}

// cut returns the text of the member that stands under the names, one in the
// other, for the recorded requests that have it.
func cut(f *testing.F, names ...string) (parts [][]byte) {
	f.Helper()
	for _, text := range recorded(f) {
		v, err := read(text)
		ok := err == nil
		for _, name := range names {
			if ok {
				v = v.member(name, &ok)
			}
		}
		if ok && v != nil {
			parts = append(parts, text[v.start:v.end])
		}
	}
	return parts
}

func seed(f *testing.F, texts ...string) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
}

func seedMetas(f *testing.F, in string) {
	for _, meta := range metas {
		for _, state := range []string{`null`, `{"a": "…"}`, `"\ud800"`, `1.0`, `12345678901234567890`} {
			seed(f, strings.ReplaceAll(in, "META", strings.ReplaceAll(meta, "STATE", state)))
		}
	}
	for _, launcher := range slices.Concat(launchers, values) {
		seed(f, strings.ReplaceAll(in, "META", `{"codex/sandbox-launcher":`+launcher+`}`))
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, text := range recorded(f) {
		f.Add(text)
	}
	seed(f, values...)
	seed(f, broken...)
	for _, request := range requests {
		seed(f, strings.ReplaceAll(request, "META", `{"codex/sandbox-state":{"a":1},"codex/sandbox-launcher":{"codexExecutable":"/a"}}`))
	}
	seedMetas(f, `{"params":{"_meta":META}}`)
	fuzzMetadata(f, ParseRequest, func(root *tree, ok *bool) found {
		return inMeta(root.member("params", ok).member("_meta", ok), ok)
	})
}

func FuzzParseMeta(f *testing.F) {
	for _, text := range cut(f, "params", "_meta") {
		f.Add(text)
	}
	seed(f, values...)
	seed(f, broken...)
	seedMetas(f, `META`)
	fuzzMetadata(f, ParseMeta, inMeta)
}

func FuzzParseState(f *testing.F) {
	for _, text := range cut(f, "params", "_meta", "codex/sandbox-state") {
		f.Add(text)
	}
	seed(f, values...)
	seed(f, broken...)
	seed(f, `[…      ]`, `[…       ]`, ` [ …     ] `, `["a private folder"…]`)
	fuzzMetadata(f, ParseState, func(root *tree, _ *bool) found { return found{state: root, unnamed: true} })
}

func FuzzAddLauncher(f *testing.F) {
	for _, text := range cut(f, "params", "_meta", "codex/sandbox-launcher") {
		f.Add(text)
	}
	seed(f, values...)
	seed(f, broken...)
	seed(f, launchers...)
	for _, value := range slices.Concat(values, broken) {
		seed(f, `{"codexExecutable":`+value+`}`)
	}
	parse := func(text []byte) (*Metadata, error) {
		m := &Metadata{}
		return m, m.AddLauncher(text)
	}
	fuzzMetadata(f, parse, func(root *tree, ok *bool) found {
		return found{launcher: root, executable: root.member("codexExecutable", ok)}
	})
}

// found is what the tests' reader finds in a text.
type found struct {
	state, deprecated    *tree
	launcher, executable *tree
	unnamed              bool // the state came by itself
}

func inMeta(meta *tree, ok *bool) found {
	launcher := meta.member("codex/sandbox-launcher", ok)
	return found{
		state:      meta.member("codex/sandbox-state", ok),
		deprecated: meta.member("codex/sandbox-state-meta", ok),
		launcher:   launcher,
		executable: launcher.member("codexExecutable", ok),
	}
}

// member returns the member of an object that has a name, nil if there is none,
// or no object. It clears ok if v is something else than an object, or has two.
func (v *tree) member(name string, ok *bool) (member *tree) {
	switch {
	case v == nil:
		return nil
	case v.kind != '{':
		*ok = false
	}
	units := utf16.Encode([]rune(name))
	for i := range v.names {
		if slices.Equal(v.names[i], units) {
			*ok = *ok && member == nil
			member = v.items[i]
		}
	}
	return member
}

// path returns the path that v spells, if it is one.
func (v *tree) path() (path string, ok bool) {
	if v == nil || v.kind != '"' {
		return "", false
	}
	path = string(utf16.Decode(v.text))
	lossless := slices.Equal(utf16.Encode([]rune(path)), v.text)
	return path, lossless && !slices.Contains(v.text, 0) && strings.HasPrefix(path, "/")
}

// conflict reports whether the two names of the state hold different values.
func (f found) conflict() bool {
	return f.state != nil && f.deprecated != nil && !f.state.same(f.deprecated)
}

// refusals returns the codes of all reasons to refuse what was found.
func (f found) refusals() (codes []Code) {
	for _, v := range []*tree{f.state, f.deprecated} {
		if v != nil && v.kind == 'n' {
			codes = append(codes, "state-malformed")
		}
		if v != nil && v.end-v.start > MaxStateSize() {
			codes = append(codes, "state-too-large")
		}
	}
	if f.conflict() {
		codes = append(codes, "state-conflict")
	}
	if _, ok := f.executable.path(); f.launcher != nil && !ok {
		codes = append(codes, "launcher-malformed")
	}
	return codes
}

// fuzzMetadata compares what parse makes of a text with what find finds in the
// tests' own reading of it.
func fuzzMetadata(f *testing.F, parse func([]byte) (*Metadata, error), find func(root *tree, ok *bool) found) {
	f.Fuzz(func(t *testing.T, text []byte) {
		// An ellipsis stands for many blanks, so that short texts have states
		// near the limit.
		text = bytes.Replace(text, []byte("…"), bytes.Repeat([]byte(" "), MaxStateSize()-8), 1)
		var want found
		var codes []Code
		root := readTree(t, text)
		ok := root != nil
		if ok {
			want = find(root, &ok)
			codes = want.refusals()
		}
		if !ok {
			codes = []Code{"metadata-malformed"} // what cannot be understood is not judged further
		}
		forwarded, key := want.state, "codex/sandbox-state"
		if forwarded == nil {
			forwarded, key = want.deprecated, "codex/sandbox-state-meta"
		}
		if forwarded == nil || want.unnamed {
			key = ""
		}
		var state string
		if forwarded != nil {
			state = string(text[forwarded.start:forwarded.end])
		}

		m, err := parse(text)
		code := codeOf(t, err)
		if err != nil {
			if !slices.Contains(codes, code) {
				t.Errorf("%q: %v, where there is reason for %q", text, err, codes)
			}
			if m != nil && !m.Missing() {
				t.Errorf("%q: refused, and yet there is state %q and launcher %q", text, m.State(), m.Launcher())
			}
			checkWords(t, parse, text, want, root != nil, err.(*Refusal))
			return
		}
		if len(codes) > 0 {
			t.Fatalf("%q: accepted, where there is reason for %q", text, codes)
		}
		if string(m.State()) != state || (m.State() == nil) != (forwarded == nil) || m.StateKey() != key {
			t.Errorf("%q: the state is %q under %q, not %q under %q", text, m.State(), m.StateKey(), state, key)
		}
		if m.State() != nil && readTree(t, m.State()) == nil {
			t.Errorf("%q: the state is %q, which is not JSON", text, m.State())
		}
		if path, _ := want.executable.path(); m.Launcher() != path {
			t.Errorf("%q: the launcher is %q, not %q", text, m.Launcher(), path)
		}
		if missing := want.state == nil && want.deprecated == nil && want.launcher == nil; m.Missing() != missing {
			t.Errorf("%q: missing is %v", text, m.Missing())
		}
	})
}

// checkWords checks what a refusal says: a line for each part, and nothing of
// the state.
func checkWords(t *testing.T, parse func([]byte) (*Metadata, error), text []byte, f found, isJSON bool, r *Refusal) {
	if r.Message == "" || !isLine(r.Message) || !isLine(r.Hint) {
		t.Errorf("%q: not a line: %q, %q", text, r.Message, r.Hint)
	}
	if !isJSON {
		// Where no state can be told from the rest, nothing of the text is said
		// but single characters and escapes; and the names.
		message := strings.NewReplacer("codex/sandbox-state-meta", "", "codex/sandbox-state", "", "codex/sandbox-launcher", "", "codexExecutable", "").Replace(r.Message)
		for i := range len(message) - 15 {
			if bytes.Contains(text, []byte(message[i:i+16])) {
				t.Errorf("%q: the refusal repeats %q", text, message[i:i+16])
			}
		}
		return
	}
	// With other states of the same size the words must be the same.
	other := bytes.Clone(text)
	blank(other, f.state, "[]")
	if f.conflict() {
		blank(other, f.deprecated, "{}")
	} else {
		blank(other, f.deprecated, "[]")
	}
	_, err := parse(other)
	if again, ok := err.(*Refusal); !ok || *again != *r {
		t.Errorf("%q: %q, %q depends on the state: with another it is %v", text, r.Message, r.Hint, err)
	}
}

// blank puts an empty array or object in the place of v, as long as v was. A
// single digit stays, and null, which is a reason by itself.
func blank(text []byte, v *tree, brackets string) {
	if v == nil || v.kind == 'n' || v.end-v.start < 2 {
		return
	}
	for i := v.start; i < v.end; i++ {
		text[i] = ' '
	}
	text[v.start], text[v.end-1] = brackets[0], brackets[1]
}

func isLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

func FuzzSameValue(f *testing.F) {
	for i, a := range values {
		for _, b := range values[:i+1] {
			f.Add([]byte(a), []byte(b), uint16(0))
		}
	}
	for _, text := range cut(f, "params", "_meta", "codex/sandbox-state-meta") {
		v, err := read(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, v.respell(), uint16(0))
		f.Add(text, []byte("/"), uint16(len(text)/2))
	}
	f.Fuzz(func(t *testing.T, a, b []byte, at uint16) {
		v := readTree(t, a)
		if v == nil {
			return // what is no JSON never comes there
		}
		check := func(a, b []byte, want bool) {
			if sameValue(a, b) != want || sameValue(b, a) != want || bytes.Equal(canonical(a), canonical(b)) != want {
				t.Errorf("%q and %q: sameValue is %v, or %v, and they become %q and %q; the same is %v",
					a, b, sameValue(a, b), sameValue(b, a), canonical(a), canonical(b), want)
			}
		}
		check(a, v.respell(), true)
		// Besides the second text itself: the first with the second put into it,
		// or over it. What of that is JSON is much like the first.
		i := min(int(at), len(a))
		into := slices.Concat(a[:i], b, a[i:])
		over := slices.Concat(a[:i], b, a[min(i+len(b), len(a)):])
		for _, other := range [][]byte{b, into, over} {
			if w := readTree(t, other); w != nil {
				check(a, other, v.same(w))
				check(w.respell(), a, v.same(w))
			}
		}
	})
}

func FuzzExecutablePath(f *testing.F) {
	seed(f, values...)
	for _, text := range cut(f, "params", "_meta", "codex/sandbox-launcher", "codexExecutable") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v := readTree(t, text)
		if v == nil {
			return // what is no JSON never comes there
		}
		want, ok := v.path()
		got, err := executablePath(text[v.start:v.end])
		switch code := codeOf(t, err); {
		case ok && (err != nil || got != want):
			t.Errorf("%q is the path %q, not %q: %v", text, want, got, err)
		case !ok && (code != "launcher-malformed" || got != ""):
			t.Errorf("%q is no path, and becomes %q: %v", text, got, err)
		case !ok && !isLine(err.Error()):
			t.Errorf("%q: not a line: %q", text, err)
		}
	})
}

// The notations of a source, as regular expressions. What is none of them, and
// does not begin as one of them, is a file.
var (
	sourceDescriptor = regexp.MustCompile(`^(fd:|(file:)?/dev/fd/|(file:)?/proc/self/fd/)(0|[3-9]|[1-9][0-9]{1,9})$`)
	sourceStdin      = regexp.MustCompile(`^(-|(file:)?/dev/stdin)$`)
	sourceVariable   = regexp.MustCompile(`^env:([^=\x00]+)$`)
	sourceNothing    = regexp.MustCompile(`^(file:)?$|\x00|^-|^env:|^(fd:|(file:)?/dev/fd/|(file:)?/proc/self/fd/)|^(file:)?/dev/std(out|err)$`)
)

// classify says what a source is, or that it is none.
func classify(spelled string) (path, env string, fd int, ok bool) {
	if m := sourceDescriptor.FindStringSubmatch(spelled); m != nil {
		fd, err := strconv.ParseInt(m[4], 10, 32)
		return "", "", int(fd), err == nil
	}
	if sourceStdin.MatchString(spelled) {
		return "", "", 0, true
	}
	if m := sourceVariable.FindStringSubmatch(spelled); m != nil {
		return "", m[1], -1, true
	}
	if sourceNothing.MatchString(spelled) {
		return "", "", -1, false
	}
	return strings.TrimPrefix(spelled, "file:"), "", -1, true
}

func FuzzParseSource(f *testing.F) {
	for _, text := range []string{
		"", "-", "--", "-a", "a", "a b", "a:b", "./-", "file:", "file:a", "file:-", "file:file:", "file:env:A", "FILE:a", "file", "a\x00", "file:\x00", "é", "\xff", "a\n", "\u2028", `"a"`, "a//b/../c", " a ",
		"env:", "env:A", "env:A=B", "env:A:B", "env:=", "env:\x00", "env:\xff", "env: ", "env:file:a", "Env:A", "env",
		"fd:", "fd:0", "fd:1", "fd:2", "fd:3", "fd:10", "fd:03", "fd:00", "fd:+3", "fd:-0", "fd:3 ", "fd:0x3", "fd:1_0", "fd:٣", "fd:3\n", "fd:2147483647", "fd:2147483648", "fd:4294967297", "fd:18446744073709551617",
		"/dev/stdin", "/dev/stdout", "/dev/stderr", "file:/dev/stdin", "file:/dev/stdout", "/dev/stdin/", "/dev/stdin0",
		"/dev/fd/", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2", "/dev/fd/63", "/dev/fd/03", "/dev/fd/../zero", "/dev/fd", "file:/dev/fd/3", "fd:/dev/fd/3", "env:/dev/fd/3",
		"/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/7", "file:/proc/self/fd/2", "file:/dev/fd/1", "file:/dev/fd/2", "//dev/fd/3", "/dev/./fd/3", "/proc/self/fdx", "/proc/1/fd/1", "/dev/fd//dev/fd/3",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, env, fd, ok := classify(text)
		s, err := ParseSource(text)
		if (err == nil) != ok {
			t.Fatalf("%q: %v, where a source is %v", text, err, ok)
		}
		if err != nil {
			if !isLine(err.Error()) || s != (Source{}) {
				t.Errorf("%q: %q, and yet %+v", text, err, s)
			}
			return
		}
		if s.path != path || s.Env() != env || s.Descriptor() != fd {
			t.Errorf("%q is path %q, variable %q, descriptor %d, not %q, %q, %d", text, s.path, s.Env(), s.Descriptor(), path, env, fd)
		}
		kinds := 0
		for _, is := range []bool{s.path != "", s.Env() != "", s.Descriptor() >= 0} {
			if is {
				kinds++
			}
		}
		if kinds != 1 || s.Descriptor() == 1 || s.Descriptor() == 2 {
			t.Errorf("%q is %+v", text, s)
		}
		if unquoted, err := strconv.Unquote(s.String()); !isLine(s.String()) || s.String() != text && (err != nil || unquoted != text) {
			t.Errorf("%q is printed as %s", text, s)
		}
	})
}
