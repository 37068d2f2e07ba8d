//go:build e2e

package e2e

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The example servers have their tests in session_test.go, server_test.go and
// repl_linux_test.go.

func TestExampleMakefile(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(top, "examples", "make", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	// Make finds the shim by its name, and is started in the project.
	prepare := func(t *testing.T) (s *scratch, start func(args ...string) *exec.Cmd) {
		s = newScratch(t)
		if err := os.WriteFile(filepath.Join(s.project, "Makefile"), makefile, 0o644); err != nil {
			t.Fatal(err)
		}
		s.setenv("PATH", filepath.Dir(shim)+string(filepath.ListSeparator)+os.Getenv("PATH"))
		return s, func(args ...string) *exec.Cmd {
			cmd := s.command(t, "make", args...)
			cmd.Dir = s.project
			return cmd
		}
	}
	setMeta := func(t *testing.T, s *scratch) {
		meta, _ := metaOf(t, s.request(t, currentRequest, codex(t, current)))
		s.setenv("MCP_SANDBOX_META", string(meta))
	}
	exists := func(t *testing.T, path string) bool {
		_, err := os.Stat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}

	t.Run("build", func(t *testing.T) {
		s, start := prepare(t)
		setMeta(t, s)
		r := run(t, start())
		r.expectStatus(t, 0)
		const built = "built under the policy of the call\n"
		if content, err := os.ReadFile(filepath.Join(s.project, "built.txt")); string(content) != built {
			t.Errorf("built.txt holds %q, %v", content, err)
		}
		if !strings.HasSuffix(r.stdout, "\n"+built) {
			t.Errorf("make printed %q, without what was built", r.stdout)
		}
	})

	t.Run("leak", func(t *testing.T) {
		s, start := prepare(t)
		setMeta(t, s)
		leak := filepath.Join(s.outside, "leak")
		r := run(t, start("leak", "OUTSIDE="+leak))
		r.expectStatus(t, 2) // of make, for a recipe that failed
		if exists(t, leak) || !strings.Contains(r.stderr, leak) || strings.Contains(r.stderr, "mcp-sandbox-exec:") {
			t.Errorf("the leak is there: %t; want a write that was denied in stderr: %q", exists(t, leak), r.stderr)
		}
	})

	t.Run("no metadata", func(t *testing.T) {
		s, start := prepare(t)
		r := run(t, start())
		r.expectStatus(t, 2)
		if !strings.Contains(r.stderr, "mcp-sandbox-exec: metadata-missing: ") || exists(t, filepath.Join(s.project, "built.txt")) {
			t.Errorf("want nothing built, and metadata-missing in stderr: %q", r.stderr)
		}
	})
}
