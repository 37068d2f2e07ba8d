package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// nativeAuthority returns an authority whose launcher is this test's own program,
// and the launcher's path: a symbolic link, which can be turned.
func nativeAuthority(t *testing.T) (a *verify.Authority, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "codex")
	if err := os.Symlink(nativeLauncher, path); err != nil {
		t.Fatal(err)
	}
	metadata, err := verify.ParseState([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	a, err = metadata.Authority(context.Background(), verify.Options{DefaultLauncher: path})
	if err != nil {
		t.Fatal(err)
	}
	if a.Descriptor() < 3 {
		t.Fatalf("the descriptor is %d", a.Descriptor())
	}
	return a, path
}

// turn puts another program at the path of a launcher.
func turn(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.Remove(path), os.Symlink(testLauncher, path)); err != nil {
		t.Error(err)
	}
}

// openForWriting opens the launcher without waiting for those who keep it from
// being written.
func openForWriting() (int, error) {
	return unix.Open(nativeLauncher, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

// What is put in the place of the launcher after the last comparison is not
// executed, and it is not written any more.
func TestReplaceExecutesTheDescriptor(t *testing.T) {
	a, path := nativeAuthority(t)
	called := false
	previous := execve
	defer func() { execve = previous }()
	execve = func(executed string, argv, _ []string) error {
		called = true
		turn(t, path)
		got, err := os.Stat(executed)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.Stat(nativeLauncher)
		if err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(got, want) || argv[0] != path {
			t.Errorf("%s is executed as %s", executed, argv[0])
		}
		if fd, err := openForWriting(); err != unix.EAGAIN {
			unix.Close(fd)
			t.Errorf("it can be written: %v", err)
		}
		return unix.EPERM
	}
	if err := Replace(a, Options{}, nil, nil, "true"); codeOf(t, err) != verify.CodeExecFailed || !called {
		t.Errorf("%v", err)
	}
	fd, err := openForWriting()
	if err != nil {
		t.Fatalf("it cannot be written when nothing was executed: %v", err)
	}
	unix.Close(fd)
}

// A launcher that is open for writing is being changed.
func TestReplaceOfAFileThatIsWritten(t *testing.T) {
	a, _ := nativeAuthority(t)
	fd, err := openForWriting()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	f := (&fakeExecve{}).install(t)
	if err := Replace(a, Options{}, nil, nil, "true"); codeOf(t, err) != verify.CodeLauncherChanged || !errors.Is(err, unix.ETXTBSY) || f.paths != nil {
		t.Errorf("%v; executed: %q", err, f.paths)
	}
}

// A command starts the file that was checked, whatever stands at the path then,
// what its own descriptors are, and who still holds the authority.
func TestCommandExecutesTheDescriptor(t *testing.T) {
	a, path := nativeAuthority(t)
	cmd, err := Command(context.Background(), a, Options{}, "word")
	if err != nil {
		t.Fatal(err)
	}
	descriptor := a.Descriptor()
	turn(t, path)
	a = nil
	runtime.GC()
	runtime.GC()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for range descriptor + 1 {
		cmd.ExtraFiles = append(cmd.ExtraFiles, null)
	}
	out, err := cmd.Output()
	if want := fmt.Sprintf("native %s [sandbox --sandbox-state-json {} -- word]\n", path); err != nil || string(out) != want {
		t.Errorf("%q, %v", out, err)
	}
}
