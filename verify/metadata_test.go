package verify

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// codeOf returns the code of a refusal, or "" for no error.
func codeOf(t *testing.T, err error) Code {
	t.Helper()
	if err == nil {
		return ""
	}
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("not a refusal: %v", err)
	}
	if strings.ContainsAny(refusal.Message+refusal.Hint, "\n\x1b") {
		t.Errorf("more than a line: %q, %q", refusal.Message, refusal.Hint)
	}
	return refusal.Code
}

func TestParseRequest(t *testing.T) {
	for _, test := range []struct {
		name, text      string
		state, launcher string
		key             string
		code            Code
	}{
		{name: "no params", text: `{}`},
		{name: "no _meta", text: `{"params":{"name":"x"}}`},
		{name: "other _meta", text: `{"params":{"_meta":{"progressToken":1}}}`},
		{
			name:  "everything",
			text:  ` { "params" : { "_meta" : { "codex/sandbox-launcher" : { "codexExecutable" : "\/a" } , "codex/sandbox-state" : [ 1.0 ] } } } `,
			state: `[ 1.0 ]`, key: StateKey, launcher: "/a",
		},
		{
			name:  "deprecated name alone",
			text:  `{"params":{"_meta":{"codex/sandbox-state-meta":{"a":1}}}}`,
			state: `{"a":1}`, key: DeprecatedStateKey,
		},
		{
			name:  "the newer name is forwarded",
			text:  `{"params":{"_meta":{"codex/sandbox-state-meta":{"a" : 1},"codex/sandbox-state":{ "a":1}}}}`,
			state: `{ "a":1}`, key: StateKey,
		},
		{
			name:  "escaped names are names",
			text:  `{"p\u0061rams":{"_met\u0061":{"codex\/sandbox-state":1}}}`,
			state: `1`, key: StateKey,
		},
		{name: "an empty state is a state", text: `{"params":{"_meta":{"codex/sandbox-state":""}}}`, state: `""`, key: StateKey},
		{name: "case of params", text: `{"Params":{"_meta":{"codex/sandbox-state":1}}}`},
		{name: "long s", text: `{"param\u017f":{"_meta":{"codex/sandbox-state":1}}}`},
		{name: "arguments", text: `{"params":{"arguments":{"_meta":{"codex/sandbox-state":1}}}}`},
		{name: "_meta of a _meta", text: `{"params":{"_meta":{"_meta":{"codex/sandbox-state":1}}}}`},
		{name: "broken behind", text: `{"params":{"_meta":{"codex/sandbox-state":1}},`, code: CodeMetadataMalformed},
		{name: "broken in arguments", text: `{"params":{"_meta":{},"arguments":{"a":tru}}}`, code: CodeMetadataMalformed},
		{name: "twice", text: `{"params":{"_meta":{}},"par\u0061ms":{}}`, code: CodeMetadataMalformed},
		{name: "null _meta", text: `{"params":{"_meta":null}}`, code: CodeMetadataMalformed},
		{name: "boolean _meta", text: `{"params":{"_meta":true}}`, code: CodeMetadataMalformed},
		{name: "null state", text: `{"params":{"_meta":{"codex/sandbox-state": null }}}`, code: CodeStateMalformed},
		{name: "conflict", text: `{"params":{"_meta":{"codex/sandbox-state":1,"codex/sandbox-state-meta":1.0}}}`, code: CodeStateConflict},
		{name: "no executable", text: `{"params":{"_meta":{"codex/sandbox-launcher":{}}}}`, code: CodeLauncherMalformed},
		{name: "nested too deep", text: `{"params":{"_meta":{"codex/sandbox-state":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}}}`, code: CodeMetadataMalformed},
	} {
		m, err := ParseRequest([]byte(test.text))
		if code := codeOf(t, err); code != test.code {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil {
			continue
		}
		if string(m.State()) != test.state || m.StateKey() != test.key || m.Launcher() != test.launcher {
			t.Errorf("%s: state %q under %q, launcher %q", test.name, m.State(), m.StateKey(), m.Launcher())
		}
		if missing := test.state == "" && test.launcher == ""; m.Missing() != missing {
			t.Errorf("%s: missing is %v", test.name, m.Missing())
		}
	}
}

// Recorded requests, read by another parser for comparison.
func TestRecordedRequests(t *testing.T) {
	files, err := filepath.Glob("../testdata/requests/tools-call-*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded requests: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var request struct {
			Params struct {
				Meta struct {
					State    json.RawMessage `json:"codex/sandbox-state"`
					Old      json.RawMessage `json:"codex/sandbox-state-meta"`
					Launcher struct{ CodexExecutable string }
				} `json:"_meta"`
			}
		}
		if err := json.Unmarshal(text, &request); err != nil {
			t.Fatal(err)
		}
		want := request.Params.Meta
		if want.State == nil {
			want.State = want.Old
		}
		m, err := ParseRequest(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if string(m.State()) != string(want.State) || len(m.State()) == 0 {
			t.Errorf("%s: the state is %s, not %s", file, m.State(), want.State)
		}
		if named := strings.Contains(string(text), LauncherKey); (m.Launcher() == "/opt/codex/bin/codex") != named {
			t.Errorf("%s: the launcher is %q", file, m.Launcher())
		}
	}
}

func TestParts(t *testing.T) {
	m, err := ParseState([]byte(" {\"a\":\"\\ud800\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if string(m.State()) != `{"a":"\ud800"}` || m.StateKey() != "" {
		t.Errorf("state %q under %q", m.State(), m.StateKey())
	}
	if err := m.AddLauncher([]byte(`{"other":1,"codexExecutable":"/a b"}`)); err != nil {
		t.Fatal(err)
	}
	if m.Launcher() != "/a b" || string(m.State()) != `{"a":"\ud800"}` {
		t.Errorf("launcher %q, state %q", m.Launcher(), m.State())
	}
	if code := codeOf(t, m.AddLauncher([]byte(`{"codexExecutable":"a"}`))); code != CodeLauncherMalformed {
		t.Errorf("a relative launcher: %q", code)
	}
}

// No refusal contains the state, which may name what is private.
func TestRefusalsKeepTheState(t *testing.T) {
	const secret = "top-secret-folder"
	for _, text := range []string{
		`{"codex/sandbox-state":{"x":"` + secret + `"},"codex/sandbox-state-meta":{"x":"` + secret + `2"}}`,
		`{"codex/sandbox-state":{"x":"` + secret + `"`,
		`{"codex/sandbox-state":{"` + secret + `":\}}`,
		`{"codex/sandbox-state":{"` + secret + `":1},"codex/sandbox-launcher":7}`,
		`{"codex/sandbox-state":"` + secret + strings.Repeat("x", MaxStateSize()) + `"}`,
	} {
		_, err := ParseMeta([]byte(text))
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

func TestStateSize(t *testing.T) {
	text := []byte(`"` + strings.Repeat("x", MaxStateSize()-2) + `"`)
	if _, err := ParseState(text); err != nil {
		t.Errorf("the largest state: %v", err)
	}
	if _, err := ParseState(append([]byte(`" `), text[1:]...)); codeOf(t, err) != CodeStateTooLarge {
		t.Errorf("one byte more: %v", err)
	}
}
