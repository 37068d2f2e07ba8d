package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
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
func writeRefusal(r *verify.Refusal, asJSON bool) {
	switch {
	case asJSON:
		writeOut(os.Stderr, jsonObject("code", string(r.Code), "message", r.Message, "hint", r.Hint))
	case r.Hint == "":
		writeOut(os.Stderr, "mcp-sandbox-exec: "+r.Error())
	default:
		writeOut(os.Stderr, "mcp-sandbox-exec: "+r.Error()+"\n  "+r.Hint)
	}
}

// writeNote writes what a person should know though nothing was refused.
func writeNote(asJSON bool, note string) {
	if asJSON {
		writeOut(os.Stderr, jsonObject("note", note))
		return
	}
	writeOut(os.Stderr, "mcp-sandbox-exec: note: "+note)
}

// printLine prints what was asked for.
func printLine(line string) error {
	if err := writeOut(os.Stdout, line); err != nil {
		return &verify.Refusal{Code: verify.CodeOutputFailed, Message: err.Error(), Err: err}
	}
	return nil
}

// writeOut writes a line. A pipe whose reader is gone is an error like others:
// without a subscription to the signal, Go would end the program with it.
func writeOut(to *os.File, line string) error {
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	_, err := io.WriteString(to, line+"\n")
	return err
}

// jsonObject returns an object with members that are all strings.
func jsonObject(members ...string) string {
	object := []byte{'{'}
	for i, s := range members {
		if i > 0 {
			object = append(object, ",:"[i%2])
		}
		object = appendJSONString(object, s)
	}
	return string(append(object, '}'))
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
