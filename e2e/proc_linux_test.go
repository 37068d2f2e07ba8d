//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// argvs returns the argument vectors of all processes.
func argvs(t *testing.T) [][]string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found [][]string
	for _, file := range files {
		// One that has ended meanwhile is as if it had not been there.
		line, err := os.ReadFile(file)
		if err == nil && len(line) > 0 {
			found = append(found, strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"))
		}
	}
	return found
}
