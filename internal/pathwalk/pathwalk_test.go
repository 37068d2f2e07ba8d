package pathwalk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// steps returns where a walk comes by below a folder, and how it ends.
func steps(top, path string) (found []string, err error) {
	err = Walk(top+"/"+path, func(step string, _ *unix.Stat_t) error {
		if below, ok := strings.CutPrefix(step, top+"/"); ok {
			found = append(found, below)
		}
		return nil
	})
	return found, err
}

func TestWalk(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	errs := []error{os.MkdirAll(top+"/a/b", 0o700), os.WriteFile(top+"/a/file", nil, 0o600)}
	for link, target := range map[string]string{
		"to-a": "a", "a/up": "../a/b", "whole": top + "/a", "slash": "a//", "gone": "nowhere", "loop": "loop", "n0": "a",
	} {
		errs = append(errs, os.Symlink(target, filepath.Join(top, link)))
	}
	for i := range mostLinks {
		errs = append(errs, os.Symlink(fmt.Sprint("n", i), fmt.Sprint(top, "/n", i+1)))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path, steps string
		want        error
	}{
		{"a/b", "a a/b", nil},
		{"a/file", "a a/file", nil},
		{"./a//b/.", "a a/b", nil},
		{"a/b/../../a", "a a/b a", nil},
		{"to-a/b", "to-a a a/b", nil},
		{"a/up/../file", "a a/up a a/b a/file", nil},
		{"whole/b", "whole a a/b", nil},
		{"slash/b", "slash a a/b", nil},
		{"gone/b", "gone", unix.ENOENT},
		{"nowhere", "", unix.ENOENT},
		{"a/file/b", "a a/file", unix.ENOTDIR},
	} {
		got, err := steps(top, test.path)
		if strings.Join(got, " ") != test.steps || !errors.Is(err, test.want) {
			t.Errorf("%s: %q, %v", test.path, got, err)
		}
	}
	// As many links as the system follows, and no more.
	for i, want := range map[int]error{mostLinks - 1: nil, mostLinks: unix.ELOOP} {
		if _, err := steps(top, fmt.Sprint("n", i)); !errors.Is(err, want) {
			t.Errorf("%d links: %v", i+1, err)
		}
	}
	if _, err := steps(top, "loop"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link to itself: %v", err)
	}
}

// The walk begins at the root, and ends where visit has an error, which it returns.
func TestWalkEnds(t *testing.T) {
	enough := errors.New("enough")
	var found []string
	err := Walk("/dev/../usr/bin", func(step string, st *unix.Stat_t) error {
		if found = append(found, step); step == "/usr" {
			return enough
		}
		return nil
	})
	if want := []string{"/", "/dev", "/usr"}; err != enough || !slices.Equal(found, want) {
		t.Errorf("%q, %v", found, err)
	}
	for _, at := range []string{"/", "/usr"} {
		if err := Walk("/usr", func(step string, _ *unix.Stat_t) error {
			if step == at {
				return enough
			}
			return nil
		}); err != enough {
			t.Errorf("at %s: %v", at, err)
		}
	}
}
