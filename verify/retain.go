package verify

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/environ"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/ownfolder"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/printable"
)

// Records is a folder with the authorities that long-lived processes were started
// under. A server that keeps a process for later calls writes down what it was
// started under, with Retain, and lets a later call use it only if Compare says that
// the call has the same authority, and the record is of its own process.
//
// The folder must be this user's and closed to all others, as must be the files in
// it, and nobody but this user and root may be able to replace it. It is made with
// mode 0700, in a folder that is there. A sandboxed command that can write there
// could make up a record, so keep it out of what policies let commands write.
//
// Records are written whole or not at all. Programs may read and write them at the
// same time and none waits for another. The errors of all methods are of the type
// [*Refusal]; [CodeRecordUnusable] is for a folder or a file that cannot be used,
// which is never taken for one that is not there.
type Records struct {
	Dir string
}

// DefaultRecordsDir returns the folder in which the program mcp-sandbox-exec keeps
// its records: mcp-sandbox-exec in XDG_RUNTIME_DIR. It is empty if that is not an
// absolute path in env.
func DefaultRecordsDir(env []string) string {
	if base, _ := environ.Lookup(env, "XDG_RUNTIME_DIR"); filepath.IsAbs(base) {
		return filepath.Join(base, "mcp-sandbox-exec")
	}
	return ""
}

// relistLimit is how often a folder is listed again because a record was replaced
// between its listing and its reading.
const relistLimit = 100

// Retain writes down that the process with the id pid runs under a, or is about to,
// for a server. It is the one record of the server from then on. That of a process
// which still runs is replaced too: whoever starts the new one ends the old one.
func (r Records) Retain(a *Authority, s Server, pid int) (*Record, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	process, err := findProcess(pid)
	if err != nil {
		return nil, &Refusal{
			Code:    CodeRecordUnusable,
			Message: fmt.Sprintf("there can be no record of process %d, of which the start cannot be known: %v", pid, err),
			Err:     err,
		}
	}
	record := &Record{
		Server: s, PID: pid, Since: time.Now().UTC(), Fingerprint: a.Fingerprint(),
		process: process, launcher: a.Launcher(), state: a.metadata.state,
	}
	if err := r.write(record); err != nil {
		return nil, unusable(err)
	}
	return record, nil
}

