package main

import (
	"slices"
	"testing"
	"time"
)

func TestCutCommand(t *testing.T) {
	for _, test := range []struct {
		args, own, command []string
		found              bool
	}{
		{nil, nil, nil, false},
		{[]string{"check"}, []string{"check"}, nil, false},
		{[]string{"--"}, nil, nil, true},
		{[]string{"--verbose", "--", "a", "--", "b"}, []string{"--verbose"}, []string{"a", "--", "b"}, true},
		{[]string{"--", "--", "check"}, nil, []string{"--", "check"}, true},
		{[]string{"--meta=--", "--", "a"}, []string{"--meta=--"}, []string{"a"}, true},
	} {
		own, command, found := cutCommand(test.args)
		if !slices.Equal(own, test.own) || !slices.Equal(command, test.command) || found != test.found {
			t.Errorf("%q is cut to %q, %q, %v", test.args, own, command, found)
		}
	}
}

func TestWantsJSON(t *testing.T) {
	for _, test := range []struct {
		own  []string
		want bool
	}{
		{nil, false},
		{[]string{"--error-format", "json"}, true},
		{[]string{"--bogus", "--error-format=json"}, true},
		{[]string{"-error-format=json"}, true},
		{[]string{"--error-format"}, false},
		{[]string{"--error-format", "text", "json"}, false},
		{[]string{"error-format", "json"}, false},
		{[]string{"error-format=json"}, false},
	} {
		if got := wantsJSON(test.own); got != test.want {
			t.Errorf("%q: %v", test.own, got)
		}
	}
}

func TestShellWord(t *testing.T) {
	for _, test := range []struct{ arg, want string }{
		{"", "''"},
		{"--a=b/c.d:e", "--a=b/c.d:e"},
		{"a b", "'a b'"},
		{"~", "'~'"},
		{"it's", `'it'\''s'`},
		{"é", "'é'"},
		{"$x`y`\\", "'$x`y`\\'"},
		{"a\nb", `$'a\012b'`},
		{"\x1b[0m'\\é", `$'\033[0m\'\\é'`},
		{"\x7f", `$'\177'`},
		{"\u2028", `$'\342\200\250'`},
		{"\xff1", `$'\3771'`},
		{"\ufffd", "'\ufffd'"},
	} {
		if got := shellWord(test.arg); got != test.want {
			t.Errorf("%q is quoted %s, not %s", test.arg, got, test.want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for _, test := range []struct {
		text string
		want time.Duration // 0 for an error
	}{
		{"10", 10 * time.Second},
		{"0.5", 500 * time.Millisecond},
		{"1m30s", 90 * time.Second},
		{"1s1", 0},
		{"1h5", 0},
		{"0x10", 0},
		{"inf", 0},
		{"24h", 24 * time.Hour},
		{"24h1ns", 0},
		{"86401", 0},
		{"0", 0},
		{"0s", 0},
		{"-1", 0},
		{"", 0},
		{"s", 0},
		{"ten", 0},
		{"1e3", 0},
		{" 1", 0},
		{"99999999999999999999", 0},
	} {
		got, err := parseDuration(test.text)
		if got != test.want || (err == nil) != (test.want != 0) {
			t.Errorf("%q is %v, %v", test.text, got, err)
		}
	}
}
