//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Recorded requests that several tests use.
const (
	currentRequest         = "tools-call-codex-0.171.0-workspace-write.json"
	readOnlyRequest        = "tools-call-codex-0.171.0-read-only.json"
	unconfinedRequest      = "tools-call-codex-0.171.0-danger-full-access.json"
	beforeLaunchersRequest = "tools-call-codex-0.155.0-workspace-write.json"
)

// recordings is the folder of the recorded requests.
func recordings() string { return filepath.Join(top, "testdata", "requests") }

// recordedHelper is a file of the session that sent the request. That session
// is over and the file gone; with null in its place the launcher uses its own.
var recordedHelper = regexp.MustCompile(`"codexLinuxSandboxExe":"[^"]*"`)

// recordedTemporaries are the temporary folders in a recorded policy. The scratch
// may be in one of them, as the repository may.
var recordedTemporaries = regexp.MustCompile(`\{"path":\{"type":"special","value":\{"kind":"(slash_tmp|tmpdir)"\}\},"access":"write"\},`)

// request returns a recorded request with the scratch's project in it and, where
// it names a launcher, this one. Nothing else is writable in it.
func (s *scratch) request(t *testing.T, recording, launcher string) []byte {
	t.Helper()
	request, err := os.ReadFile(filepath.Join(recordings(), recording))
	if err != nil {
		t.Fatal(err)
	}
	uri := url.URL{Scheme: "file", Path: s.project}
	for _, c := range []struct{ recorded, now string }{
		{"file:///home/dev/project", uri.String()},
		{"/home/dev/project", s.project},
		{"/opt/codex/bin/codex", launcher},
	} {
		// This escapes more than it must, "<" for example, and the shim has to
		// leave that as it is.
		now := encode(c.now)
		request = bytes.ReplaceAll(request, []byte(c.recorded), []byte(now[1:len(now)-1]))
	}
	request = recordedTemporaries.ReplaceAll(request, nil)
	return recordedHelper.ReplaceAll(request, []byte(`"codexLinuxSandboxExe":null`))
}

// currentState returns the state of the current version's recorded request.
func (s *scratch) currentState(t *testing.T) []byte {
	t.Helper()
	_, meta := metaOf(t, s.request(t, currentRequest, ""))
	return meta.state()
}

// newRequest returns a request with a state and a launcher.
func newRequest(state []byte, launcher string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_command","arguments":{},"_meta":{` +
		`"codex/sandbox-state":` + string(state) + `,"codex/sandbox-launcher":{"codexExecutable":` + encode(launcher) + `}}}}`)
}

// The members of a request's _meta, with their bytes as they stand there.
type members map[string]json.RawMessage

// metaOf returns the _meta of a request, whole and by members.
func metaOf(t *testing.T, request []byte) (json.RawMessage, members) {
	t.Helper()
	var call struct {
		Params struct {
			Meta json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	var meta members
	err := json.Unmarshal(request, &call)
	if err == nil {
		err = json.Unmarshal(call.Params.Meta, &meta)
	}
	if err != nil {
		t.Fatalf("%v in the request %s", err, request)
	}
	return call.Params.Meta, meta
}

// state returns the bytes of the state, under either name.
func (m members) state() []byte {
	if state, ok := m["codex/sandbox-state"]; ok {
		return state
	}
	return m["codex/sandbox-state-meta"]
}

func (m members) has(name string) bool {
	_, ok := m[name]
	return ok
}

// replaceOnce replaces what stands exactly once in a text.
func replaceOnce(t *testing.T, text []byte, old, replacement string) []byte {
	t.Helper()
	if n := bytes.Count(text, []byte(old)); n != 1 {
		t.Fatalf("%q stands %d times in %s", old, n, text)
	}
	return bytes.Replace(text, []byte(old), []byte(replacement), 1)
}

// encode returns the JSON of a value that always has one.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}
