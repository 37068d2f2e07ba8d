//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"
)

// Commands that look like something to the shim, to its command-line library,
// or to the launcher. Behind "--" they are commands and nothing else.
func TestCommandsThatLookLikeOptions(t *testing.T) {
	s := newScratch(t)
	request := s.request(t, currentRequest, codex(t, current))
	programs := filepath.Join(s.root, "programs")
	for _, name := range []string{
		"help", "h", "check", "capability", "uninstall",
		"--version", "-v", "-h", "--help", "--", "-x", "--generate-bash-completion",
	} {
		t.Run(name, func(t *testing.T) {
			s.setenv("PATH", s.outside) // an empty folder
			run(t, s.shim(t, request, "--", name, "--help")).expectStatus(t, 101)

			s.write(t, "programs/"+name, "#!/bin/sh\necho \"${0##*/} ran with $*\"\nexit 3\n", 0o755)
			s.setenv("PATH", programs)
			r := run(t, s.shim(t, request, "--", name, "--help"))
			r.expectStatus(t, 3)
			if want := name + " ran with --help\n"; r.stdout != want {
				t.Errorf("stdout %q, want %q", r.stdout, want)
			}
		})
	}
}
