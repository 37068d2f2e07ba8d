package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// printHelp has the place of the library's own, which sorts the categories by
// their names and gives a value to options that take none.
func printHelp(w io.Writer, _ string, data any) {
	switch of := data.(type) {
	case *cli.App:
		writeHelp(w, of.Usage, of.UsageText, of.Flags)
		fmt.Fprint(w, "\nSubcommands, which come first:\n")
		for _, c := range of.Commands {
			fmt.Fprintf(w, "  %-28s%s\n", c.Name, c.Usage)
		}
	case *cli.Command:
		writeHelp(w, of.Usage, of.UsageText, of.Flags)
	}
	fmt.Fprint(w, "\nThe manual is mcp-sandbox-exec(1).\n")
}

func writeHelp(w io.Writer, about, usageText string, flags []cli.Flag) {
	fmt.Fprintf(w, "%s\n\nUsage:\n  %s\n", about, strings.ReplaceAll(usageText, "\n", "\n  "))
	category := ""
	for _, f := range flags {
		g, ok := f.(*cli.GenericFlag)
		if !ok {
			continue // --help and --version, which the library adds
		}
		if g.Category != category {
			category = g.Category
			fmt.Fprintf(w, "\n%s:\n", category)
		}
		// The word in backquotes names the value.
		before, rest, hasValue := strings.Cut(g.Usage, "`")
		value, after, _ := strings.Cut(rest, "`")
		name := "--" + g.Name
		if hasValue {
			name += " " + value
		}
		fmt.Fprintf(w, "  %-28s%s\n", name, before+value+after)
	}
	fmt.Fprintf(w, "\n  %-28s%s\n", "--help", "print this")
	fmt.Fprintf(w, "  %-28s%s\n", "--version", "print the version")
}
