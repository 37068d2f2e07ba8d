package printable

import "testing"

func TestLine(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"/opt/a b/codex", "/opt/a b/codex"},
		{"/é/😀", "/é/😀"},
		{"a\nb", `"a\nb"`},
		{"\x1b[1m", `"\x1b[1m"`},
		{"a\u2028b", `"a\u2028b"`},
		{"\xff", `"\xff"`},
		{`say "x"`, `"say \"x\""`},
	} {
		if got := Line(test.text); got != test.want {
			t.Errorf("%q is printed as %s", test.text, got)
		}
	}
}
