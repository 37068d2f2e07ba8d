package verify

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The names under which Codex sends the metadata of a tool call, in the _meta
// of its params, and under which a server advertises that it honours them.
const (
	// StateKey names the state, from Codex 0.163.
	StateKey = "codex/sandbox-state"
	// DeprecatedStateKey is the older name of the same value: the only one up
	// to Codex 0.162, an identical copy from 0.163.
	DeprecatedStateKey = "codex/sandbox-state-meta"
	// LauncherKey names the launcher, from Codex 0.163.
	LauncherKey = "codex/sandbox-launcher"
)

// Capability is the JSON that a server puts into its answer to initialize, as
// capabilities.experimental. Codex up to 0.162 looks for the deprecated name
// alone, so both are advertised.
const Capability = `{"` + StateKey + `":{},"` + DeprecatedStateKey + `":{}}`

// Metadata is what one tool call says about the sandbox: well formed, but not
// yet trusted. [Metadata.Authority] decides about that.
type Metadata struct {
	state    []byte // the value's bytes in the source; nil if absent
	stateKey string // the name it stood under; empty if it came by itself
	launcher string // codexExecutable; empty if absent
}

// ParseRequest reads a whole JSON-RPC request of the method tools/call. Only
// params._meta is looked at: the tool's name and arguments come from the model
// and are no authority, whatever they contain.
//
// Errors are of the type [*Refusal], with one of the codes
// [CodeMetadataMalformed], [CodeStateMalformed], [CodeStateTooLarge],
// [CodeStateConflict] and [CodeLauncherMalformed]. A request without metadata is
// not an error.
func ParseRequest(text []byte) (*Metadata, error) {
	d, err := openDocument("request", text)
	if err != nil {
		return nil, err
	}
	var meta metaReader
	err = d.members("the request", []string{"params"}, func(string) error {
		return d.members("params", []string{"_meta"}, func(string) error {
			return meta.read(d, "params._meta")
		})
	})
	return meta.finish(d, err)
}

// ParseMeta reads the _meta object of a request by itself. Its errors are those
// of [ParseRequest].
func ParseMeta(text []byte) (*Metadata, error) {
	d, err := openDocument("_meta", text)
	if err != nil {
		return nil, err
	}
	var meta metaReader
	return meta.finish(d, meta.read(d, "the value"))
}

// ParseState reads a state by itself, the value of "codex/sandbox-state". Its
// errors are those of [ParseRequest].
func ParseState(text []byte) (*Metadata, error) {
	d, err := openDocument("state", text)
	if err != nil {
		return nil, err
	}
	var meta metaReader
	meta.state, err = d.value()
	m, err := meta.finish(d, err)
	if err != nil {
		return nil, err
	}
	m.stateKey = ""
	return m, nil
}

// AddLauncher reads a launcher by itself, the value of "codex/sandbox-launcher",
// and makes it the launcher of m. Its errors are those of [ParseRequest].
func (m *Metadata) AddLauncher(text []byte) error {
	d, err := openDocument("launcher", text)
	if err != nil {
		return err
	}
	var meta metaReader
	parsed, err := meta.finish(d, meta.readLauncher(d, "the value"))
	if err != nil {
		return err
	}
	m.launcher = parsed.launcher
	return nil
}

// Missing reports whether the call carries no sandbox metadata at all.
func (m *Metadata) Missing() bool { return m.state == nil && m.launcher == "" }

// State returns the bytes of the state as they stood in the source, from the
// first to the last of the value, or nil. They must not be changed.
func (m *Metadata) State() []byte { return m.state }

// StateKey returns the name under which the state stood: [StateKey],
// [DeprecatedStateKey] if that was the only one, or "" without a _meta.
func (m *Metadata) StateKey() string { return m.stateKey }

// Launcher returns the path that codexExecutable names, or "".
func (m *Metadata) Launcher() string { return m.launcher }

