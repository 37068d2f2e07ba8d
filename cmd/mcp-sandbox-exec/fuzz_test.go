package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// parsed returns what the library makes of the arguments left of "--": the
// subcommand with its options and words, or an error. Nothing is run.
func parsed(own, command []string, found bool) string {
	app := newApp(command, found)
	app.Writer, app.ErrWriter = io.Discard, io.Discard
	var result string
	say := func(what string) cli.ActionFunc {
		return func(c *cli.Context) error {
			result += fmt.Sprintf("%s %q", what, c.Args().Slice())
			for _, name := range slices.Sorted(slices.Values(c.LocalFlagNames())) {
				if o, ok := c.Generic(name).(*option); ok {
					result += fmt.Sprintf(" --%s %q", name, o.values)
				}
			}
			return nil
		}
	}
	app.Action = say("run")
	for _, command := range app.Commands {
		command.Action = say(command.Name)
	}
	cli.HelpPrinter = func(io.Writer, string, any) { result += "help" }
	cli.VersionPrinter = func(*cli.Context) { result += "version" }
	err := app.Run(append([]string{app.Name}, own...))
	return fmt.Sprintf("%s: %v", result, err)
}

// The arguments are the parts of the text between NULs, as no argument has one.
func FuzzCutCommand(f *testing.F) {
	for _, args := range []string{
		"", "check", "--", "-- --", " -- ", "--- -", "-- check", "-- --help", "-h -- -h", "--verbose -- a -- b", "capability --",
		"check --json -- --error-format=json", "--meta=-- -- a", "--meta -- --error-format json", "--error-format -- json",
		"--error-format=json --meta - -- bash -c -- true", "-error-format json --version", "--bogus -- --bogus",
		"--keep-fd 3 --keep-fd=4 x -- --keep-fd 5", "--verbose=maybe --", "--verbose check --", "help -- help", "a --\n b", "check  --- -",
	} {
		f.Add(strings.ReplaceAll(args, " ", "\x00"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\x00")
		var left, right []string
		dashes := false
		for _, arg := range args {
			switch {
			case dashes:
				right = append(right, arg)
			case arg == "--":
				dashes = true
			default:
				left = append(left, arg)
			}
		}
		own, command, found := cutCommand(args)
		if !slices.Equal(own, left) || !slices.Equal(command, right) || found != dashes {
			t.Fatalf("%q is cut to %q, %q, %v", args, own, command, found)
		}
		if !slices.Equal(args, strings.Split(text, "\x00")) {
			t.Errorf("%q became %q", text, args)
		}
		if !found {
			return
		}
		// What stands left means the same, whatever stands right.
		want, wantJSON := parsed(own, command, found), wantsJSON(own)
		other := []string{"--error-format=json", "check", "--help", "--", "--verbose"}
		own, command, found = cutCommand(slices.Concat(left, []string{"--"}, other))
		if got := parsed(own, command, found); got != want || wantsJSON(own) != wantJSON {
			t.Errorf("%q before %q is %s, JSON %v, and before %q %s, JSON %v", left, right, want, wantJSON, other, got, wantsJSON(own))
		}
	})
}
