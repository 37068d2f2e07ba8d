package main

import "os"

// fingerprintCommand prints the fingerprint of an authority under which a command
// would run, and refuses what a run would refuse: what was cached under a key must
// not be had by a call that could not have made it.
func fingerprintCommand(o *options) error {
	p, err := o.plan()
	if err != nil {
		return err
	}
	metadata, env, err := p.read(os.Environ())
	if err != nil {
		return err
	}
	authority, err := p.authorize(metadata, env)
	if err != nil {
		return err
	}
	if _, err := p.rehearse(authority, nil); err != nil {
		return err
	}
	return printLine(authority.Fingerprint())
}
