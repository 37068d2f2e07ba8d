// Command mcp-sandbox-exec runs a command under the sandbox policy of the MCP
// tool call that asked for it. Its manual is man/mcp-sandbox-exec.1.
package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// exitRefused is the status of every refusal and of every failure of the
// program itself, as env(1) and timeout(1) have it.
const exitRefused = 125

// The thread that the caller started is the one that executes the launcher: the
// parent-death signal that a caller may have set belongs to the thread, and
// would be lost with it.
func init() { runtime.LockOSThread() }

func main() {
	os.Exit(run(os.Args[1:]))
}

// run returns the exit status, or does not return at all when a command has
// taken this program's place.
func run(args []string) int {
	// The cut comes before anything else looks at the arguments: the library
	// would take a word of the command for a subcommand of its own.
	own, command, found := cutCommand(args)
	app := newApp(command, found)
	err := app.Run(append([]string{app.Name}, own...))
	if err == nil {
		err = printFailure
	}
	if err != nil {
		return printRefusal(err, wantsJSON(own))
	}
	return 0
}

// cutCommand splits the arguments at the first "--".
func cutCommand(args []string) (own, command []string, found bool) {
	i := slices.Index(args, "--")
	if i < 0 {
		return args, nil, false
	}
	return args[:i], args[i+1:], true
}

func newApp(command []string, hasCommand bool) *cli.App {
	// The library's own flag has the letter v, which others use for --verbose.
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Usage: "print the version"}
	cli.VersionPrinter = func(c *cli.Context) { printFailure = printLine(c.App.Name + " " + buildVersion()) }
	cli.HelpPrinter = func(_ io.Writer, _ string, of any) { printFailure = printLine(help(of)) }

	var runOptions, checkOptions, fingerprintOptions, statusOptions options
	subcommand := func(name, about, usageText string, flags []cli.Flag, action func() error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: about, UsageText: usageText, Flags: flags,
			HideHelpCommand: true,
			OnUsageError:    usageError,
			Action:          func(c *cli.Context) error { return withoutArguments(c, action) },
		}
	}
	withoutCommand := func(name string, action func() error) func() error {
		if !hasCommand {
			return action
		}
		return func() error { return usage("", "%s takes no command", name) }
	}
	const (
		runUsage         = "mcp-sandbox-exec [OPTIONS] -- COMMAND [ARG...]"
		checkUsage       = "mcp-sandbox-exec check [OPTIONS] [-- COMMAND [ARG...]]"
		fingerprintUsage = "mcp-sandbox-exec fingerprint [OPTIONS]"
		statusUsage      = "mcp-sandbox-exec status [OPTIONS]"
		capabilityUsage  = "mcp-sandbox-exec capability"
	)
	return &cli.App{
		Name:            "mcp-sandbox-exec",
		Usage:           "run a command under the sandbox policy of the MCP tool call that asked for it",
		UsageText:       strings.Join([]string{runUsage, checkUsage, fingerprintUsage, statusUsage, capabilityUsage}, "\n"),
		Version:         "known to the build", // read when it is printed; without one there is no option
		HideHelpCommand: true,
		Flags:           runOptions.runFlags(),
		Commands: []*cli.Command{
			subcommand("check", "say what a run would do, and run nothing", checkUsage, checkOptions.checkFlags(),
				func() error { return checkCommand(&checkOptions, command, hasCommand) }),
			subcommand("fingerprint", "print a key for what depends on the authority of a call", fingerprintUsage, fingerprintOptions.fingerprintFlags(),
				withoutCommand("fingerprint", func() error { return fingerprintCommand(&fingerprintOptions) })),
			subcommand("status", "list the authorities that long-lived processes run under", statusUsage, statusOptions.statusFlags(),
				withoutCommand("status", func() error { return statusCommand(&statusOptions) })),
			subcommand("capability", "print the JSON for capabilities.experimental of an initialize result", capabilityUsage, nil,
				withoutCommand("capability", func() error { return printLine(verify.Capability) })),
		},
		OnUsageError: usageError,
		Before:       subcommandFirst,
		Action: func(c *cli.Context) error {
			return withoutArguments(c, func() error {
				if !hasCommand {
					return usage("write mcp-sandbox-exec [OPTIONS] -- COMMAND [ARG...]; --help lists the options", `there is no "--" with a command behind it`)
				}
				return runCommand(&runOptions, command)
			})
		},
		// Without it the library itself would end the process for some errors.
		ExitErrHandler: func(*cli.Context, error) {},
	}
}

// subcommandFirst refuses options before a subcommand: they would be options of
// a run, and without effect.
func subcommandFirst(c *cli.Context) error {
	if name := c.Args().First(); c.NumFlags() > 0 && c.App.Command(name) != nil {
		return usage("put the subcommand first: mcp-sandbox-exec "+name+" [OPTIONS]",
			"there are options before the subcommand %s", name)
	}
	return nil
}

// withoutArguments refuses words left of "--" that belong to no option.
func withoutArguments(c *cli.Context, action func() error) error {
	if c.Args().Present() {
		return usage(`a command stands behind "--"; --help lists the subcommands`, "unexpected argument %q", c.Args().First())
	}
	return action()
}

// printFailure is why the library's help or version was not printed: it has no
// way to return an error.
var printFailure error

// buildVersion is what the build knows: the version of the module for go install,
// and the commit for a build in a checkout.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// A directError is the failure of a command that was to run without a sandbox,
// for which env(1) has exit statuses of its own.
type directError struct{ error }

func (e *directError) Unwrap() error { return e.error }

// printRefusal writes why nothing was run, and returns the exit status.
func printRefusal(err error, asJSON bool) int {
	var refusal *verify.Refusal
	if !errors.As(err, &refusal) {
		// The library's own words about the command line.
		refusal = usage("see mcp-sandbox-exec --help", "%v", err)
	}
	writeRefusal(refusal, asJSON)
	return exitStatus(err)
}

// exitChanged is the status of a check that found another authority, which is an
// answer.
const exitChanged = 1

func exitStatus(err error) int {
	var changed *changedError
	var direct *directError
	var failed *fs.PathError
	switch {
	case errors.As(err, &changed):
		return exitChanged
	case !errors.As(err, &direct) || !errors.As(err, &failed) || failed.Op != "execve":
		return exitRefused
	case errors.Is(failed, fs.ErrNotExist):
		return 127
	default:
		return 126
	}
}

// wantsJSON finds --error-format json in arguments that may be wrong elsewhere,
// so that every usage error honours it.
func wantsJSON(own []string) bool {
	for i, arg := range own {
		name, value, joined := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		if name != "error-format" || !strings.HasPrefix(arg, "-") {
			continue
		}
		if !joined && i+1 < len(own) {
			value = own[i+1]
		}
		return value == "json"
	}
	return false
}
