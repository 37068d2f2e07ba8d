// Package pathwalk follows a path as the system does, so that all that decides where
// it leads can be looked at.
package pathwalk

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mostLinks is how many symbolic links Linux follows in one path.
const mostLinks = 40

// Walk calls visit for the root, and for each folder, symbolic link and file on the way
// to a path, which must be absolute. A link is visited first and followed then. It ends
// with the first error, which is a [*fs.PathError] where visit did not make it.
func Walk(path string, visit func(step string, st *unix.Stat_t) error) error {
	look := func(step string) (*unix.Stat_t, error) {
		var st unix.Stat_t
		if err := unix.Lstat(step, &st); err != nil {
			return nil, &fs.PathError{Op: "lstat", Path: step, Err: err}
		}
		return &st, visit(step, &st)
	}
	here, rest := "/", path
	if _, err := look(here); err != nil {
		return err
	}
	for links := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			here = filepath.Dir(here)
			continue
		}
		step := strings.TrimSuffix(here, "/") + "/" + name
		st, err := look(step)
		if err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			here = step
			continue
		}
		target, err := os.Readlink(step)
		if links++; err == nil && links > mostLinks {
			err = &fs.PathError{Op: "lstat", Path: path, Err: unix.ELOOP}
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(target, "/") {
			here = "/"
		}
		rest = target + "/" + rest
	}
	return nil
}