// MaxStateSize returns how many bytes a state may have: what execve(2) takes as
// one argument. On Linux these are 32 pages less the final NUL, 131,071 bytes
// with pages of 4 KiB; on macOS, where only the sum of all arguments is limited,
// 1 MiB less the NUL.
func MaxStateSize() int {
	if runtime.GOOS == "linux" {
		return 32*os.Getpagesize() - 1
	}
	return 1<<20 - 1
}

// A metaReader collects the members of a _meta object, in whatever order they
// stand there.
type metaReader struct {
	state, deprecated, executable []byte
	hasLauncher                   bool
}

func (r *metaReader) read(d *document, what string) error {
	keys := []string{StateKey, DeprecatedStateKey, LauncherKey}
	return d.members(what, keys, func(key string) (err error) {
		switch key {
		case StateKey:
			r.state, err = d.value()
		case DeprecatedStateKey:
			r.deprecated, err = d.value()
		case LauncherKey:
			err = r.readLauncher(d, `"`+LauncherKey+`"`)
		}
		return err
	})
}

func (r *metaReader) readLauncher(d *document, what string) error {
	r.hasLauncher = true
	return d.members(what, []string{"codexExecutable"}, func(string) (err error) {
		r.executable, err = d.value()
		return err
	})
}

// finish reads the document to its end and decides about what was found.
func (r *metaReader) finish(d *document, err error) (*Metadata, error) {
	if err != nil {
		return nil, err
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	m := &Metadata{}
	if m.state, m.stateKey, err = r.chooseState(); err != nil {
		return nil, err
	}
	if r.hasLauncher {
		if m.launcher, err = executablePath(r.executable); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (r *metaReader) chooseState() (state []byte, key string, err error) {
	for _, s := range [][]byte{r.state, r.deprecated} {
		if string(s) == "null" {
			return nil, "", &Refusal{
				Code:    CodeStateMalformed,
				Message: "the state is null",
				Hint:    "a call without a policy leaves the member out",
			}
		}
		if limit := MaxStateSize(); len(s) > limit {
			return nil, "", &Refusal{
				Code:    CodeStateTooLarge,
				Message: fmt.Sprintf("the state has %d bytes, and one argument can have %d", len(s), limit),
				Hint:    "the launcher takes the state as one argument; shorten the policy's list of paths",
			}
		}
	}
	switch {
	case r.state == nil && r.deprecated == nil:
		return nil, "", nil
	case r.state == nil:
		return r.deprecated, DeprecatedStateKey, nil
	case r.deprecated != nil && !sameValue(r.state, r.deprecated):
		return nil, "", &Refusal{
			Code:    CodeStateConflict,
			Message: fmt.Sprintf("%q and %q hold different values", StateKey, DeprecatedStateKey),
			Hint:    "they are two names of one policy; something between the client and this program changed one of them",
		}
	}
	return r.state, StateKey, nil
}

// executablePath decodes the raw value of codexExecutable, nil if there is
// none. The path is used as it was written, so what a decoder would have to
// replace is refused: a file may well wait at the replaced name.
func executablePath(raw []byte) (string, error) {
	malformed := func(format string, args ...any) (string, error) {
		return "", &Refusal{
			Code:    CodeLauncherMalformed,
			Message: fmt.Sprintf(format, args...),
			Hint:    "it must be the absolute path of a full Codex CLI on this host",
		}
	}
	switch {
	case raw == nil:
		return malformed(`the launcher has no member "codexExecutable" (names count exactly, case included)`)
	case raw[0] != '"':
		return malformed("codexExecutable is %s, not a string", kindName(jsontext.Value(raw).Kind()))
	}
	path, err := jsontext.AppendUnquote(nil, raw)
	switch {
	case err != nil:
		return malformed("codexExecutable has an escape of a lone surrogate, which no file name can contain")
	case bytes.IndexByte(path, 0) >= 0:
		return malformed("codexExecutable contains a NUL")
	case !strings.HasPrefix(string(path), "/"):
		return malformed("codexExecutable is not an absolute path: %q", path)
	}
	return string(path), nil
}
