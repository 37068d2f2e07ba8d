package verify

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestParseSource(t *testing.T) {
	for _, test := range []struct {
		text      string
		path, env string
		fd        int
		ok        bool
	}{
		{"-", "", "", 0, true},
		{"a", "a", "", -1, true},
		{"a:b", "a:b", "", -1, true},
		{"FILE:b", "FILE:b", "", -1, true},
		{"file:a", "a", "", -1, true},
		{"file:-", "-", "", -1, true},
		{"file:env:A", "env:A", "", -1, true},
		{"./-a", "./-a", "", -1, true},
		{"env:A", "", "A", -1, true},
		{"env:A:B", "", "A:B", -1, true},
		{"env:a b", "", "a b", -1, true},
		{"fd:0", "", "", 0, true},
		{"fd:3", "", "", 3, true},
		{"fd:2147483647", "", "", 2147483647, true},
		{"/dev/stdin", "", "", 0, true},
		{"/dev/fd/63", "", "", 63, true},
		{"file:/proc/self/fd/7", "", "", 7, true},
		{"/proc/self/fdx", "/proc/self/fdx", "", -1, true},
		{text: ""},
		{text: "-a"},
		{text: "--meta"},
		{text: "file:"},
		{text: "a\x00b"},
		{text: "env:"},
		{text: "env:A=B"},
		{text: "env:\x00"},
		{text: "fd:"},
		{text: "fd:1"},
		{text: "fd:2"},
		{text: "fd:03"},
		{text: "fd:-3"},
		{text: "fd:+3"},
		{text: "fd:3 "},
		{text: "fd:0x3"},
		{text: "fd:2147483648"},
		{text: "/dev/fd/1"},
		{text: "/dev/fd/../zero"},
	} {
		s, err := ParseSource(test.text)
		if (err == nil) != test.ok {
			t.Errorf("%q: %v", test.text, err)
		}
		if err == nil && (s.path != test.path || s.Env() != test.env || s.Descriptor() != test.fd) {
			t.Errorf("%q is path %q, variable %q, descriptor %d", test.text, s.path, s.Env(), s.Descriptor())
		}
	}
}

func TestSourceRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SET", "value")
	t.Setenv("EMPTY", "")
	for _, test := range []struct {
		source, text string
		code         Code
		is           error
	}{
		{source: file, text: "text"},
		{source: "env:SET", text: "value"},
		{source: "env:EMPTY", code: CodeMetadataMalformed},
		{source: file + ".none", code: CodeMetadataUnreadable, is: fs.ErrNotExist},
		{source: filepath.Dir(file), code: CodeMetadataUnreadable},
		{source: "/dev/zero", code: CodeMetadataUnreadable},
	} {
		s, err := ParseSource(test.source)
		if err != nil {
			t.Fatal(err)
		}
		text, err := s.Read()
		if code := codeOf(t, err); code != test.code || string(text) != test.text {
			t.Errorf("%s: %q, %v", test.source, text, err)
		}
		if test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: %v is not %v", test.source, err, test.is)
		}
	}
	s, err := ParseSource("env:SURELY_NOT_SET")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(); err != ErrUnset {
		t.Errorf("a variable that is not set: %v", err)
	}
}
