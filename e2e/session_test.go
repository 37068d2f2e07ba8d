//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A session is one `codex exec`, with an example server and a model that calls its
// tools.
type session struct {
	*scratch
	codex     string
	mode      string // of the sandbox
	server    []string
	options   []string          // of the shim, which the server passes on
	serverEnv map[string]string // what the server gets besides Codex's few
	model     *model
}

func newSession(t *testing.T, version string) *session {
	t.Helper()
	return &session{
		scratch:   newScratch(t),
		codex:     codex(t, version),
		mode:      "workspace-write",
		server:    []string{example("shell-server")},
		serverEnv: map[string]string{"MCP_SANDBOX_EXEC": shim},
	}
}

// prepare returns the session of a model that asks for a command to be run.
func (s *session) prepare(t *testing.T, command string) *exec.Cmd {
	t.Helper()
	return s.prepareCalls(t, modelCall{"run_command", map[string]string{"command": command}})
}

// prepareCalls starts the model, which will ask for the calls, writes the
// configuration, and returns the `codex exec` of the session.
func (s *session) prepareCalls(t *testing.T, calls ...modelCall) *exec.Cmd {
	t.Helper()
	var url string
	s.model, url = startModel(t, calls...)

	server := slices.Concat(s.server, s.options)
	// tee writes down what Codex sends.
	recorded := append([]string{"-c", `tee -- "$0" | "$@"`, s.recording()}, server...)
	// The JSON of a string, and of a list of them, is TOML too.
	config := []string{
		`model = "mock"`,
		`model_provider = "mock"`,
		`check_for_update_on_startup = false`,
		// The scratch may be in a temporary folder, as the repository may.
		`[sandbox_workspace_write]`,
		`exclude_slash_tmp = true`,
		`exclude_tmpdir_env_var = true`,
		`[analytics]`,
		`enabled = false`,
		`[model_providers.mock]`,
		`name = "mock"`,
		`base_url = ` + encode(url),
		`wire_api = "responses"`,
		`[mcp_servers.` + serverName + `]`,
		`command = "bash"`,
		`args = ` + encode(recorded),
		`required = true`,
		`default_tools_approval_mode = "approve"`,
		`[mcp_servers.` + serverName + `.env]`,
	}
	for name, value := range s.serverEnv {
		config = append(config, name+" = "+encode(value))
	}
	s.write(t, "home/.codex/config.toml", strings.Join(config, "\n")+"\n", 0o600)

	cmd := s.command(t, s.codex, "exec", "--skip-git-repo-check", "-s", s.mode, "hi")
	cmd.Dir = s.project
	// Whatever Codex would like to reach besides the model, it does not.
	cmd.Env = append(cmd.Env, "HTTP_PROXY="+nowhere, "HTTPS_PROXY="+nowhere, "ALL_PROXY="+nowhere, "NO_PROXY=127.0.0.1")
	return cmd
}

// nowhere is the address of a proxy that does not exist.
const nowhere = "http://127.0.0.1:1"

// run runs the session to its end, and returns what the model got from the tool.
func (s *session) run(t *testing.T, command string) string {
	t.Helper()
	return s.ended(t, run(t, s.prepare(t, command)))
}

// ended returns what the model of a session got from the one call of a tool.
func (s *session) ended(t *testing.T, r result) string {
	t.Helper()
	return s.endedCalls(t, r)[0]
}

// endedCalls returns what the model of a session got from each call.
func (s *session) endedCalls(t *testing.T, r result) []string {
	t.Helper()
	texts := s.model.toolResults()
	if r.status != 0 || len(texts) != len(s.model.calls) {
		t.Fatalf("the session ended with status %d and %d results; stdout %q, stderr:\n%s", r.status, len(texts), r.stdout, r.stderr)
	}
	return texts
}

// recording is the file with the lines that Codex sent to the server.
func (s *session) recording() string { return filepath.Join(s.root, "sent.jsonl") }