func (r Records) write(record *Record) error {
	folder, err := r.open()
	if errors.Is(err, fs.ErrNotExist) {
		if err := ownfolder.Make(r.Dir); err != nil {
			return err
		}
		folder, err = r.open()
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	older, err := recordNames(folder, newRecordName(record.Server, 0, "").sameServer)
	if err == nil {
		err = folder.RemoveLeftovers()
	}
	if err != nil {
		return err
	}
	record.name = newRecordName(record.Server, 1, ownfolder.Unique())
	if len(older) > 0 {
		newest := older[len(older)-1]
		if newest.number == math.MaxUint64 {
			return fmt.Errorf("%s has the highest number that there is", folder.Path(newest.String()))
		}
		record.name.number = newest.number + 1
		if text, err := folder.Read(newest.String(), int64(recordLimit())); err == nil {
			record.replaced, record.replacedText = newest, text
		}
	}
	if err := folder.Write(record.name.String(), record.encode(), true); err != nil {
		return err
	}
	// Only now, so that there is one at every moment. One that cannot be removed does
	// not count in any case.
	for _, name := range older {
		folder.Remove(name.String())
	}
	return nil
}

// recordNames returns the names of the records that are wanted: those of one server
// in one environment together, the oldest first.
func recordNames(folder *ownfolder.Folder, wanted func(recordName) bool) ([]recordName, error) {
	files, err := folder.Names()
	if err != nil {
		return nil, err
	}
	var names []recordName
	for _, file := range files {
		if name, ok := parseRecordName(file); ok && wanted(name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, recordName.compare)
	return names, nil
}

func readRecord(folder *ownfolder.Folder, name recordName) (*Record, error) {
	text, err := folder.Read(name.String(), int64(recordLimit()))
	if err != nil {
		return nil, err
	}
	record, err := decodeRecord(name, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder.Path(name.String()), err)
	}
	return record, nil
}

// Withdraw takes back what Retain has written, so that the record which it replaced
// counts again: for a process that could not be started after all.
func (r Records) Withdraw(record *Record) error {
	folder, err := r.open()
	if err != nil {
		return unusable(err)
	}
	defer folder.Close()
	names, err := recordNames(folder, record.name.sameServer)
	// An older one that is there was put back by a process whose record this one had
	// replaced, and which withdrew it too.
	isOlder := func(name recordName) bool { return name.compare(record.name) < 0 }
	if err == nil && record.replacedText != nil && !slices.ContainsFunc(names, isOlder) {
		err = folder.Write(record.replaced.String(), record.replacedText, true)
	}
	if err == nil {
		err = folder.Remove(record.name.String())
	}
	if err != nil {
		return unusable(err)
	}
	return nil
}

// Compare compares the authority of a call with the one that was written down for a
// server. It returns the record if they are the same, as [Authority.Fingerprint] has
// it; that its process still runs is for the caller to ask.
//
// Without an environment a server is found by its name alone, as long as there is one
// record with that name, whatever its environment is.
//
// If the authority is another, the error has [CodeAuthorityChanged], and the record
// is returned too. Without a record, or with several to choose from, it has
// [CodeAuthorityUnknown].
func (r Records) Compare(a *Authority, s Server) (*Record, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	record, err := r.find(s)
	if err != nil {
		return nil, err
	}
	if sameAuthority(a.metadata.state, a.Launcher(), record.state, record.launcher) {
		return record, nil
	}
	what := "the call has another state than the one"
	if a.Launcher() != record.launcher {
		what = fmt.Sprintf("the call names the launcher %s, and not %s", printable.Line(a.Launcher()), printable.Line(record.launcher))
	}
	return record, &Refusal{
		Code:    CodeAuthorityChanged,
		Message: fmt.Sprintf("%s under which process %d of server %s was started", what, record.PID, record.Server),
		Hint:    "end that process, and start another one under the authority of the call",
	}
}

// find returns the record of a server.
func (r Records) find(s Server) (*Record, error) {
	found, err := r.List(s.Name, s.Environment)
	if err != nil {
		return nil, err
	}
	if len(found) == 1 {
		return found[0], nil
	}
	unknown := &Refusal{
		Code:    CodeAuthorityUnknown,
		Message: fmt.Sprintf("no authority is retained for server %s", s),
		Hint:    "start the process with --retain; status lists what is retained",
	}
	if len(found) > 1 {
		unknown.Message = fmt.Sprintf("server %q has an authority in each of several environments: %s", s.Name, environments(found))
		unknown.Hint = "name the environment that is meant; the unnamed one can only be had while it is alone"
		return nil, unknown
	}
	// For the words alone: what is wrong with those of others is no matter here.
	if others, err := r.List(s.Name, ""); err == nil && len(others) > 0 {
		unknown.Message += "; there is one in " + environments(others)
	}
	return nil, unknown
}

// mostNamed is how many environments a message lists.
const mostNamed = 10

// environments lists those of some records, for a message.
func environments(records []*Record) string {
	var names []string
	for i, record := range records {
		switch {
		case i == mostNamed:
			return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(records)-mostNamed)
		case record.Server.Environment == "":
			names = append(names, "the unnamed environment")
		default:
			names = append(names, strconv.Quote(record.Server.Environment))
		}
	}
	return strings.Join(names, ", ")
}

// List returns the records of a server in an environment, in the order of their
// names; of all servers or environments where one is "". It is an error if one of
// them is damaged, or is not closed to other users.
func (r Records) List(server, environment string) ([]*Record, error) {
	folder, wanted, err := r.openFor(server, environment)
	if folder == nil {
		return nil, err
	}
	defer folder.Close()
	records, err := readNewest(folder, wanted)
	for again := 0; errors.Is(err, fs.ErrNotExist) && again < relistLimit; again++ {
		records, err = readNewest(folder, wanted)
	}
	if err != nil {
		return nil, unusable(err)
	}
	slices.SortFunc(records, byServer)
	return records, nil
}

