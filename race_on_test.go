//go:build race

package mcpsandboxexec_test

// underRace: each program takes many times as long and as much memory.
const underRace = true
