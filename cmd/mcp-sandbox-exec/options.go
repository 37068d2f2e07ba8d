package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/exec"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/descriptor"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/printable"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// defaultVariable holds a _meta object where no source is named.
const defaultVariable = "MCP_SANDBOX_META"

// options is the command line of a run or of a subcommand.
type options struct {
	request, meta, state, launcher       option
	defaultLauncher                      option
	allowPathLauncher, allowUnsandboxed  option
	allowLauncher, requireConfined       option
	readableRoot, keepFD, disableNetwork option
	probeTimeout, noCache                option
	retain, retained, prune              option
	server, environment, retainDir       option
	dryRun, json, verbose, errorFormat   option

	all []*option // those that the command has
}

// fewestDescriptors is what the Go runtime opens for itself, and a source before
// that, with two to spare.
const fewestDescriptors = 5

const (
	aboutSource    = "Where the metadata comes from"
	aboutMissing   = "When the client sent none"
	aboutTrust     = "What is refused besides"
	aboutProbe     = "The probe"
	aboutHandOver  = "Handing over"
	aboutLongLived = "Long-lived processes"
	aboutOutput    = "What is said"
)

func (o *options) runFlags() []cli.Flag {
	return slices.Concat(o.callFlags(),
		[]cli.Flag{
			o.toggle(&o.retain, aboutLongLived, "retain", "write down the authority that COMMAND is started under"),
			o.retainedFlag(),
		},
		o.serverFlags(),
		[]cli.Flag{
			o.verboseFlag(),
			o.errorFormatFlag(),
			o.toggle(&o.dryRun, aboutOutput, "dry-run", "do all but the hand-over, and print the argument vector"),
		})
}

func (o *options) checkFlags() []cli.Flag {
	return slices.Concat(o.callFlags(),
		[]cli.Flag{o.retainedFlag()},
		o.serverFlags(),
		[]cli.Flag{o.verboseFlag(), o.errorFormatFlag(), o.jsonFlag("print one JSON object")})
}

func (o *options) fingerprintFlags() []cli.Flag {
	return append(o.callFlags(), o.verboseFlag(), o.errorFormatFlag())
}

func (o *options) statusFlags() []cli.Flag {
	return append(o.serverFlags(),
		o.toggle(&o.prune, aboutLongLived, "prune", "first remove the records of processes that ended"),
		o.errorFormatFlag(),
		o.jsonFlag("print one JSON array"))
}

// callFlags returns the options about a call and its command.
func (o *options) callFlags() []cli.Flag {
	return []cli.Flag{
		o.value(&o.request, aboutSource, "request", "a whole JSON-RPC request in `SRC`, of which only params._meta is read"),
		o.value(&o.meta, aboutSource, "meta", "a _meta object in `SRC` (default: env:"+defaultVariable+")"),
		o.value(&o.state, aboutSource, "state", "a state in `SRC`"),
		o.value(&o.launcher, aboutSource, "launcher", "a launcher object in `SRC`, beside --state"),
		o.value(&o.defaultLauncher, aboutMissing, "default-launcher", "use `PATH` where no launcher was named"),
		o.toggle(&o.allowPathLauncher, aboutMissing, "allow-path-launcher", "use the first codex of PATH where no launcher was named"),
		o.toggle(&o.allowUnsandboxed, aboutMissing, "allow-unsandboxed", "run COMMAND without a sandbox where there is no metadata at all"),
		o.repeatable(&o.allowLauncher, aboutTrust, "allow-launcher", "refuse any launcher but this file, or what is below this folder: `PATH[=sha256:HEX]` (repeatable)"),
		o.toggle(&o.requireConfined, aboutTrust, "require-confined", "refuse a state that lets commands write everywhere"),
		o.value(&o.probeTimeout, aboutProbe, "probe-timeout", "give the launcher `DURATION` to answer the probe (default: 10s)"),
		o.toggle(&o.noCache, aboutProbe, "no-cache", "probe the launcher even if it has passed before"),
		o.repeatable(&o.readableRoot, aboutHandOver, "readable-root", "let COMMAND read `DIR` too (repeatable)"),
		o.toggle(&o.disableNetwork, aboutHandOver, "disable-network", "take the network away"),
		o.repeatable(&o.keepFD, aboutHandOver, "keep-fd", "let descriptor `N`, from 3 up, reach COMMAND (repeatable)"),
	}
}

// serverFlags returns the options that select retained authorities.
func (o *options) serverFlags() []cli.Flag {
	return []cli.Flag{
		o.value(&o.server, aboutLongLived, "server", "the MCP server that keeps the process, by its `NAME`"),
		o.value(&o.environment, aboutLongLived, "environment", "the environment that the server is in, by its `ID`"),
		o.value(&o.retainDir, aboutLongLived, "retain-dir", "keep the records in `DIR` (default: mcp-sandbox-exec in XDG_RUNTIME_DIR)"),
	}
}

func (o *options) retainedFlag() cli.Flag {
	return o.toggle(&o.retained, aboutLongLived, "retained", "refuse a call with another authority than the one that was written down")
}

