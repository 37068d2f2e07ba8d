package main

import (
	"os"
	"path/filepath"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/exec"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// planRetained finds out whether an authority is to be written down or compared, and
// which one.
func (o *options) planRetained(p *plan) error {
	p.retain, p.retained = o.retain.given(), o.retained.given()
	if !p.retain && !p.retained {
		for _, opt := range []*option{&o.server, &o.environment, &o.retainDir} {
			if opt.given() {
				return usage("", "--%s goes only with --retain or --retained", opt.name)
			}
		}
		return nil
	}
	mode := &o.retained
	if p.retain {
		mode = &o.retain
	}
	switch {
	case p.retain && p.retained:
		return usage("check --retained comes first, and a run with --retain where it found another authority",
			"--retain and --retained exclude each other")
	case p.allowUnsandboxed:
		return usage("a command without a sandbox has no authority", "--%s and --allow-unsandboxed exclude each other", mode.name)
	case !o.server.given():
		return usage("add --server NAME", "--%s needs the name of the server", mode.name)
	}
	if err := o.planRecords(p); err != nil {
		return err
	}
	return p.server.Check()
}

// planRecords finds the folder of the records, and the names of those that are meant.
func (o *options) planRecords(p *plan) error {
	p.server = verify.Server{Name: o.server.text(), Environment: o.environment.text()}
	p.records.Dir = verify.DefaultRecordsDir(os.Environ())
	switch dir := o.retainDir.text(); {
	case dir != "" && !filepath.IsAbs(dir):
		return usage("write the whole path; a server's working folder may be the project, where commands may write",
			"--retain-dir %q is not an absolute path", dir)
	case dir != "":
		p.records.Dir = dir
	case p.records.Dir == "":
		return &verify.Refusal{
			Code:    verify.CodeRecordUnusable,
			Message: "there is no folder for retained authorities: XDG_RUNTIME_DIR is not set to an absolute path",
			Hint:    "set it, or name a folder that only this user can use with --retain-dir DIR",
		}
	}
	return nil
}

// compare compares the authority of the call with the one that was written down, if
// that was asked for.
func (p *plan) compare(authority *verify.Authority) (*verify.Record, error) {
	if !p.retained {
		return nil, nil
	}
	record, err := p.records.Compare(authority, p.server)
	if err == nil {
		p.say("it is the authority of process %d of server %s", record.PID, record.Server)
	}
	return record, err
}

// retainAndReplace writes the authority down and hands over. It returns only if one of
// that fails, and then the record is taken back.
func (p *plan) retainAndReplace(authority *verify.Authority, env, command []string) error {
	if _, err := exec.Argv(authority, p.exec, command...); err != nil {
		return err // before anything is written
	}
	record, err := p.records.Retain(authority, p.server, os.Getpid())
	if err != nil {
		return err
	}
	p.say("the authority of process %d is written down for server %s", record.PID, record.Server)
	err = exec.Replace(authority, p.exec, p.keep, env, command...)
	if stays := p.records.Withdraw(record); stays != nil {
		p.note("the record of this process stays: %v", stays)
	}
	return err
}