// openFor opens the folder, unless it is not there, and returns what tells the names
// of the records that are selected.
func (r Records) openFor(server, environment string) (*ownfolder.Folder, func(recordName) bool, error) {
	wanted, err := selection(server, environment)
	if err != nil {
		return nil, nil, err
	}
	folder, err := r.open()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, unusable(err)
	}
	return folder, wanted, nil
}

// selection returns what tells the names of the wanted records.
func selection(server, environment string) (wanted func(recordName) bool, err error) {
	if server != "" {
		err = checkName(nameOfServer, server)
	}
	if err == nil && environment != "" {
		err = checkName(idOfEnvironment, environment)
	}
	of := newRecordName(Server{server, environment}, 0, "")
	return func(name recordName) bool {
		return (server == "" || name.server == of.server) && (environment == "" || name.environment == of.environment)
	}, err
}

// readNewest reads the newest of the wanted records of each server.
func readNewest(folder *ownfolder.Folder, wanted func(recordName) bool) ([]*Record, error) {
	names, err := recordNames(folder, wanted)
	if err != nil {
		return nil, err
	}
	var records []*Record
	for i, name := range names {
		if i+1 < len(names) && names[i+1].sameServer(name) {
			continue
		}
		record, err := readRecord(folder, name)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// Prune removes the records of processes that have ended, of those that List would
// return, and returns what it removed. Records whose process cannot be seen stay. So
// do those of a server of which it is damaged, which is the error when all others are
// pruned.
func (r Records) Prune(server, environment string) ([]*Record, error) {
	folder, wanted, err := r.openFor(server, environment)
	if folder == nil {
		return nil, err
	}
	defer folder.Close()
	names, err := recordNames(folder, wanted)
	if err != nil {
		return nil, unusable(err)
	}
	// All are read before one is removed, and none is that was written meanwhile: no
	// file gets the name of another. Where programs that wrote at the same moment have
	// left older ones of a server, these go first, as they would count again.
	var ended []*Record
	var damaged error
	for i, name := range names {
		record, err := readRecord(folder, name)
		isNewest := i+1 == len(names) || !names[i+1].sameServer(name)
		switch isDamaged := errors.As(err, new(damage)); {
		case errors.Is(err, fs.ErrNotExist):
		case isDamaged && !isNewest:
			ended = append(ended, &Record{name: name})
		case isDamaged:
			damaged = unusable(err)
			ended = slices.DeleteFunc(ended, func(older *Record) bool { return older.name.sameServer(name) })
		case err != nil:
			return nil, unusable(err)
		case record.Liveness() == Ended:
			ended = append(ended, record)
		}
	}
	var removed []*Record
	for _, record := range ended {
		if err := folder.Remove(record.name.String()); err != nil {
			return removed, unusable(err)
		}
		if record.PID != 0 {
			removed = append(removed, record)
		}
	}
	slices.SortStableFunc(removed, byServer)
	return removed, damaged
}

func byServer(a, b *Record) int {
	return cmp.Or(strings.Compare(a.Server.Name, b.Server.Name), strings.Compare(a.Server.Environment, b.Server.Environment))
}

// CheckWritable reports whether Retain could write a record now.
func (r Records) CheckWritable() error {
	folder, err := r.open()
	if err == nil {
		defer folder.Close()
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = ownfolder.CheckWritable(r.Dir)
	}
	if err != nil {
		return unusable(err)
	}
	return nil
}

func (r Records) open() (*ownfolder.Folder, error) {
	if r.Dir == "" {
		return nil, errors.New("no folder for retained authorities is named")
	}
	return ownfolder.Open(r.Dir, ownfolder.NoAccess)
}

// unusable is the refusal for an error that has the path of a folder or file in it.
func unusable(err error) *Refusal {
	hint := "the folder must be this user's alone, and nobody else may be able to replace it; --retain-dir names another"
	switch {
	case errors.As(err, new(damage)):
		hint = "remove the file; its process must be started again"
	case errors.As(err, new(*fs.PathError)): // the system says what is wrong
		hint = ""
	}
	return &Refusal{Code: CodeRecordUnusable, Message: printable.Line(err.Error()), Hint: hint, Err: err}
}
