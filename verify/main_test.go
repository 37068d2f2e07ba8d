package verify

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/testprogram"
)

// testLauncher is a copy of this test's own program, which is a launcher when it
// is called as one; testScript is one that is a script.
var testLauncher, testScript string

// TestMain writes the launchers before any test starts a process, which could
// otherwise still have the files open for writing when they are executed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "sandbox" {
		fmt.Println("  --sandbox-state-json")
		return
	}
	syscall.Umask(0o022) // what a group can write is refused here and there
	folder, err := os.MkdirTemp("", "launcher")
	if err != nil {
		log.Fatal(err)
	}
	testLauncher, testScript = filepath.Join(folder, "native"), filepath.Join(folder, "script")
	if err := writeLaunchers(); err != nil {
		log.Fatal(err)
	}
	status := m.Run()
	os.RemoveAll(folder)
	os.Exit(status)
}

// scriptText answers the probe, and runs a command.
const scriptText = `#!/bin/sh
if [ "$4" = -- ]; then
	shift 4
	exec "$@"
fi
echo '  --sandbox-state-json'
`

// MetaOfCall returns the _meta of a tool call that has a state, and testScript for a
// launcher.
func MetaOfCall(state string) []byte {
	return fmt.Appendf(nil, `{"codex/sandbox-state":%s,"codex/sandbox-launcher":{"codexExecutable":%q}}`, state, testScript)
}

// RecordsDirOfExample returns the folder in which an example keeps records.
func RecordsDirOfExample() string { return filepath.Join(filepath.Dir(testScript), "records") }

func writeLaunchers() error {
	text, err := testprogram.Own()
	if err != nil {
		return err
	}
	if err := os.WriteFile(testLauncher, text, 0o755); err != nil {
		return err
	}
	return os.WriteFile(testScript, []byte(scriptText), 0o755)
}
