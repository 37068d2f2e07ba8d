package verify

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/printable"
)

// Notes returns what a person should know about an authority that may run
// commands, one line each. It looks into the state as far as it understands it,
// which changes nothing: the state stays opaque for everything else.
func (a *Authority) Notes() []string {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }

	if a.metadata.stateKey == DeprecatedStateKey {
		add("only the deprecated name %q is there: the client is older than Codex 0.163", DeprecatedStateKey)
	}
	view := viewState(a.metadata.state)
	switch {
	case view.profileType == "disabled":
		add(`the state's permissionProfile.type is "disabled": the launcher runs commands unconfined`)
	case view.profileType == "managed" && checkConfined(a.metadata.state) != nil:
		add("the state's permissionProfile lets everything be written, or is not as Codex writes it: the launcher may run commands unconfined")
	case view.profileType != "managed" && view.profileType != "":
		add("the state's permissionProfile.type is %q: what the launcher makes of it is not known here", view.profileType)
	}
	addGone := func(member, path, hint string) {
		if _, err := os.Stat(path); errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			add("%s of the state is gone: %s%s", member, printable.Line(path), hint)
		}
	}
	if view.helper != "" {
		addGone("codexLinuxSandboxExe", view.helper, " (Codex removes it when it exits)")
	}
	if folder := filePath(view.cwd); folder != "" {
		addGone("sandboxCwd", folder, "")
	}
	if size, limit := len(a.metadata.state), MaxStateSize(); size > limit/10*9 {
		add("the state has %d bytes, near the limit of %d", size, limit)
	}
	return notes
}

// A stateView is the part of a state that is understood here; empty where it is
// absent or of another type.
type stateView struct {
	profileType string
	helper, cwd string
}

// viewState reads what it can: a state of another shape gives an empty view.
func viewState(state []byte) (v stateView) {
	d, err := openDocument("state", state)
	if err != nil {
		return v
	}
	d.view(map[string]func() error{
		"permissionProfile": func() error {
			return d.view(map[string]func() error{"type": func() error { return d.viewText(&v.profileType) }})
		},
		"codexLinuxSandboxExe": func() error { return d.viewText(&v.helper) },
		"sandboxCwd":           func() error { return d.viewText(&v.cwd) },
	})
	return v
}

// view reads members of the object that comes next. Anything else is passed by.
func (d *document) view(read map[string]func() error) error {
	if d.dec.PeekKind() != '{' {
		return d.dec.SkipValue()
	}
	return d.members("the state", slices.Collect(maps.Keys(read)), func(name string) error { return read[name]() })
}

// viewText reads the string that comes next. Anything else is passed by.
func (d *document) viewText(to *string) error {
	value, err := d.value()
	if err == nil && value[0] == '"' {
		var text []byte
		if text, err = jsontext.AppendUnquote(nil, value); err == nil {
			*to = string(text)
		}
	}
	return err
}

// filePath returns the path of a file: URI, or "".
func filePath(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	return u.Path
}