func (o *options) verboseFlag() cli.Flag {
	return o.toggle(&o.verbose, aboutOutput, "verbose", "say on stderr what was found, and probed or taken from the cache")
}

func (o *options) errorFormatFlag() cli.Flag {
	return o.value(&o.errorFormat, aboutOutput, "error-format", "write refusals as `FORMAT`, text or json (default: text)")
}

func (o *options) jsonFlag(usage string) cli.Flag {
	return o.toggle(&o.json, aboutOutput, "json", usage)
}

func (o *options) value(opt *option, category, name, usage string) cli.Flag {
	opt.name = name
	o.all = append(o.all, opt)
	return &cli.GenericFlag{Category: category, Name: name, Usage: usage, Value: opt}
}

func (o *options) repeatable(opt *option, category, name, usage string) cli.Flag {
	opt.repeatable = true
	return o.value(opt, category, name, usage)
}

func (o *options) toggle(opt *option, category, name, usage string) cli.Flag {
	opt.toggle = true
	return o.value(opt, category, name, usage)
}

// An option collects what was given for it, and is checked afterwards: the
// library takes the last of two values, an empty one, and one from a variable.
type option struct {
	name       string
	toggle     bool // it has no value
	repeatable bool
	values     []string
}

// String, Set and IsBoolFlag make it a flag.Value.
func (o *option) String() string     { return "" }
func (o *option) Set(s string) error { o.values = append(o.values, s); return nil }
func (o *option) IsBoolFlag() bool   { return o.toggle }

func (o *option) given() bool { return len(o.values) > 0 }

// text returns the value of an option that is given once, or "".
func (o *option) text() string {
	if !o.given() {
		return ""
	}
	return o.values[0]
}

func (o *option) check() error {
	for i, value := range o.values {
		switch {
		case i > 0 && !o.repeatable:
			return usage("", "--%s is given twice", o.name)
		case o.toggle && value != "true":
			return usage("leave the option away, or its value", "--%s cannot be %q", o.name, value)
		case value == "":
			return usage("", "--%s has an empty value", o.name)
		case value == "--":
			return usage("", `--%s has "--" for its value`, o.name)
		}
	}
	return nil
}

// A plan is a command line that makes sense.
type plan struct {
	source           *verify.Source
	parse            func(text []byte) (*verify.Metadata, error) // of the source
	launcher         *verify.Source                              // nil unless it comes by itself
	authority        verify.Options
	allowUnsandboxed bool
	exec             exec.Options
	keep             []int
	dryRun, asJSON   bool
	noCache          bool

	retain, retained bool
	server           verify.Server
	records          verify.Records

	verbose, errorsAsJSON bool

	unset []string // sources that are variables and not set, found by reading
}

// begin checks the options one by one, and plans what all commands have. It must
// come before any descriptor is marked or opened.
func (o *options) begin() (*plan, error) {
	if err := descriptor.Room(fewestDescriptors); err != nil {
		return nil, &verify.Refusal{
			Code:    verify.CodeExecFailed,
			Message: fmt.Sprintf("cannot open %d files more: %v", fewestDescriptors, err),
			Hint:    "raise the limit of open files (ulimit -n), or close some before",
			Err:     err,
		}
	}
	for _, opt := range o.all {
		if err := opt.check(); err != nil {
			return nil, err
		}
	}
	p := &plan{verbose: o.verbose.given(), asJSON: o.json.given()}
	switch format := o.errorFormat.text(); format {
	case "", "text":
	case "json":
		p.errorsAsJSON = true
	default:
		return nil, usage("", "--error-format %q is neither text nor json", format)
	}
	return p, nil
}

// plan checks the options about a call against each other, and against the
// descriptors that this program was given.
func (o *options) plan() (*plan, error) {
	p, err := o.begin()
	if err != nil {
		return nil, err
	}
	p.allowUnsandboxed = o.allowUnsandboxed.given()
	p.exec = exec.Options{ReadableRoots: o.readableRoot.values, DisableNetwork: o.disableNetwork.given()}
	p.dryRun = o.dryRun.given()
	p.noCache = o.noCache.given()
	p.authority.AllowPathLauncher = o.allowPathLauncher.given()
	p.authority.RequireConfined = o.requireConfined.given()
	if err := o.planSources(p); err != nil {
		return nil, err
	}
	if err := o.planKeep(p); err != nil {
		return nil, err
	}
	if p.authority.DefaultLauncher = o.defaultLauncher.text(); o.defaultLauncher.given() && !strings.HasPrefix(p.authority.DefaultLauncher, "/") {
		return nil, usage("write the whole path", "--default-launcher %q is not an absolute path", p.authority.DefaultLauncher)
	}
	for _, allowed := range o.allowLauncher.values {
		launcher, err := verify.ParseAllowedLauncher(allowed)
		if err != nil {
			return nil, usage("write the whole path of a file or a folder, and the hash as sha256sum prints it", "--allow-launcher: %v", err)
		}
		p.authority.AllowedLaunchers = append(p.authority.AllowedLaunchers, launcher)
	}
	for _, opt := range []*option{&o.disableNetwork, &o.requireConfined} {
		if p.allowUnsandboxed && opt.given() {
			return nil, usage("a command without a sandbox has the network, and is not confined",
				"--allow-unsandboxed and --%s exclude each other", opt.name)
		}
	}
	if err := exec.CheckOptions(p.exec); err != nil {
		return nil, err
	}
	if err := o.planRetained(p); err != nil {
		return nil, err
	}
	if o.probeTimeout.given() {
		if p.authority.ProbeTimeout, err = parseDuration(o.probeTimeout.text()); err != nil {
			return nil, usage("write 500ms, 10s, 2m, or a number of seconds, up to 24h", "--probe-timeout %q %v", o.probeTimeout.text(), err)
		}
	}
	return p, nil
}

