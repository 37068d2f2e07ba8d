//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The command waits for the test, so that the launcher which Codex named, and
// which the shim has become, can be looked at while it runs.
func TestLauncherGetsTheStateOfTheSession(t *testing.T) {
	s := newSession(t, current)
	fifo := mkfifo(t, filepath.Join(s.project, "fifo"))
	const command = `read -r line <fifo; echo "read $line"`

	p := start(t, s.prepare(t, command))
	other := openFIFO(p.ended, t, fifo, os.O_WRONLY)
	launchers := slices.DeleteFunc(argvs(t), func(argv []string) bool {
		return len(argv) < 4 || !slices.Equal(argv[:3], []string{s.codex, "sandbox", "--sandbox-state-json"})
	})
	writeFIFO(t, other, "what the test wrote\n")
	if got := s.ended(t, p.wait(t)); !strings.Contains(got, "read what the test wrote") {
		t.Errorf("the model got %q", got)
	}

	_, meta := metaOf(t, s.call(t))
	want := []string{s.codex, "sandbox", "--sandbox-state-json", string(meta["codex/sandbox-state"]), "--", "bash", "-c", "--", command}
	if len(launchers) != 1 || !slices.Equal(launchers[0], want) {
		t.Errorf("the running launchers are\n%q\nwant one:\n%q", launchers, want)
	}
}
