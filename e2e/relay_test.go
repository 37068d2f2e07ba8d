//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
)

// Codex starts a server for each session. For several sessions of one server each
// starts a relay: this test's own program, with a variable that names the socket.
const relayVariable = "E2E_RELAY"

// relay connects stdin and stdout with a socket, until stdin ends.
func relay(socket string) (status int) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		return 1
	}
	go io.Copy(os.Stdout, conn)
	if _, err := io.Copy(conn, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		return 1
	}
	return 0
}
