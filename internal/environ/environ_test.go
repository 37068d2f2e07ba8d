package environ

import (
	"slices"
	"testing"
)

func TestLookup(t *testing.T) {
	env := []string{"AB=2", "A", "=A=3", "A=1", "A=4", "EMPTY="}
	for _, test := range []struct {
		name, value string
		found       bool
	}{
		{"A", "1", true},
		{"EMPTY", "", true},
		{"B", "", false},
		{"a", "", false},
	} {
		if value, found := Lookup(env, test.name); value != test.value || found != test.found {
			t.Errorf("%s is %q, %v", test.name, value, found)
		}
	}
}

func TestWithout(t *testing.T) {
	env := []string{"A=1", "AB=2", "=A=3", "A", "A=4"}
	if got := Without(env, "A"); !slices.Equal(got, []string{"AB=2", "=A=3", "A"}) {
		t.Errorf("left: %q", got)
	}
	if len(env) != 5 || env[0] != "A=1" {
		t.Errorf("the argument was changed: %q", env)
	}
}
