package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// What the program says:
//   - Everything about itself goes to stderr; stdout has only what was asked for.
//   - A line starts with the program's name, is in lower case and has no full
//     stop. Names and texts from outside are quoted where they could break it.
//   - The state is never printed, except by --dry-run, which was asked for it.

func usage(hint, format string, args ...any) *verify.Refusal {
	return &verify.Refusal{Code: verify.CodeUsage, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// writeRefusal writes one line, and a second one, indented, with what to do
// about it; or one JSON object.
func writeRefusal(w io.Writer, r *verify.Refusal, asJSON bool) {
	switch {
	case asJSON:
		writeJSON(w, "code", string(r.Code), "message", r.Message, "hint", r.Hint)
	case r.Hint == "":
		fmt.Fprintf(w, "mcp-sandbox-exec: %s\n", r)
	default:
		fmt.Fprintf(w, "mcp-sandbox-exec: %s\n  %s\n", r, r.Hint)
	}
}

// writeNote writes what a person should know though nothing was refused.
func writeNote(w io.Writer, asJSON bool, format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	if asJSON {
		writeJSON(w, "note", note)
		return
	}
	fmt.Fprintf(w, "mcp-sandbox-exec: note: %s\n", note)
}

// writeJSON writes one object with members that are all strings.
func writeJSON(w io.Writer, members ...string) {
	line := []byte{'{'}
	for i, s := range members {
		if i > 0 {
			line = append(line, ",:"[i%2])
		}
		line = appendJSONString(line, s)
	}
	w.Write(append(line, "}\n"...))
}

func appendJSONString(dst []byte, s string) []byte {
	// The only error is invalid UTF-8, which then stands as U+FFFD.
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// shellQuote returns one line for a shell to read back as the same arguments.
// Control characters take the $'...' form, which bash, zsh, ksh and POSIX.1-2024
// know; without them, every shell reads it.
func shellQuote(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = shellWord(arg)
	}
	return strings.Join(words, " ")
}

func shellWord(arg string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"
	switch {
	case arg != "" && strings.Trim(arg, plain) == "":
		return arg
	case utf8.ValidString(arg) && !strings.ContainsFunc(arg, isControl):
		return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(arg); {
		r, size := utf8.DecodeRuneInString(arg[i:])
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + arg[i:i+1])
		case isControl(r) || r == utf8.RuneError && size == 1:
			for _, c := range []byte(arg[i : i+size]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(arg[i : i+size])
		}
		i += size
	}
	b.WriteString("'")
	return b.String()
}

// isControl includes the separators that end a line in some terminals.
func isControl(r rune) bool {
	return r < 0x20 || 0x7f <= r && r < 0xa0 || r == 0x2028 || r == 0x2029
}
