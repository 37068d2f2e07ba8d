//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// The options that become the launcher's own, each with the same run without it.

func TestReadableRoot(t *testing.T) {
	s := newScratch(t)
	launcher := codex(t, current)
	s.write(t, "outside/secret", "a secret\n", 0o600)

	// In place of everything: what programs need, and the launcher, which has
	// to start itself once more inside.
	const everything = `{"path":{"type":"special","value":{"kind":"root"}},"access":"read"}`
	state := replaceOnce(t, s.currentState(t), everything,
		`{"path":{"type":"special","value":{"kind":"minimal"}},"access":"read"},`+
			`{"path":{"type":"path","path":`+encode(filepath.Dir(filepath.Dir(launcher)))+`},"access":"read"}`)
	request := newRequest(state, launcher)
	command := []string{"--", "sh", "-c", `cat "$1"; echo no >"$1"`, "sh", filepath.Join(s.outside, "secret")}

	for _, c := range []struct {
		name    string
		options []string
		stdout  string
	}{
		{"without it", nil, ""},
		{"with it", []string{"--readable-root", s.outside}, "a secret\n"},
		{"another folder", []string{"--readable-root", s.home}, ""},
		{"the second one", []string{"--readable-root", s.home, "--readable-root", s.outside}, "a secret\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, s.shim(t, request, append(c.options, command...)...))
			if r.stdout != c.stdout || r.status == 0 || r.status == 125 {
				t.Errorf("exit status %d, stdout %q, stderr %q; want %q read, and the write to fail", r.status, r.stdout, r.stderr, c.stdout)
			}
			if content, err := os.ReadFile(filepath.Join(s.outside, "secret")); string(content) != "a secret\n" {
				t.Errorf("the file outside holds %q, %v", content, err)
			}
		})
	}
}

func TestDisableNetwork(t *testing.T) {
	s := newScratch(t)
	state := replaceOnce(t, s.currentState(t), `"network":"restricted"`, `"network":"enabled"`)
	request := newRequest(state, codex(t, current))
	peer := newPeer(t)
	command := []string{
		"--", "bash", "-c",
		`echo "${CODEX_SANDBOX_NETWORK_DISABLED-unset}"; echo hello >"/dev/tcp/127.0.0.1/$0"`, peer.port,
	}

	r := run(t, s.shim(t, request, command...))
	r.expectStatus(t, 0)
	if r.stdout != "unset\n" {
		t.Errorf("without the option CODEX_SANDBOX_NETWORK_DISABLED is %q", r.stdout)
	}
	if r.status == 0 {
		if got := peer.next(t); got != "hello\n" {
			t.Errorf("without the option the peer got %q", got)
		}
	}

	r = run(t, s.shim(t, request, append([]string{"--disable-network"}, command...)...))
	r.expectStatus(t, 1)
	if r.stdout != "1\n" {
		t.Errorf("with the option CODEX_SANDBOX_NETWORK_DISABLED is %q; stderr %q", r.stdout, r.stderr)
	}
	// Connections are taken in their order, so that one of the command's would
	// be before this one.
	conn := peer.dial(t)
	conn.Write([]byte("the test's own"))
	conn.Close()
	if got := peer.next(t); got != "the test's own" {
		t.Errorf("with the option the peer got %q", got)
	}
}
