package exec

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// Options changes the sandbox of one command. Both options are the launcher's
// own; where its help does not list one that is asked for, the command is
// refused with [verify.CodeLauncherIncapable].
type Options struct {
	// ReadableRoots are folders that the command may read in addition to what
	// the state allows.
	ReadableRoots []string

	// DisableNetwork takes the network away, whatever the state says of it.
	// Codex refuses it for a state whose profile is disabled.
	DisableNetwork bool
}

const (
	readableRootOption   = "--sandbox-state-readable-root"
	disableNetworkOption = "--sandbox-state-disable-network"
)

// CheckCommand reports whether a launcher can take command: it is not empty,
// the name of the program is not empty, and all of it is UTF-8 without a NUL.
// The error is a [*verify.Refusal] with [verify.CodeCommandMalformed] that says
// which argument is wrong.
func CheckCommand(command []string) error {
	if len(command) == 0 || command[0] == "" {
		return &verify.Refusal{Code: verify.CodeCommandMalformed, Message: "the command is empty"}
	}
	for i, arg := range command {
		var what, hint string
		switch {
		case strings.Contains(arg, "\x00"):
			what = "contains a NUL"
		case !utf8.ValidString(arg):
			what, hint = "is not UTF-8", "Codex takes nothing else; pass such a name through a file or stdin"
		default:
			continue
		}
		which := fmt.Sprintf("argument %d of the command", i)
		if i == 0 {
			which = "the command's name"
		}
		return &verify.Refusal{
			Code:    verify.CodeCommandMalformed,
			Message: fmt.Sprintf("%s %s: %q", which, what, arg),
			Hint:    hint,
		}
	}
	return nil
}

// Argv returns the whole argument vector of the launcher for a command. Its
// first element is the launcher's path, as it was written. The error is a
// [*verify.Refusal].
func Argv(a *verify.Authority, o Options, command ...string) ([]string, error) {
	if err := CheckCommand(command); err != nil {
		return nil, err
	}
	if err := CheckOptions(o); err != nil {
		return nil, err
	}
	argv := []string{a.Launcher(), "sandbox", verify.StateOption, a.State()}
	for _, root := range o.ReadableRoots {
		if err := require(a, readableRootOption); err != nil {
			return nil, err
		}
		argv = append(argv, readableRootOption, root)
	}
	if o.DisableNetwork {
		if err := require(a, disableNetworkOption); err != nil {
			return nil, err
		}
		argv = append(argv, disableNetworkOption)
	}
	return append(append(argv, "--"), command...), nil
}

func require(a *verify.Authority, option string) error {
	if a.Supports(option) {
		return nil
	}
	return &verify.Refusal{
		Code:    verify.CodeLauncherIncapable,
		Message: fmt.Sprintf("the help of the launcher %q does not list %s", a.Launcher(), option),
		Hint:    "use a newer Codex, or go without what asks for that option",
	}
}

// CheckOptions refuses folders that the launcher would take for an option, or
// not take at all. The error is a [*verify.Refusal] with [verify.CodeUsage].
func CheckOptions(o Options) error {
	for _, root := range o.ReadableRoots {
		if root == "" || root[0] == '-' || !utf8.ValidString(root) || strings.Contains(root, "\x00") {
			return &verify.Refusal{
				Code:    verify.CodeUsage,
				Message: fmt.Sprintf("%q cannot be a readable root", root),
				Hint:    "name a folder in UTF-8 that does not start with a dash",
			}
		}
	}
	return nil
}
