//go:build !linux

package mcpsandboxexec_test

func makeTokenLaunchers(string) error { return nil }
