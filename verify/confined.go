package verify

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// A confinement is what a state's permissionProfile says about the files that a
// command may write. It is read strictly: Codex takes other spellings too, such as
// an array for an object or a number for the name of a kind, and what is not
// spelled as it writes it itself could say anything.
type confinement struct {
	profile, files string
	writable       []grant
	cwd            string
}

// A grant is an entry that lets a command do more than read.
type grant struct{ pathType, path, kind, subpath string }

// checkConfined refuses a state under which Codex would let a command write
// everywhere, and one of which that cannot be told. Measured with Codex 0.155 and
// 0.171, "managed" does not suffice: without a restriction of the files, or with
// the special path "root" writable, the command runs in the namespaces of the host.
func checkConfined(state []byte) error {
	refuse := func(message string) error {
		return &Refusal{
			Code:    CodeStateUnconfined,
			Message: message,
			Hint:    "the user of the client chose a mode without a sandbox, which this server does not accept",
		}
	}
	var c confinement
	d, err := openDocument("state", state)
	if err == nil {
		err = c.read(d)
	}
	switch {
	case err != nil:
		return refuse("what the state's permissionProfile says cannot be told: it is not as Codex writes it")
	case c.profile != "managed":
		return refuse(`the state's permissionProfile.type is not "managed"`)
	case c.files != "restricted" || slices.ContainsFunc(c.writable, c.isEverything):
		return refuse("the state's permissionProfile lets everything be written")
	}
	return nil
}

// isEverything reports whether a grant is for the whole file system, as far as its
// words say. A symbolic link in a path is not followed.
func (c *confinement) isEverything(g grant) bool {
	root := func(p string) bool { return path.Clean(p) == "/" }
	switch {
	case g.pathType == "path":
		return root(g.path)
	case g.pathType != "special":
		return false
	case g.kind == "root":
		return true
	}
	return strings.HasPrefix(g.subpath, "/") || slices.Contains(strings.Split(g.subpath, "/"), "..") ||
		(g.kind == "project_roots" || g.kind == "current_working_directory") && root(filePath(c.cwd))
}

// read reads what Codex needs: a managed profile without a file_system, or files
// that are restricted without entries, it refuses itself.
func (c *confinement) read(d *document) error {
	c.files = "restricted"
	return d.members("the state", []string{"permissionProfile", "sandboxCwd"}, func(name string) error {
		if name == "sandboxCwd" {
			return d.viewText(&c.cwd)
		}
		return d.members("permissionProfile", []string{"type", "file_system"}, func(name string) error {
			if name == "type" {
				return d.mustText(&c.profile)
			}
			return d.members("file_system", []string{"type", "entries"}, func(name string) error {
				if name == "type" {
					return d.mustText(&c.files)
				}
				return d.elements(func() error { return c.readEntry(d) })
			})
		})
	})
}

func (c *confinement) readEntry(d *document) error {
	var g grant
	var access string
	err := d.members("an entry", []string{"path", "access"}, func(name string) error {
		if name == "access" {
			return d.mustText(&access)
		}
		return d.members("path", []string{"type", "path", "value"}, func(name string) error {
			switch name {
			case "type":
				return d.mustText(&g.pathType)
			case "path":
				return d.mustText(&g.path)
			}
			return d.members("value", []string{"kind", "subpath"}, func(name string) error {
				if name == "kind" {
					return d.mustText(&g.kind)
				}
				return d.viewText(&g.subpath) // which may be null
			})
		})
	})
	switch {
	case err != nil:
		return err
	case access == "" || g.pathType == "":
		return errNotAsWritten
	case access != "read":
		c.writable = append(c.writable, g)
	}
	return nil
}

var errNotAsWritten = errors.New("not as Codex writes it")

// mustText reads the string that comes next, and wants one.
func (d *document) mustText(to *string) error {
	if d.dec.PeekKind() != '"' {
		return errNotAsWritten
	}
	return d.viewText(to)
}

// elements reads each element of the array that comes next, and wants one.
func (d *document) elements(read func() error) error {
	if d.dec.PeekKind() != '[' {
		return errNotAsWritten
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	for d.dec.PeekKind() != ']' {
		if err := read(); err != nil {
			return err
		}
	}
	_, err := d.dec.ReadToken()
	return err
}
