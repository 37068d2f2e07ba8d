//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The versions that the tests run.
const (
	// current sends both names of the state, and the launcher.
	current = "0.171.0"
	// beforeLaunchers sends only the deprecated name, but takes a state.
	beforeLaunchers = "0.155.0"
	// beforeStates takes no state.
	beforeStates = "0.140.0"
)

var codexPaths = map[string]string{}

// codex returns the path of a version's native program.
func codex(t *testing.T, version string) string {
	t.Helper()
	if _, found := codexPaths[version]; !found {
		path, err := getCodex(version)
		if err != nil {
			t.Fatal(err)
		}
		codexPaths[version] = path
	}
	return codexPaths[version]
}

func getCodex(version string) (string, error) {
	var said bytes.Buffer
	cmd := exec.Command(filepath.Join(top, "e2e", "codex.sh"), version)
	cmd.Stderr = &said
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot get Codex %s: %w\n%s", version, err, said.Bytes())
	}
	// Without links, as a session names itself in its requests.
	return filepath.EvalSymlinks(strings.TrimSuffix(string(path), "\n"))
}
