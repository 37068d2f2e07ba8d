package exec

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/testprogram"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// launcherScript stands for Codex: it answers the probe, and runs a command
// after saying how it was called.
const launcherScript = `#!/bin/sh
if [ "$4" = --help ]; then
	echo '      --sandbox-state-json <JSON>'
	echo '      --sandbox-state-readable-root <DIR>'
	echo '      --sandbox-state-disable-network'
	exit
fi
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
`

// testLauncher is that script; nativeLauncher is a copy of this test's own
// program, which a system can execute by its descriptor.
var testLauncher, nativeLauncher string

// TestMain writes the launchers before any test starts a process, which could
// otherwise still have the file open for writing when it is executed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "sandbox" {
		if os.Args[len(os.Args)-1] == "--help" {
			fmt.Println("  --sandbox-state-json")
		} else {
			fmt.Println("native", os.Args[0], os.Args[1:])
		}
		return
	}
	folder, err := os.MkdirTemp("", "launcher")
	if err != nil {
		log.Fatal(err)
	}
	testLauncher = filepath.Join(folder, "codex")
	if err := os.WriteFile(testLauncher, []byte(launcherScript), 0o755); err != nil {
		log.Fatal(err)
	}
	nativeLauncher = filepath.Join(folder, "native")
	if err := copyOwnProgram(nativeLauncher); err != nil {
		log.Fatal(err)
	}
	status := m.Run()
	os.RemoveAll(folder)
	os.Exit(status)
}

func copyOwnProgram(to string) error {
	text, err := testprogram.Own()
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
}

// MetaOfCall returns the _meta of a tool call, as a server finds it in a request.
func MetaOfCall() []byte {
	return fmt.Appendf(nil, `{"progressToken":1,`+
		`"codex/sandbox-state":{"permissionProfile":{"type":"managed"},"sandboxCwd":"file:///"},`+
		`"codex/sandbox-launcher":{"codexExecutable":%q}}`, testLauncher)
}

func testAuthority(t *testing.T) *verify.Authority {
	t.Helper()
	metadata, err := verify.ParseMeta(MetaOfCall())
	if err != nil {
		t.Fatal(err)
	}
	authority, err := metadata.Authority(context.Background(), verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return authority
}
