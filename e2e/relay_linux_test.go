//go:build e2e

package e2e

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// relayTo makes the sessions of s use a server that runs already, one after the
// other. Answers that come when no session is connected are lost.
func (s *session) relayTo(t *testing.T, r *repl) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The path of a socket may have about 100 bytes, and that of the scratch more.
	folder, err := os.MkdirTemp("", "e2e-relay.")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		listener.Close()
		os.RemoveAll(folder)
	})
	var connected atomic.Pointer[net.Conn]
	go func() {
		for {
			line, err := r.stdout.ReadString('\n')
			if err != nil {
				return
			}
			if conn := connected.Load(); conn != nil {
				io.WriteString(*conn, line)
			}
		}
	}()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connected.Store(&conn)
			io.Copy(r.stdin, conn)
			connected.Store(nil)
			conn.Close()
		}
	}()
	s.server = []string{program}
	s.serverEnv = map[string]string{relayVariable: socket}
}
