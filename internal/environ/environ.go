// Package environ reads an environment that is handed from one step to the next,
// as a list of NAME=VALUE entries.
package environ

import "strings"

// Lookup returns the first value that env has for a name, as getenv(3) does.
func Lookup(env []string, name string) (value string, found bool) {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// Without returns env without a variable. The argument stays as it is.
func Without(env []string, name string) []string {
	kept := make([]string, 0, len(env))
	for _, entry := range env {
		if !strings.HasPrefix(entry, name+"=") {
			kept = append(kept, entry)
		}
	}
	return kept
}
