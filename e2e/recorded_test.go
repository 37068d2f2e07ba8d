//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// policies says where the recorded requests, by the ends of their names, let a
// command write.
var policies = map[string]struct{ inside, outside bool }{
	"-workspace-write.json":    {true, false},
	"-read-only.json":          {false, false},
	"-danger-full-access.json": {true, true},
}

func TestRecordedRequests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recordings(), "tools-call-*.json"))
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, file := range files {
		for end, may := range policies {
			recording := filepath.Base(file)
			if !strings.HasSuffix(recording, end) {
				continue
			}
			tested++
			t.Run(recording, func(t *testing.T) {
				s := newScratch(t)
				launcher := codex(t, current)
				request := s.request(t, recording, launcher)
				var options []string
				if _, meta := metaOf(t, request); !meta.has("codex/sandbox-launcher") {
					options = []string{"--default-launcher", launcher}
				}

				checked := run(t, s.check(t, request, append(options, "--", "sh", "-c", writeBoth)...))
				checked.expectStatus(t, 0)
				if unconfined := strings.Contains(checked.stdout, "\nnote: the state's permissionProfile.type"); unconfined != may.outside {
					t.Errorf("check prints %q; a note about an unconfined command should be there: %t", checked.stdout, may.outside)
				}
				s.expectWritten(t, false, false)

				// Each of both for itself, and the status says how the second went.
				r := run(t, s.shim(t, request, append(options, "--", "sh", "-c",
					`(echo inside >written); (echo outside >../outside/written)`)...))
				if (r.status == 0) != may.outside || r.status == 125 {
					t.Errorf("exit status %d, stderr %q", r.status, r.stderr)
				}
				s.expectWritten(t, may.inside, may.outside)
			})
		}
	}
	if tested != len(files) || tested < len(policies) {
		t.Errorf("%d of the recorded requests %q were tested; each needs a policy in this test", tested, files)
	}
}

func TestLauncherThatTakesNoState(t *testing.T) {
	for _, c := range []struct {
		name, recording string
		options         []string
	}{
		{"named by the call", currentRequest, nil},
		{"by default", beforeLaunchersRequest, []string{"--default-launcher", codex(t, beforeStates)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScratch(t)
			request := s.request(t, c.recording, codex(t, beforeStates))
			r := run(t, s.shim(t, request, append(c.options, "--", "sh", "-c", writeBoth)...))
			r.expectRefusal(t, "launcher-incapable")
			s.expectWritten(t, false, false)
		})
	}
}
