package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// help has the place of the library's own, which sorts the categories by their
// names and gives a value to options that take none. It is about the program or
// about a subcommand.
func help(of any) string {
	var b strings.Builder
	item := func(name, about string) {
		if len(name) > 26 {
			name += "\n" + strings.Repeat(" ", 30)
		}
		fmt.Fprintf(&b, "  %-28s%s\n", name, about)
	}
	switch of := of.(type) {
	case *cli.App:
		writeOptions(&b, item, of.Usage, of.UsageText, of.Flags)
		item("--version", "print the version")
		b.WriteString("\nSubcommands, which come first:\n")
		for _, c := range of.Commands {
			item(c.Name, c.Usage)
		}
	case *cli.Command:
		writeOptions(&b, item, of.Usage, of.UsageText, of.Flags)
	}
	b.WriteString("\nThe manual is mcp-sandbox-exec(1).")
	return b.String()
}

func writeOptions(b *strings.Builder, item func(name, about string), about, usageText string, flags []cli.Flag) {
	fmt.Fprintf(b, "%s\n\nUsage:\n  %s\n", about, strings.ReplaceAll(usageText, "\n", "\n  "))
	category := ""
	for _, f := range flags {
		g, ok := f.(*cli.GenericFlag)
		if !ok {
			continue // --help and --version, which the library adds
		}
		if g.Category != category {
			category = g.Category
			fmt.Fprintf(b, "\n%s:\n", category)
		}
		// The word in backquotes names the value.
		before, rest, hasValue := strings.Cut(g.Usage, "`")
		value, after, _ := strings.Cut(rest, "`")
		name := "--" + g.Name
		if hasValue {
			name += " " + value
		}
		item(name, before+value+after)
	}
	b.WriteString("\n")
	item("--help, -h", "print this")
}
