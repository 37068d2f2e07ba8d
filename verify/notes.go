package verify

import (
	"fmt"
	"net/url"
	"os"

	"github.com/go-json-experiment/json/jsontext"
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
	if view.hasProfile && view.profileType != "managed" {
		add("the state's permissionProfile.type is %q, not \"managed\": the launcher runs commands unconfined", view.profileType)
	}
	if helper := view.helper; helper != "" {
		if _, err := os.Stat(helper); err != nil {
			add("codexLinuxSandboxExe of the state is gone: %v (Codex removes it when it exits)", err)
		}
	}
	if folder := filePath(view.cwd); folder != "" {
		if info, err := os.Stat(folder); err != nil {
			add("sandboxCwd of the state is gone: %v", err)
		} else if !info.IsDir() {
			add("sandboxCwd of the state is not a folder: %s", printable(folder))
		}
	}
	if size, limit := len(a.metadata.state), MaxStateSize(); size > limit/10*9 {
		add("the state has %d bytes, near the limit of %d", size, limit)
	}
	return notes
}

// A stateView is the part of a state that is understood here.
type stateView struct {
	hasProfile               bool
	profileType, helper, cwd string
}

// viewState reads what it can: a state of another shape gives an empty view.
func viewState(state []byte) (v stateView) {
	d, err := openDocument("state", state)
	if err != nil {
		return v
	}
	text := func(to *string) error {
		value, err := d.value()
		if err == nil && value[0] == '"' {
			decoded, _ := jsontext.AppendUnquote(nil, value)
			*to = string(decoded)
		}
		return err
	}
	d.members("the state", []string{"permissionProfile", "codexLinuxSandboxExe", "sandboxCwd"}, func(name string) error {
		switch name {
		case "codexLinuxSandboxExe":
			return text(&v.helper)
		case "sandboxCwd":
			return text(&v.cwd)
		}
		v.hasProfile = true
		return d.members("permissionProfile", []string{"type"}, func(string) error { return text(&v.profileType) })
	})
	return v
}

// filePath returns the path of a file: URI, or "".
func filePath(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	return u.Path
}
