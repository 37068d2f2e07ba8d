package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/exec"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/printable"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// A changedError is the refusal of a check for the one reason that its caller asked
// about.
type changedError struct{ error }

func (e *changedError) Unwrap() error { return e.error }

// A fact is one line of what a check found; value is a string or an int.
type fact struct {
	name  string
	value any
}

// checkCommand does what a run does, up to the hand-over, and prints what it
// found. A command may be left out: then all but the command is checked.
func checkCommand(o *options, command []string, hasCommand bool) error {
	p, err := o.plan()
	if err != nil {
		return err
	}
	if hasCommand {
		if err := exec.CheckCommand(command); err != nil {
			return err
		}
	}
	metadata, env, err := p.read(os.Environ())
	if err != nil {
		return err
	}
	if metadata.Missing() && p.allowUnsandboxed {
		return p.printFacts(withCommand([]fact{{"verdict", "runs without a sandbox (--allow-unsandboxed)"}}, command), nil)
	}
	authority, err := p.authorize(metadata, env)
	if err != nil {
		return err
	}
	record, err := p.compare(authority)
	var refusal *verify.Refusal
	if errors.As(err, &refusal) && refusal.Code == verify.CodeAuthorityChanged {
		return &changedError{err}
	}
	if err != nil {
		return err
	}
	if _, err := p.rehearse(authority, command); err != nil {
		return err
	}
	return p.printFacts(withCommand(facts(metadata, authority, record), command), authority.Notes())
}

// facts returns what is known of a call, and of a record that it was compared with.
func facts(metadata *verify.Metadata, authority *verify.Authority, record *verify.Record) []fact {
	stateName := metadata.StateKey()
	if stateName == "" {
		stateName = "none, the state came by itself"
	}
	found := []fact{
		{"verdict", "runs in the sandbox"},
		{"state-name", stateName},
		{"state-bytes", len(metadata.State())},
		{"state-limit", verify.MaxStateSize()},
		{"launcher", authority.Launcher()},
		{"launcher-from", string(authority.Choice())},
		{"probe", probeResult(authority)},
	}
	if record == nil {
		return found
	}
	found = append(found, fact{"retained-process", record.PID}, fact{"retained-status", string(record.Liveness())})
	if environment := record.Server.Environment; environment != "" {
		found = append(found, fact{"retained-environment", environment})
	}
	return found
}

func withCommand(found []fact, command []string) []fact {
	if len(command) == 0 {
		return found
	}
	return append(found, fact{"command", shellQuote(command)})
}

// printFacts prints a line for each fact and each note, or one JSON object.
func (p *plan) printFacts(facts []fact, notes []string) error {
	if p.asJSON {
		line := []byte{'{'}
		for _, f := range facts {
			line = append(appendJSONString(line, f.name), ':')
			switch value := f.value.(type) {
			case int:
				line = strconv.AppendInt(line, int64(value), 10)
			case string:
				line = appendJSONString(line, value)
			}
			line = append(line, ',')
		}
		line = append(line, `"notes":[`...)
		for i, note := range notes {
			if i > 0 {
				line = append(line, ',')
			}
			line = appendJSONString(line, note)
		}
		return printLine(string(append(line, "]}"...)))
	}
	var lines []string
	for _, f := range facts {
		lines = append(lines, f.name+": "+printable.Line(fmt.Sprint(f.value)))
	}
	for _, note := range notes {
		lines = append(lines, "note: "+note)
	}
	return printLine(strings.Join(lines, "\n"))
}
