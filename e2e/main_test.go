//go:build e2e

// Package e2e runs the program together with the real Codex: whole sessions of
// `codex exec` against a model on the loopback, and the launcher that such a
// session names. Codex is got by codex.sh, and nothing else is fetched.
//
// Nothing here skips. What is missing on the machine is a failure that says so.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var (
	// top is the repository.
	top string
	// base holds everything that the tests write.
	base string
	// shim is the program under test, alone in its folder under its own name.
	shim string
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(relayVariable); socket != "" {
		os.Exit(relay(socket))
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	err := setUp()
	if base != "" {
		defer os.RemoveAll(base)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return m.Run()
}

func setUp() error {
	for _, tool := range []string{"bash", "jq", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("these tests need %s: %w", tool, err)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	// Without links, as the sandbox names folders.
	if top, err = filepath.EvalSymlinks(filepath.Dir(here)); err != nil {
		return err
	}
	ignored := filepath.Join(top, ".codex")
	if err := os.MkdirAll(ignored, 0o755); err != nil {
		return err
	}
	if base, err = os.MkdirTemp(ignored, "e2e."); err != nil {
		return err
	}
	shim = filepath.Join(base, "bin", "mcp-sandbox-exec")
	build := exec.Command("make", "build", "PROGRAM="+shim)
	build.Dir = top
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	return nil
}
