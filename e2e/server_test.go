//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A toolAnswer is what the example server answers to a request.
type toolAnswer struct {
	ID     json.RawMessage
	Error  struct{ Code int }
	Result struct {
		IsError bool
		Content []struct{ Text string }
	}
}

// text returns the one text of a tool's result.
func (a toolAnswer) text() string {
	if len(a.Result.Content) != 1 {
		return ""
	}
	return a.Result.Content[0].Text
}

// example returns the path of an example server.
func example(name string) string { return filepath.Join(top, "examples", name, "server") }

// serve gives the example server some lines, and returns its answers.
func (s *scratch) serve(t *testing.T, lines ...[]byte) []toolAnswer {
	t.Helper()
	cmd := s.command(t, example("shell-server"))
	cmd.Env = append(cmd.Env, "MCP_SANDBOX_EXEC="+shim)
	cmd.Stdin = bytes.NewReader(bytes.Join(lines, []byte("\n"))) // none behind the last
	r := run(t, cmd)
	r.expectStatus(t, 0)
	if r.stderr != "" {
		t.Errorf("the server wrote to stderr: %s", r.stderr)
	}
	var answers []toolAnswer
	for line := range strings.Lines(r.stdout) {
		answers = append(answers, decodeAnswer(t, line))
	}
	return answers
}

func decodeAnswer(t *testing.T, line string) (answer toolAnswer) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		t.Fatalf("the server answered %q: %v", line, err)
	}
	return answer
}

// toolCall returns the recorded call, with this command for the tool.
func (s *scratch) toolCall(t *testing.T, command string) []byte {
	t.Helper()
	return callTool(t, s.request(t, currentRequest, codex(t, current)), "run_command", map[string]string{"command": command})
}

// callTool returns a recorded request with another tool and other arguments.
func callTool(t *testing.T, request []byte, tool string, arguments any) []byte {
	t.Helper()
	before, _, found := bytes.Cut(request, []byte(`"name":"run","arguments":`))
	if !found {
		t.Fatalf("no tool in %s", request)
	}
	return append(slices.Clone(before), `"name":`+encode(tool)+`,"arguments":`+encode(arguments)+`}}`...)
}

func TestExampleServerAnswers(t *testing.T) {
	s := newScratch(t)
	for _, c := range []struct {
		name, command, text string
		isError             bool
	}{
		{"output and status", "echo out; echo err >&2; exit 7", "out\nerr\nexit status 7", true},
		{"no output", "true", "exit status 0", false},
		{"a last line without its end", "printf x", "x\nexit status 0", false},
		{"bytes that are no text", `printf 'a\000b\377'`, "a\x00b\ufffd\nexit status 0", false},
		{"more than an argument can hold", "seq 100000", "1\n", false},
		{"a command that looks like an option", "--version", "exit status 127", true},
		{"the status of a refusal", "exit 125", "exit status 125", true},
		{"an object on stderr", `echo '{"code":1}' >&2`, "{\"code\":1}\nexit status 0", false},
		{"nothing on stdin", "cat", "exit status 0", false},
		{"a NUL", "echo a\x00b", "not run: ", true},
		{"no command", "", "not run: ", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := s.serve(t, s.toolCall(t, c.command))
			if len(answers) != 1 {
				t.Fatalf("%d answers", len(answers))
			}
			got := answers[0]
			if text := got.text(); !strings.Contains(text, c.text) || got.Result.IsError != c.isError {
				t.Errorf("the answer is %.200q, an error: %v", text, got.Result.IsError)
			}
		})
	}
}

func TestExampleServerSpeaksTheProtocol(t *testing.T) {
	s := newScratch(t)
	answers := s.serve(t,
		[]byte(`{"jsonrpc":"2.0","id":"first","method":"initialize","params":[]}`),
		[]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`),
		[]byte(`{"jsonrpc":"2.0","id":28}`), // an answer, to nobody's question
		[]byte(``),
		[]byte(`this is no JSON`),
		[]byte(`[]`),
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"no/such"}`),
		[]byte(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"other"}}`),
		[]byte(`{"jsonrpc":"2.0","id":3,"method":"tools/call"}`),
		[]byte(`{"jsonrpc":"2.0","id":"`+strings.Repeat("x", 200_000)+`","method":"ping"}`),
		[]byte(`{"jsonrpc":"2.0","id":"last","method":"ping"}`),
	)
	want := []struct {
		id    string
		error int
	}{
		{`"first"`, 0},
		{`null`, -32700},
		{`null`, -32700},
		{`1`, -32601},
		{`2`, -32602},
		{`3`, -32602},
		{`"` + strings.Repeat("x", 200_000) + `"`, 0},
		{`"last"`, 0},
	}
	if len(answers) != len(want) {
		t.Fatalf("%d answers, not %d: %.500v", len(answers), len(want), answers)
	}
	for i, w := range want {
		if got := answers[i]; string(got.ID) != w.id || got.Error.Code != w.error {
			t.Errorf("answer %d is for %.40s, with the error %d; want %.40s, %d", i, got.ID, got.Error.Code, w.id, w.error)
		}
	}
}
