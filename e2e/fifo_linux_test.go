//go:build e2e

package e2e

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// mkfifo makes a FIFO, on which a process inside of a sandbox and a test outside
// of it wait for each other.
func mkfifo(t *testing.T, path string) string {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// openFIFO opens a FIFO as soon as somebody has opened its other end. If ctx is
// done before, the test fails.
func openFIFO(ctx context.Context, t *testing.T, path string, flag int) *os.File {
	t.Helper()
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		file, err := os.OpenFile(path, flag, 0)
		done <- opened{file, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			t.Fatal(o.err)
		}
		return o.file
	case <-ctx.Done():
		// Both ends at once, for the goroutine to get on.
		if both, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			defer both.Close()
			if o := <-done; o.err == nil {
				o.file.Close()
			}
		}
		t.Fatalf("nobody opened the other end of %s: %v", path, context.Cause(ctx))
		return nil
	}
}

// readFIFO returns all that the process at the other end writes.
func readFIFO(ctx context.Context, t *testing.T, path string) string {
	t.Helper()
	f := openFIFO(ctx, t, path, os.O_RDONLY)
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// writeFIFO writes for the process at the other end.
func writeFIFO(t *testing.T, f *os.File, text string) {
	t.Helper()
	_, err := f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
