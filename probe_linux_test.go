package mcpsandboxexec_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A program that is killed while a launcher hangs in its probe does not leave
// the launcher behind.
func TestProbeDiesWithTheProgram(t *testing.T) {
	h := newHandOver(t, true, "codex-hangs", "cmd", "exit", "0")
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	probe := filepath.Join(h.record, "probes") // which is written last
	for range 3000 {
		if _, err := os.Stat(probe); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.cmd.Wait()
	if out, err := exec.Command("process-ended", filepath.Join(h.record, "probe-pid")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
