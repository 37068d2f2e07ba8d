//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"testing"
)

// A file outside of the project and a connection are opened for whoever is
// started. Without the shim both work in the sandbox, though the state permits
// neither: that is what these tests could not show if it were otherwise.
func TestInheritedDescriptors(t *testing.T) {
	const command = `(echo file >&5) && echo 5; (echo socket >&6) && echo 6; :`
	for _, c := range []struct {
		name                 string
		command              func(s *scratch) *exec.Cmd
		stdout, file, socket string
	}{
		{"without the shim", func(s *scratch) *exec.Cmd {
			return s.launcher(t, codex(t, current), s.currentState(t), "--", "sh", "-c", command)
		}, "5\n6\n", "file\n", "socket\n"},
		{"with the shim", func(s *scratch) *exec.Cmd {
			return s.shim(t, s.request(t, currentRequest, codex(t, current)), "--", "sh", "-c", command)
		}, "", "", ""},
		{"one kept", func(s *scratch) *exec.Cmd {
			return s.shim(t, s.request(t, currentRequest, codex(t, current)), "--keep-fd", "5", "--", "sh", "-c", command)
		}, "5\n", "file\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScratch(t)
			path := s.write(t, "outside/file", "", 0o600)
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			peer := newPeer(t)
			conn := peer.dial(t)
			defer conn.Close()
			socket, err := conn.File()
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()

			cmd := c.command(s)
			cmd.ExtraFiles = []*os.File{nil, nil, file, socket} // 5 and 6
			r := run(t, cmd)
			r.expectStatus(t, 0)
			if r.stdout != c.stdout {
				t.Errorf("the descriptors %q are usable inside, want %q; stderr %q", r.stdout, c.stdout, r.stderr)
			}
			if content, err := os.ReadFile(path); string(content) != c.file || err != nil {
				t.Errorf("the file holds %q, %v; want %q", content, err, c.file)
			}
			// The peer is at the end when nobody has the connection any more.
			socket.Close()
			conn.Close()
			if got := peer.next(t); got != c.socket {
				t.Errorf("the peer got %q, want %q", got, c.socket)
			}
		})
	}
}
