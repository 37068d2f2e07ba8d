package verify

import (
	"errors"
	"io/fs"
)

// A Liveness says whether the process of a record still runs.
type Liveness string

// The values of Liveness.
const (
	Running Liveness = "running"
	// Ended: there is no such process any more, or another one has its id.
	Ended Liveness = "ended"
	// Unknown: the process cannot be seen from here, as one in another container or
	// on another machine.
	Unknown Liveness = "unknown"
)

// A process is told from a later one with the same id by its start.
type process struct {
	id      int
	machine string // "" if the system does not say which it is
	boot    string // of the machine, since which the start counts
	space   string // the namespaces in which it has its id and its start
	start   string
}

func (p process) liveness() Liveness {
	now, err := findProcess(p.id)
	return p.seenFrom(now, err)
}

// seenFrom compares the process with the one that has its id now, or with what is
// known of where that was looked for.
func (p process) seenFrom(now process, err error) Liveness {
	switch {
	case now.machine != p.machine:
		return Unknown
	case now.boot != p.boot && now.boot != "" && now.machine != "":
		return Ended
	case now.boot != p.boot:
		return Unknown // it may be that of another machine
	case now.space != p.space:
		return Unknown
	case errors.Is(err, fs.ErrNotExist):
		return Ended
	case err != nil:
		return Unknown
	case now != p:
		return Ended
	}
	return Running
}
