//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A model is an HTTP server on the loopback that speaks as much of the Responses
// API as a session needs: it asks for one run_command, and ends the session when
// it has got the result.
type model struct {
	command string

	mu     sync.Mutex
	result json.RawMessage // of the tool
}

// serverName is what the configuration calls the MCP server.
const serverName = "shell"

// startModel returns a model and its base URL.
func startModel(t *testing.T, command string) (m *model, url string) {
	t.Helper()
	m = &model{command: command}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"object":"list","data":[],"models":[]}`)
	})
	mux.HandleFunc("POST /v1/responses", m.respond)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return m, server.URL + "/v1"
}

// toolResult returns what the model got from the tool, if anything.
func (m *model) toolResult() (text string, called bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// It is one text or, when the tool reports an error of its own, several.
	if json.Unmarshal(m.result, &text) == nil {
		return text, true
	}
	var items []struct{ Text string }
	if json.Unmarshal(m.result, &items) == nil {
		for _, item := range items {
			text += item.Text + "\n"
		}
		return text, true
	}
	return "", false
}

func (m *model) respond(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Input []struct {
			Type   string
			Output json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	item := map[string]any{
		"type": "function_call", "id": "fc_1", "call_id": "call_1",
		"namespace": "mcp__" + serverName, "name": "run_command",
		"arguments": encode(map[string]string{"command": m.command}),
	}
	for _, input := range request.Input {
		if input.Type == "function_call_output" {
			m.mu.Lock()
			m.result = input.Output
			m.mu.Unlock()
			item = map[string]any{
				"type": "message", "id": "msg_1", "role": "assistant",
				"content": []any{map[string]any{"type": "output_text", "text": "done"}},
			}
		}
	}

	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []map[string]any{
		{"type": "response.created", "response": map[string]any{"id": "resp_1"}},
		{"type": "response.output_item.done", "output_index": 0, "item": item},
		{"type": "response.completed", "response": map[string]any{
			"id":    "resp_1",
			"usage": map[string]int{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
		}},
	} {
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], encode(event))
	}
}
