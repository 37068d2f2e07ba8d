package mcpsandboxexec_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each promise in the README names tests, and these are there.
func TestPromisesAreHeld(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## What it promises\n")
	section, _, _ = strings.Cut(section, "\n## ")

	var tests []string
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "*/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(text, -1) {
				tests = append(tests, string(match[1]))
			}
		}
	}
	promises := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.Contains(line, "---") || strings.Contains(line, "held by") {
			continue
		}
		promises++
		named := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1)
		if len(named) == 0 {
			t.Errorf("no test holds %q", cells[1])
		}
		for _, name := range named {
			_, err := os.Stat(filepath.Join("testdata/script", name[1]))
			if err != nil && !slices.Contains(tests, name[1]) {
				t.Errorf("there is no test %s, for %q", name[1], cells[1])
			}
		}
	}
	if promises < 10 {
		t.Errorf("the README has %d promises", promises)
	}
}