// planSources finds the one source, or the two.
func (o *options) planSources(p *plan) error {
	var named []string
	descriptors := map[int]string{}
	for _, s := range []struct {
		*option
		parse func([]byte) (*verify.Metadata, error)
	}{
		{&o.request, verify.ParseRequest},
		{&o.meta, verify.ParseMeta},
		{&o.state, verify.ParseState},
		{&o.launcher, nil},
	} {
		if !s.given() {
			continue
		}
		named = append(named, "--"+s.name)
		source, err := verify.ParseSource(s.text())
		if err != nil {
			return usage("a source is file:PATH, env:NAME, fd:N, - for stdin, or a PATH", "--%s: %v", s.name, err)
		}
		if err := o.checkDescriptor(s.name, source, descriptors); err != nil {
			return err
		}
		if s.parse == nil {
			p.launcher = &source
		} else {
			p.source, p.parse = &source, s.parse
		}
	}
	switch {
	case len(named) == 2 && o.state.given() && o.launcher.given():
	case len(named) > 1:
		return usage("name one source, or --state with --launcher", "%s exclude each other", strings.Join(named, " and "))
	case o.launcher.given():
		return usage("name the state with --state SRC", "--launcher goes only with --state")
	case len(named) == 0:
		source, err := verify.ParseSource("env:" + defaultVariable)
		if err != nil {
			return err
		}
		p.source, p.parse = &source, verify.ParseMeta
	}
	return nil
}

// checkDescriptor checks that a source which is a descriptor is the caller's, and
// nobody else's. Those of the sources before it are in taken.
func (o *options) checkDescriptor(name string, source verify.Source, taken map[int]string) error {
	fd := source.Descriptor()
	if fd < 0 {
		return nil
	}
	if other, ok := taken[fd]; ok {
		return usage("what one of them has read is gone for the other",
			"--%s and --%s name the same descriptor %d", other, name, fd)
	}
	taken[fd] = name
	if fd > 0 && !descriptor.Inherited(fd) {
		// Go has descriptors of its own from 3 up, which hold numbers.
		return &verify.Refusal{
			Code:    verify.CodeMetadataUnreadable,
			Message: source.String() + ": the descriptor is not open",
			Hint:    hintToOpen(fd),
		}
	}
	if slices.Contains(o.keepFD.values, strconv.Itoa(fd)) {
		return usage("a source is closed when it has been read", "--keep-fd %d is the source of --%s", fd, name)
	}
	return nil
}

func (o *options) planKeep(p *plan) error {
	for _, value := range o.keepFD.values {
		fd, err := descriptor.Parse(value)
		switch {
		case err != nil:
			return usage("", "--keep-fd %v", err)
		case fd < 3:
			return usage("stdin, stdout and stderr reach COMMAND in any case", "--keep-fd %d is below 3", fd)
		case !descriptor.Inherited(fd):
			return usage(hintToOpen(fd), "--keep-fd %d is not open", fd)
		}
		p.keep = append(p.keep, fd)
	}
	return nil
}

func hintToOpen(fd int) string {
	return fmt.Sprintf("open it for this program, in a shell for example with %d<FILE", fd)
}

// note says something on stderr that was not a refusal.
func (p *plan) note(format string, args ...any) {
	writeNote(p.errorsAsJSON, fmt.Sprintf(format, args...))
}

// say says something on stderr if --verbose asked for it.
func (p *plan) say(format string, args ...any) {
	if p.verbose {
		p.note(format, args...)
	}
}

// parseDuration reads a Go duration or a plain number of seconds.
func parseDuration(s string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		s += "s"
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, errors.New("is not a duration")
	case d <= 0:
		return 0, errors.New("is not more than zero")
	case d > 24*time.Hour:
		return 0, errors.New("is more than a day")
	}
	return d, nil
}

// usageError puts the library's words about an option into the program's own.
func usageError(_ *cli.Context, err error, _ bool) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		return usage("see mcp-sandbox-exec --help", "there is no option --%s", printable.Line(strings.TrimPrefix(name, "-")))
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return usage("", "--%s needs a value", printable.Line(strings.TrimPrefix(name, "-")))
	}
	return usage("see mcp-sandbox-exec --help", "%s", printable.Line(text))
}
