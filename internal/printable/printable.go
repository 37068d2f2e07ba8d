// Package printable puts names from outside into lines of messages.
package printable

import "strconv"

// Line returns s as it is if it can stand in a line, and quoted if not, so that
// no name can add lines or colours to what a person reads.
func Line(s string) string {
	quoted := strconv.Quote(s)
	if quoted[1:len(quoted)-1] == s {
		return s
	}
	return quoted
}
