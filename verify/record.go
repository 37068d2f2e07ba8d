package verify

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Server is the name of an MCP server in one environment. The same name in two
// environments, such as a laptop and a devbox, is two servers, whose authorities
// have nothing to do with each other.
type Server struct {
	// Name is UTF-8 without a NUL, from 1 to 255 bytes: anything but a path.
	Name string
	// Environment is the id of the environment, with the same limits, or "" for
	// the one that has none.
	Environment string
}

const maxNameSize = 255

// Check refuses what no server or environment can be called. The error is a
// [*Refusal] with [CodeUsage].
func (s Server) Check() error {
	if err := checkName(nameOfServer, s.Name); err != nil || s.Environment == "" {
		return err
	}
	return checkName(idOfEnvironment, s.Environment)
}

const (
	nameOfServer    = "the name of the server"
	idOfEnvironment = "the id of the environment"
)

func checkName(what, name string) error {
	wrong := ""
	switch {
	case name == "":
		wrong = "is empty"
	case len(name) > maxNameSize:
		wrong = fmt.Sprintf("has %d bytes, and %d is the most", len(name), maxNameSize)
	case !utf8.ValidString(name):
		wrong = fmt.Sprintf("is not UTF-8: %q", name)
	case strings.Contains(name, "\x00"):
		wrong = "contains a NUL"
	default:
		return nil
	}
	return &Refusal{Code: CodeUsage, Message: what + " " + wrong}
}

// String returns both names, quoted, for messages.
func (s Server) String() string {
	if s.Environment == "" {
		return strconv.Quote(s.Name)
	}
	return fmt.Sprintf("%q in the environment %q", s.Name, s.Environment)
}

// A Record is the authority that a process was started under, as
// [Records.Retain] wrote it down.
type Record struct {
	Server Server
	// PID is the id of the process. It may be that of another process by now, which
	// [Record.Liveness] tells apart.
	PID int
	// Since is when the record was written, in UTC.
	Since time.Time
	// Fingerprint is that of the authority; see [Authority.Fingerprint].
	Fingerprint string

	process  process
	launcher string
	state    []byte
	name     recordName

	// The file of the record that this one replaced, for Withdraw; the text is nil if
	// there was none.
	replaced     recordName
	replacedText []byte
}

// Liveness reports whether the process of the record still runs. One that has ended
// and whose parent has not asked for its status yet does not.
func (r *Record) Liveness() Liveness { return r.process.liveness() }

// A record's file is a list of lines, of which the first has the hash of all that
// follows, and the last is the state, which may itself have line breaks.
const recordFormat = "mcp-sandbox-exec record 1"

// recordLimit is the most that a record's file may have, in bytes. A name needs at
// most four bytes for one; no system has a path of 32 KiB.
func recordLimit() int { return MaxStateSize() + 8*maxNameSize + 32<<10 }

func (r *Record) encode() []byte {
	p := r.process
	content := fmt.Sprintf("%s\n%q\n%q\n%d\n%q\n%q\n%q\n%q\n%s\n%q\n%s", recordFormat, r.Server.Name, r.Server.Environment,
		p.id, p.machine, p.boot, p.space, p.start, r.Since.Format(time.RFC3339Nano), r.launcher, r.state)
	return []byte(hashOf(content) + "\n" + content)
}

// A damage says why a file is no record, and tells it from one that cannot be read.
type damage string

func (d damage) Error() string { return string(d) }

// decodeRecord reads the file of a record, which must be what encode writes, and
// must have the name that goes with the server and the environment in it.
func decodeRecord(name recordName, text []byte) (*Record, error) {
	lines := strings.SplitN(string(text), "\n", 12)
	if len(lines) != 12 || lines[1] != recordFormat {
		return nil, damage("it is not a whole record of this version")
	}
	var errs []error
	number := func(line string) int {
		n, err := strconv.Atoi(line)
		errs = append(errs, err)
		return n
	}
	quoted := func(line string) string {
		text, err := strconv.Unquote(line)
		errs = append(errs, err)
		return text
	}
	r := &Record{name: name, state: []byte(lines[11])}
	r.Server = Server{quoted(lines[2]), quoted(lines[3])}
	r.process = process{number(lines[4]), quoted(lines[5]), quoted(lines[6]), quoted(lines[7]), quoted(lines[8])}
	since, err := time.Parse(time.RFC3339Nano, lines[9])
	r.Since = since
	r.launcher = quoted(lines[10])
	_, ofState := ParseState(r.state)
	if err := errors.Join(append(errs, err, ofState, r.Server.Check())...); err != nil || string(r.encode()) != string(text) {
		return nil, damage("its content is not what was written")
	}
	if !name.sameServer(newRecordName(r.Server, 0, "")) {
		return nil, damage("it is the record of another server or environment")
	}
	r.PID = r.process.id
	r.Fingerprint = fingerprint(r.state, r.launcher)
	return r, nil
}

// A recordName is the name of a record's file. The names of server and environment
// are in it as hashes: they may be anything, and the file system sees none of them.
//
// Each record has a file of its own. Whoever writes one removes those that were there
// for the same server, and where several are left the newest counts, which is the one
// with the highest number. So nobody ever has to change, or to wait for, what another
// process writes.
type recordName struct {
	server, environment string
	number              uint64
	writer              string // makes it different from those that are written meanwhile
}

const recordPrefix = "retained"

func newRecordName(s Server, number uint64, writer string) recordName {
	n := recordName{server: shortHash("server " + s.Name), environment: "none", number: number, writer: writer}
	if s.Environment != "" {
		n.environment = shortHash("environment " + s.Environment)
	}
	return n
}

// shortHash returns the first 128 bits of a hash. That they are enough need not be
// trusted, as the whole name is in the file.
func shortHash(text string) string { return hashOf(text)[:32] }

func (n recordName) String() string {
	return fmt.Sprintf("%s.%s.%s.%d.%s", recordPrefix, n.server, n.environment, n.number, n.writer)
}

// parseRecordName reads the name of a file, which may be that of something else.
func parseRecordName(file string) (n recordName, ok bool) {
	parts := strings.Split(file, ".")
	if len(parts) != 5 || parts[0] != recordPrefix || parts[4] == "" {
		return n, false
	}
	number, err := strconv.ParseUint(parts[3], 10, 64)
	n = recordName{parts[1], parts[2], number, parts[4]}
	return n, err == nil && n.String() == file
}

// sameServer reports whether two names are for records of one server.
func (n recordName) sameServer(other recordName) bool {
	return n.server == other.server && n.environment == other.environment
}

// compare puts names of one server together, and of those the one that counts last.
// The numbers are the same only if two were written at the same moment; then it is
// any of them, but the same one for everybody.
func (n recordName) compare(other recordName) int {
	return cmp.Or(strings.Compare(n.server, other.server), strings.Compare(n.environment, other.environment),
		cmp.Compare(n.number, other.number), strings.Compare(n.writer, other.writer))
}
