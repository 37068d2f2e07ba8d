package main

import (
	"errors"
	"os"
	"strings"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/exec"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/environ"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/printable"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// runCommand hands this process over to the launcher. It returns only to refuse,
// or after a dry run.
func runCommand(o *options, command []string) error {
	p, err := o.plan()
	if err != nil {
		return err
	}
	if err := exec.CheckCommand(command); err != nil {
		return err
	}
	metadata, env, err := p.read(os.Environ())
	if err != nil {
		return err
	}
	if metadata.Missing() && p.allowUnsandboxed {
		return p.runUnsandboxed(env, command)
	}
	authority, err := p.authorize(metadata, env)
	if err != nil {
		return err
	}
	if _, err := p.compare(authority); err != nil {
		return err
	}
	if p.dryRun {
		argv, err := p.rehearse(authority, command)
		if err != nil {
			return err
		}
		return printLine(shellQuote(argv))
	}
	if p.retain {
		return p.retainAndReplace(authority, env, command)
	}
	return exec.Replace(authority, p.exec, p.keep, env, command...)
}

// read reads the sources, each of them once, and returns the environment
// without the variables that were read.
func (p *plan) read(env []string) (*verify.Metadata, []string, error) {
	metadata, err := p.readOne(p.source, p.parse)
	if err == nil && p.launcher != nil {
		_, err = p.readOne(p.launcher, func(text []byte) (*verify.Metadata, error) {
			return metadata, metadata.AddLauncher(text)
		})
	}
	if err != nil {
		return nil, nil, err
	}
	for _, source := range []*verify.Source{p.source, p.launcher} {
		if source != nil && source.Env() != "" {
			env = environ.Without(env, source.Env())
		}
	}
	return metadata, env, nil
}

// readOne reads and parses one source. A variable that is not set holds no
// metadata, which is for the caller to decide about.
func (p *plan) readOne(source *verify.Source, parse func([]byte) (*verify.Metadata, error)) (*verify.Metadata, error) {
	text, err := source.Read()
	if errors.Is(err, verify.ErrUnset) {
		p.unset = append(p.unset, source.String())
		p.say("%s: the variable is not set", source)
		return &verify.Metadata{}, nil
	}
	if err != nil {
		return nil, err
	}
	p.say("%s: read %d bytes", source, len(text))
	metadata, err := parse(text)
	var refusal *verify.Refusal
	if errors.As(err, &refusal) {
		// A copy that says where the text came from.
		in := *refusal
		in.Message = source.String() + ": " + refusal.Message
		return nil, &in
	}
	return metadata, err
}

// authorize decides whether the call may start a command, and says what was
// found on the way.
func (p *plan) authorize(metadata *verify.Metadata, env []string) (*verify.Authority, error) {
	p.authority.Env = env
	if !p.noCache {
		p.authority.CacheDir = verify.DefaultCacheDir(env)
	}
	ctx, end := untilInterrupted()
	authority, err := metadata.Authority(ctx, p.authority)
	end()
	if err != nil {
		return nil, p.explainMissing(err)
	}
	launcher := printable.Line(authority.Launcher())
	switch authority.Choice() {
	case verify.FromDefault:
		p.note("the call names no launcher; using %s because of --default-launcher", launcher)
	case verify.FromPath:
		p.note("the call names no launcher; using %s because of --allow-path-launcher", launcher)
	}
	if key := metadata.StateKey(); key != "" {
		p.say("the state has %d bytes, under %q", len(metadata.State()), key)
	} else {
		p.say("the state has %d bytes", len(metadata.State()))
	}
	if err := authority.CacheErr(); err != nil {
		p.say("the probe cache is not used: %s", printable.Line(err.Error()))
	}
	p.say("the launcher is %s, and its probe %s", launcher, probeResult(authority))
	return authority, nil
}

func probeResult(authority *verify.Authority) string {
	if authority.Cached() {
		return "passed before, as the cache has it"
	}
	return "passed"
}

// explainMissing adds to a refusal for what is missing that a variable which
// could have held it is not set.
func (p *plan) explainMissing(err error) error {
	var refusal *verify.Refusal
	if len(p.unset) == 0 || !errors.As(err, &refusal) {
		return err
	}
	switch refusal.Code {
	case verify.CodeMetadataMissing, verify.CodeStateMissing, verify.CodeLauncherMissing:
		explained := *refusal
		explained.Message += " (" + strings.Join(p.unset, " and ") + " is not set)"
		return &explained
	}
	return err
}

// runUnsandboxed does what the operator asked for in so many words.
func (p *plan) runUnsandboxed(env, command []string) error {
	p.note("the call carries no sandbox metadata; running without a sandbox because of --allow-unsandboxed")
	if p.dryRun {
		return printLine(shellQuote(command))
	}
	return &directError{exec.ReplaceUnsandboxed(p.keep, env, command...)}
}

// rehearse does the last checks of a hand-over, and returns what would be handed
// over. Without a command, the options are checked, which become arguments before it.
func (p *plan) rehearse(authority *verify.Authority, command []string) ([]string, error) {
	if command == nil {
		command = []string{"true"}
	}
	argv, err := exec.Argv(authority, p.exec, command...)
	if err != nil {
		return nil, err
	}
	release, err := authority.Hold()
	if err != nil {
		return nil, err
	}
	defer release()
	if p.retain {
		if err := p.records.CheckWritable(); err != nil {
			return nil, err
		}
	}
	return argv, authority.Recheck()
}
