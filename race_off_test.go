//go:build !race

package mcpsandboxexec_test

const underRace = false