// call returns the one tools/call, as Codex sent it.
func (s *session) call(t *testing.T) []byte {
	t.Helper()
	calls := s.calls(t)
	if len(calls) != 1 {
		t.Fatalf("Codex sent %d tools/call, want 1:\n%s", len(calls), bytes.Join(calls, nil))
	}
	return calls[0]
}

// calls returns each tools/call, as Codex sent it.
func (s *session) calls(t *testing.T) (calls [][]byte) {
	t.Helper()
	sent, err := os.ReadFile(s.recording())
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(sent) {
		var request struct{ Method string }
		if err := json.Unmarshal(line, &request); err != nil {
			t.Fatalf("Codex sent %q: %v", line, err)
		}
		if request.Method == "tools/call" {
			calls = append(calls, line)
		}
	}
	return calls
}

// expectConfined runs writeBoth in the session and checks that the tool ran it
// in the sandbox, and that the model got to know all about it.
func (s *session) expectConfined(t *testing.T) {
	t.Helper()
	got := s.run(t, `echo "this is the output"; `+writeBoth+` || exit 7`)
	s.expectWritten(t, true, false)

	for _, part := range []string{"this is the output\n", "../outside/written: ", "\nexit status 7"} {
		if !strings.Contains(got, part) {
			t.Errorf("the model got %q, without %q", got, part)
		}
	}
}

func TestSession(t *testing.T) {
	s := newSession(t, current)
	s.expectConfined(t)

	_, meta := metaOf(t, s.call(t))
	if state, alias := meta["codex/sandbox-state"], meta["codex/sandbox-state-meta"]; state == nil || !bytes.Equal(state, alias) {
		t.Errorf("the two names of the state hold\n%s\nand\n%s", state, alias)
	}
	if got, want := string(meta["codex/sandbox-launcher"]), `{"codexExecutable":`+encode(s.codex)+`}`; got != want {
		t.Errorf("the launcher is %s, want %s", got, want)
	}
}

func TestSessionOfAClientThatNamesNoLauncher(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		s := newSession(t, beforeLaunchers)
		if got := s.run(t, writeBoth); !strings.Contains(got, "not run: launcher-missing: ") {
			t.Errorf("the model got %q, want launcher-missing", got)
		}
		s.expectWritten(t, false, false)

		_, meta := metaOf(t, s.call(t))
		if !meta.has("codex/sandbox-state-meta") || meta.has("codex/sandbox-state") || meta.has("codex/sandbox-launcher") {
			t.Errorf("want the deprecated name of the state and nothing else of it in %v", meta)
		}
	})

	t.Run("default launcher", func(t *testing.T) {
		s := newSession(t, beforeLaunchers)
		s.options = []string{"--default-launcher", s.codex}
		s.expectConfined(t)
	})

	t.Run("launcher of PATH", func(t *testing.T) {
		s := newSession(t, beforeLaunchers)
		s.options = []string{"--allow-path-launcher"}
		bin := filepath.Join(s.root, "bin")
		if err := os.Mkdir(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(s.codex, filepath.Join(bin, "codex")); err != nil {
			t.Fatal(err)
		}
		s.serverEnv["PATH"] = bin + string(filepath.ListSeparator) + os.Getenv("PATH")
		s.expectConfined(t)
	})
}

// The helper of a session is gone with it, so that a request of it cannot be
// sent again as it is.
func TestRequestOfASessionThatIsOver(t *testing.T) {
	s := newSession(t, current)
	s.run(t, "true")
	request := s.call(t)

	r := run(t, s.shim(t, request, "--", "true"))
	r.expectStatus(t, 1)
	if !strings.Contains(r.stderr, "No such file or directory") {
		t.Errorf("stderr %q", r.stderr)
	}
	checked := run(t, s.check(t, request))
	checked.expectStatus(t, 0)
	if !strings.Contains(checked.stdout, "\nnote: codexLinuxSandboxExe of the state is gone") {
		t.Errorf("check prints %q, without a note about the helper", checked.stdout)
	}
}
