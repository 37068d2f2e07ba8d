//go:build !linux

package verify

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// open does not open the file: only Linux can do that without reading it, and
// execute what was opened.
func (f *launcherFile) open() (*unix.Stat_t, error) {
	return settled(func() (*unix.Stat_t, error) {
		var st unix.Stat_t
		return &st, unix.Stat(f.path, &st)
	})
}

// fileClock returns the time that a change of a file would get.
func fileClock() time.Time { return time.Now() }

func (f *launcherFile) chooseHow() error {
	f.byName = true
	return nil
}

func (f *launcherFile) forProbe(...*os.File) (path string, release func(), err error) {
	return f.path, func() {}, nil
}

// There are no leases.

func (f *launcherFile) hold() (release func(), err error) { return func() {}, nil }
func (f *launcherFile) stillHeld() bool                   { return true }

// isCacheable: what a script runs can change while the script stays the same.
func (f *launcherFile) isCacheable() bool {
	text, err := f.content()
	if err != nil {
		return false
	}
	defer text.Close()
	start := make([]byte, 2)
	_, err = io.ReadFull(text, start)
	return err == nil && string(start) != "#!"
}

// content opens the file that stands at the path now. That it is the one that is
// executed, the identity has to say.
func (f *launcherFile) content() (io.ReadCloser, error) { return os.Open(f.path) }
