package verify

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A fingerprint is the same in all releases. This one was made with sha256sum, of
// what the form of both is.
func TestFingerprintStays(t *testing.T) {
	state := `{"b" : [ 1.0, -0, "\u00e9\uD800\u0022\\"], "a":{"x":1, "x":2}, "\u0061":null}`
	got := authority(state, "/opt/a b/codex").Fingerprint()
	if want := "8c1723b5e47e93d8bdfaa9c2bb1053867cd47cf1d0b602ccf569c6422d6b1ce4"; got != want {
		t.Errorf("it is %s, not %s", got, want)
	}
}

// Nothing can go from the launcher over to the state or back.
func TestFingerprintBoundary(t *testing.T) {
	seen := map[string]string{}
	for _, test := range []string{
		"/a 12", "/a1 2", "/a12 1", "/ 1", "/A 12", "//a 12", "/a/ 12", `/a "/a"`, `/a"/a" 1`, "/\u00e9 1", "/e\u0301 1",
	} {
		launcher, state, _ := strings.Cut(test, " ")
		of := authority(state, launcher).Fingerprint()
		if seen[of] != "" {
			t.Errorf("%q and %q have one fingerprint", test, seen[of])
		}
		seen[of] = test
	}
}

var sixtyFourDigits = regexp.MustCompile("^[0-9a-f]{64}$")

// Two authorities have the same fingerprint, and are the same, if and only if the
// tests' own reader finds the same value in both, and the launchers are spelled alike.
func FuzzFingerprint(f *testing.F) {
	texts := slices.Concat(values, []string{`{"n":1e2}`, `{"n":100}`, `{"n":-0}`, `{"n":0}`, `{"n":1.0}`, `{ "n" :1 }`})
	for i, a := range texts {
		for _, b := range texts[:i+1] {
			f.Add([]byte(a), []byte(b), "/opt/codex", "/opt/codex")
		}
		f.Add([]byte(a), []byte(a), "/opt/codex", "/opt/codex ")
	}
	f.Fuzz(func(t *testing.T, a, b []byte, launcherA, launcherB string) {
		v, w := readTree(t, a), readTree(t, b)
		if v == nil || w == nil || strings.Contains(launcherA+launcherB, "\x00") {
			return // of what is no JSON, or no path, there is no authority
		}
		of := fingerprint(a, launcherA)
		if !sixtyFourDigits.MatchString(of) || fingerprint(v.respell(), launcherA) != of {
			t.Errorf("%q has the fingerprint %q, and with another spelling %q", a, of, fingerprint(v.respell(), launcherA))
		}
		want := v.same(w) && launcherA == launcherB
		if got := fingerprint(b, launcherB) == of; got != want {
			t.Errorf("%q of %q and %q of %q have the same fingerprint: %v", a, launcherA, b, launcherB, got)
		}
		if got := sameAuthority(a, launcherA, b, launcherB); got != want {
			t.Errorf("%q of %q and %q of %q are the same: %v", a, launcherA, b, launcherB, got)
		}
	})
}
