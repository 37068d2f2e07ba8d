//go:build e2e

package e2e

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A scratch is the place of one test.
type scratch struct {
	root    string
	project string // the folder that states name
	outside string // beside it, in no state
	home    string // with Codex's own folder in it
	runtime string // for this user alone
	env     []string
}

// newScratch makes a scratch. The project's name has characters that programs
// like to escape in JSON, in URIs and in shells.
func newScratch(t *testing.T) *scratch {
	t.Helper()
	root, err := os.MkdirTemp(base, "")
	if err != nil {
		t.Fatal(err)
	}
	s := &scratch{
		root:    root,
		project: filepath.Join(root, "a <project> & é"),
		outside: filepath.Join(root, "outside"),
		home:    filepath.Join(root, "home"),
		runtime: filepath.Join(root, "runtime"),
	}
	tmp := filepath.Join(root, "tmp")
	for _, folder := range []string{s.project, s.outside, filepath.Join(s.home, ".codex"), tmp} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(s.runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	// A short environment of its own: nothing of the machine's gets into a test,
	// and no test writes to the folders of its user.
	s.env = []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + s.home,
		"CODEX_HOME=" + filepath.Join(s.home, ".codex"),
		"XDG_CACHE_HOME=" + filepath.Join(s.home, ".cache"),
		"XDG_RUNTIME_DIR=" + s.runtime,
		// Codex does not put its helper below the folder for temporary files, where
		// the repository, and so its home here, may be.
		"TMPDIR=" + tmp,
		"LC_ALL=C",
	}
	return s
}

// setenv sets a variable for all commands that are made from now on.
func (s *scratch) setenv(name, value string) {
	s.env = append(s.env, name+"="+value) // of two, os/exec takes the last
}

// write writes a file below the scratch and returns its path.
func (s *scratch) write(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(s.root, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(content), mode)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// writeBoth is a shell command that tries to write inside and outside of the
// project, and fails if the second of them is denied.
const writeBoth = `echo inside >written; echo outside >../outside/written`

// expectWritten checks what [writeBoth] has done.
func (s *scratch) expectWritten(t *testing.T, inside, outside bool) {
	t.Helper()
	for _, c := range []struct {
		where, folder string
		want          bool
	}{
		{"inside", s.project, inside},
		{"outside", s.outside, outside},
	} {
		content, err := os.ReadFile(filepath.Join(c.folder, "written"))
		switch {
		case c.want && string(content) != c.where+"\n":
			t.Errorf("%s of the project: %q, %v; it should have been written", c.where, content, err)
		case !c.want && !errors.Is(err, fs.ErrNotExist):
			t.Errorf("%s of the project: %q, %v; it should not be there", c.where, content, err)
		}
	}
}

// command returns a command in the scratch's environment. It starts outside of
// the project: only the state may lead there.
func (s *scratch) command(t *testing.T, program string, args ...string) *exec.Cmd {
	cmd := newCommand(t, program, args...)
	cmd.Dir = s.root
	cmd.Env = s.env
	return cmd
}

// shim returns the shim with a request; args are its options and, behind "--",
// the command.
func (s *scratch) shim(t *testing.T, request []byte, args ...string) *exec.Cmd {
	t.Helper()
	return s.command(t, shim, append([]string{"--request", s.writeRequest(t, request)}, args...)...)
}

// check is shim for the subcommand check.
func (s *scratch) check(t *testing.T, request []byte, args ...string) *exec.Cmd {
	t.Helper()
	return s.command(t, shim, append([]string{"check", "--request", s.writeRequest(t, request)}, args...)...)
}

func (s *scratch) writeRequest(t *testing.T, request []byte) string {
	t.Helper()
	file, err := os.CreateTemp(s.root, "request.")
	if err == nil {
		_, err = file.Write(request)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// launcher returns a launcher without the shim; args are its options and,
// behind "--", the command.
func (s *scratch) launcher(t *testing.T, codex string, state []byte, args ...string) *exec.Cmd {
	return s.command(t, codex, append([]string{"sandbox", "--sandbox-state-json", string(state)}, args...)...)
}
