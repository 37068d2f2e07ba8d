// Package testcorpus reads the table of inputs that are refused, for the tests
// that run it. The head of the table explains its notation.
package testcorpus

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// A Case is an input, and the code with which it is refused.
type Case struct {
	Line  int // in the table
	Code  string
	Kind  string
	Words []string // one, or a command line; places like @BIN@ still stand in them
}

// Good has what a complete call consists of, by the kind of the text. A case
// takes what it does not spoil from here, so that it is refused for its one
// fault.
var Good = map[string]string{
	"request":  `{"jsonrpc":"2.0","id":1,"method":"tools/call",` + paramsMember + `}`,
	"meta":     `{` + members + `}`,
	"state":    state,
	"launcher": launcher,
}

const (
	state          = `{"permissionProfile":{"type":"managed"},"sandboxCwd":"file://@WORK@"}`
	stateMember    = `"codex/sandbox-state":` + state
	launcher       = `{"codexExecutable":"@BIN@/codex"}`
	launcherMember = `"codex/sandbox-launcher":` + launcher
	members        = stateMember + `,` + launcherMember
	paramsMember   = `"params":{"name":"run","arguments":{},"_meta":{` + members + `}}`
)

// goodParts are what stands for a part of Good.
var goodParts = map[string]string{
	"@REQUEST@":         Good["request"],
	"@META@":            Good["meta"],
	"@STATE@":           state,
	"@LAUNCHER@":        launcher,
	"@PARAMS_MEMBER@":   paramsMember,
	"@MEMBERS@":         members,
	"@STATE_MEMBER@":    stateMember,
	"@LAUNCHER_MEMBER@": launcherMember,
}

// IsCommandLine reports whether the words are one, and not a single input.
func (c Case) IsCommandLine() bool { return c.Kind == "args" || c.Kind == "unread" }

// Read reads the table.
func Read(file string) ([]Case, error) {
	table, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for i, line := range strings.Split(string(table), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		code, rest, _ := strings.Cut(line, " ")
		kind, input, _ := strings.Cut(rest, " ")
		words, err := split(repeat(input))
		c := Case{i + 1, code, kind, words}
		if err == nil && len(words) != 1 && !c.IsCommandLine() {
			err = fmt.Errorf("%d words, not one", len(words))
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		for j := range words {
			words[j] = Replace(words[j], goodParts)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// Replace puts texts into the places of their names. A strings.Replacer takes far
// longer for the largest words.
func Replace(word string, texts map[string]string) string {
	for name, text := range texts {
		word = strings.ReplaceAll(word, name, text)
	}
	return word
}

var repetition = regexp.MustCompile(`@REPEAT:(.+?):([0-9]{1,8})@`)

func repeat(input string) string {
	return repetition.ReplaceAllStringFunc(input, func(match string) string {
		part := repetition.FindStringSubmatch(match)
		count, _ := strconv.Atoi(part[2]) // of at most eight digits
		return strings.Repeat(part[1], count)
	})
}

// split takes an input apart at its blanks. A word that begins with a quote is
// a Go string.
func split(input string) (words []string, err error) {
	for more := input != ""; more; {
		var word string
		if strings.HasPrefix(input, `"`) || strings.HasPrefix(input, "`") {
			quoted, err := strconv.QuotedPrefix(input)
			if err != nil {
				return nil, err
			}
			if word, err = strconv.Unquote(quoted); err != nil {
				return nil, err
			}
			input = input[len(quoted):]
			if input != "" && input[0] != ' ' {
				return nil, fmt.Errorf("no blank behind %s", quoted)
			}
			_, input, more = strings.Cut(input, " ")
		} else if word, input, more = strings.Cut(input, " "); word == "" {
			return nil, errors.New("one blank too many")
		}
		words = append(words, word)
	}
	return words, nil
}
