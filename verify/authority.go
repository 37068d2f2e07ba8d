package verify

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/printable"
)

// Options is what an operator decided beforehand. The zero Options refuse
// every call whose metadata is not complete.
type Options struct {
	// DefaultLauncher is the absolute path of the launcher for calls that name
	// none, such as those of Codex up to 0.162. It is checked and probed like
	// any other, and never replaces one that was named.
	DefaultLauncher string

	// AllowPathLauncher permits the first file named codex in an absolute
	// folder of PATH for calls that name no launcher. DefaultLauncher goes
	// before it.
	AllowPathLauncher bool

	// ProbeTimeout limits the probe of the launcher; zero means
	// [DefaultProbeTimeout].
	ProbeTimeout time.Duration

	// Env is the environment of the probe, and the one whose PATH counts; nil
	// means that of this process.
	Env []string
}

// A Choice says who named a launcher.
type Choice string

// The values of Choice.
const (
	FromMetadata Choice = "metadata"
	FromDefault  Choice = "default"
	FromPath     Choice = "PATH"
)

// An Authority is a state and a launcher as one call carried them, checked and
// probed: the right to run commands under that state, and nothing else. It
// belongs to the call that carried it and must not be used for another one.
type Authority struct {
	metadata *Metadata
	path     string
	choice   Choice
	identity identity
	help     launcherHelp
}

// Authority decides whether m may start a command: it chooses the launcher,
// checks its file and probes it. Cancelling ctx ends the probe and all of its
// processes.
//
// Every error but that of ctx is a [*Refusal]. For a call without any sandbox
// metadata its code is [CodeMetadataMissing].
//
// The probe gets no descriptor of this process above 2: they are all marked
// close-on-exec, which lasts. A Go program opens its own that way in any case;
// what it inherited or got from C must be passed on by [os/exec.Cmd.ExtraFiles].
func (m *Metadata) Authority(ctx context.Context, o Options) (*Authority, error) {
	if m.Missing() {
		return nil, &Refusal{
			Code:    CodeMetadataMissing,
			Message: "the call carries no sandbox metadata",
			Hint:    "the client must be Codex 0.145 or newer, and the server must advertise the capability",
		}
	}
	if m.state == nil {
		return nil, &Refusal{
			Code:    CodeStateMissing,
			Message: "a launcher is named, but there is no state",
			Hint:    fmt.Sprintf("pass %q on with %q, as they came", StateKey, LauncherKey),
		}
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	a := &Authority{metadata: m}
	var err error
	if a.path, a.choice, err = m.chooseLauncher(o); err != nil {
		return nil, err
	}
	if a.identity, err = identify(a.path); err != nil {
		return nil, err
	}
	if a.help, err = probe(ctx, a.path, o.Env, o.ProbeTimeout); err != nil {
		return nil, err
	}
	return a, nil
}

func (m *Metadata) chooseLauncher(o Options) (path string, choice Choice, err error) {
	if m.launcher != "" {
		return m.launcher, FromMetadata, nil
	}
	if o.DefaultLauncher != "" {
		if !strings.HasPrefix(o.DefaultLauncher, "/") || strings.Contains(o.DefaultLauncher, "\x00") || !utf8.ValidString(o.DefaultLauncher) {
			return "", "", &Refusal{
				Code:    CodeLauncherMalformed,
				Message: fmt.Sprintf("the default launcher is not an absolute path in UTF-8: %q", o.DefaultLauncher),
			}
		}
		return o.DefaultLauncher, FromDefault, nil
	}
	if o.AllowPathLauncher {
		if found := findOnPath(o.Env); found != "" {
			return found, FromPath, nil
		}
	}
	r := &Refusal{
		Code:    CodeLauncherMissing,
		Message: "the call names no launcher: the client is older than Codex 0.163, or not on this host",
		Hint:    "use a newer client, or decide for --default-launcher PATH or --allow-path-launcher",
	}
	if o.AllowPathLauncher {
		r.Message = "the call names no launcher, and no absolute folder of PATH has a file named codex"
		r.Hint = "install Codex, or name it with --default-launcher PATH"
	}
	return "", "", r
}

// State returns the argument for the launcher: the bytes of the state as they
// stood in the source.
func (a *Authority) State() string { return string(a.metadata.state) }

// Launcher returns the absolute path of the launcher, as it was written.
func (a *Authority) Launcher() string { return a.path }

// Choice says who named the launcher.
func (a *Authority) Choice() Choice { return a.choice }

// Supports reports whether the launcher's help lists an option, for example
// "--sandbox-state-readable-root".
func (a *Authority) Supports(option string) bool { return a.help.lists(option) }

// Recheck compares the launcher's file with the one that was checked and
// probed, by device, inode, size and times. It is for the moment before the
// file is executed; the error is a [*Refusal] with [CodeLauncherChanged].
func (a *Authority) Recheck() error {
	now, err := identify(a.path)
	if err == nil && now == a.identity {
		return nil
	}
	return &Refusal{
		Code:    CodeLauncherChanged,
		Message: fmt.Sprintf("%s is no longer the file that was probed", printable.Line(a.path)),
		Hint:    "run the command again; if Codex was being updated, that is all",
		Err:     err,
	}
}
