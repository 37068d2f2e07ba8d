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
// API as a session needs: it asks for one call of a tool after the other, and ends
// the session when it has got all results.
type model struct {
	calls []modelCall

	mu      sync.Mutex
	results []json.RawMessage // of the tools
}

// A modelCall is one call of a tool.
type modelCall struct {
	tool      string
	arguments map[string]string
}

// serverName is what the configuration calls the MCP server.
const serverName = "shell"

// startModel returns a model and its base URL.
func startModel(t *testing.T, calls ...modelCall) (m *model, url string) {
	t.Helper()
	m = &model{calls: calls}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"object":"list","data":[],"models":[]}`)
	})
	mux.HandleFunc("POST /v1/responses", m.respond)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return m, server.URL + "/v1"
}

// toolResults returns what the model got from the tools.
func (m *model) toolResults() (texts []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, result := range m.results {
		// It is one text or, when the tool reports an error of its own, several.
		var text string
		var items []struct{ Text string }
		if json.Unmarshal(result, &text) != nil && json.Unmarshal(result, &items) == nil {
			for _, item := range items {
				text += item.Text + "\n"
			}
		}
		texts = append(texts, text)
	}
	return texts
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
	// Each request has all of the conversation, and so all results until then.
	var results []json.RawMessage
	for _, input := range request.Input {
		if input.Type == "function_call_output" {
			results = append(results, input.Output)
		}
	}
	m.mu.Lock()
	m.results = results
	m.mu.Unlock()
	item := map[string]any{
		"type": "message", "id": "msg_1", "role": "assistant",
		"content": []any{map[string]any{"type": "output_text", "text": "done"}},
	}
	if n := len(results); n < len(m.calls) {
		item = map[string]any{
			"type": "function_call", "id": fmt.Sprint("fc_", n), "call_id": fmt.Sprint("call_", n),
			"namespace": "mcp__" + serverName, "name": m.calls[n].tool,
			"arguments": encode(m.calls[n].arguments),
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
