package verify

import (
	"context"
	"fmt"
	"os"
	"slices"
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

	// AllowedLaunchers refuses every launcher but these, whoever named it. Empty
	// allows all.
	AllowedLaunchers []AllowedLauncher

	// RequireConfined refuses a state under which the launcher would let commands
	// write everywhere, or of which that cannot be told: its permissionProfile must
	// be of the type "managed" and restrict the files, spelled as Codex writes it.
	// Nothing else looks into the state.
	RequireConfined bool

	// CacheDir is the folder of the probe cache, from which a launcher that has
	// passed the probe before is known, by its path, device, inode, size and
	// times. Empty means that each call is probed; [DefaultCacheDir] is the one
	// of the program. The cache is never a reason to fail: one that is
	// damaged, or that another user can write, is as if it were empty.
	CacheDir string

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
//
// On Linux it holds an open descriptor of the launcher's file, which authorities
// with the same file share, and which is closed when none of them is reachable.
type Authority struct {
	metadata *Metadata
	choice   Choice
	launcher *launcherFile
	options  launcherOptions
	cached   bool
	cacheErr error
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
	if o.RequireConfined {
		if err := checkConfined(m.state); err != nil {
			return nil, err
		}
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	path, choice, err := m.chooseLauncher(o)
	if err != nil {
		return nil, err
	}
	launcher, err := openLauncher(path)
	if err != nil {
		return nil, err
	}
	a := &Authority{metadata: m, choice: choice, launcher: launcher}
	err = checkAllowed(ctx, launcher, o.AllowedLaunchers)
	if err == nil {
		err = a.probeOnce(ctx, o)
	}
	if err != nil {
		launcher.close()
		return nil, err
	}
	launcher.share()
	return a, nil
}

// probeOnce probes the launcher, unless it has passed before.
func (a *Authority) probeOnce(ctx context.Context, o Options) (err error) {
	if !a.launcher.isCacheable() {
		o.CacheDir = ""
	}
	if o.CacheDir != "" {
		if a.options, a.cacheErr = cachedProbe(o.CacheDir, a.launcher); a.options != nil {
			a.cached = true
			return nil
		}
	}
	if a.options, err = probe(ctx, a.launcher, o.Env, o.ProbeTimeout); err != nil {
		return err
	}
	// A file that was changed meanwhile may not be the one that passed.
	if o.CacheDir != "" && a.launcher.check() == nil {
		a.cacheErr = cacheProbe(o.CacheDir, a.launcher, a.options)
	}
	return nil
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
func (a *Authority) Launcher() string { return a.launcher.path }

// Choice says who named the launcher.
func (a *Authority) Choice() Choice { return a.choice }

// Supports reports whether the launcher's help lists an option, for example
// "--sandbox-state-readable-root".
func (a *Authority) Supports(option string) bool { return slices.Contains(a.options, option) }

// Cached reports whether the launcher's probe was found in [Options.CacheDir].
func (a *Authority) Cached() bool { return a.cached }

// CacheErr says why the probe cache could not be used, or is nil. It is for
// people: a cache that cannot be used is no failure.
func (a *Authority) CacheErr() error { return a.cacheErr }

// Descriptor returns the open descriptor of the file that was checked and
// probed, for the system to execute; or -1 where it is to be executed by its
// path: a script, which its interpreter opens by its name, or a system that
// cannot execute a descriptor. It is open as long as a is reachable.
func (a *Authority) Descriptor() int {
	if a.launcher.byName {
		return -1
	}
	return int(a.launcher.file.Fd())
}

// Hold keeps the launcher's file from being written until release is called or
// this process has become another program: on Linux, if this user can read it, and
// owns it or is root, and on file systems that know leases. Elsewhere it does
// nothing. The error is a [*Refusal] with [CodeLauncherChanged]: the file is open
// for writing.
func (a *Authority) Hold() (release func(), err error) {
	release, err = a.launcher.hold()
	if err != nil {
		return nil, a.launcher.busy()
	}
	return release, nil
}

// Close lets a launcher with a pin be written again, which otherwise waits until
// the garbage collector finds that nobody has the authority any more. It must not
// be used after that. For others Close does nothing.
func (a *Authority) Close() error {
	if !a.launcher.held {
		return nil
	}
	return a.launcher.file.Close()
}

const hintChanged = "run the command again; if Codex was being updated, that is all"

// Recheck compares the launcher's file with the one that was checked and
// probed, by device, inode, size and times. It is for the moment before the
// file is executed; the error is a [*Refusal] with [CodeLauncherChanged].
func (a *Authority) Recheck() error {
	err := a.launcher.check()
	if err == nil {
		return nil
	}
	return &Refusal{
		Code:    CodeLauncherChanged,
		Message: fmt.Sprintf("%s is no longer the file that was probed: %v", printable.Line(a.Launcher()), err),
		Hint:    hintChanged,
		Err:     err,
	}
}
