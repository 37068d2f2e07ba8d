package verify

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/descriptor"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/printable"
)

// MaxSourceSize is the most that a [Source] may hold, in bytes: 16 MiB. A
// larger one is refused, not cut.
const MaxSourceSize = 16 << 20

// ErrUnset is returned by [Source.Read] for a variable that is not set. Such a
// source is absent, as a file that cannot be opened is not: a server that sets
// the variable only for calls that carry metadata says by its absence that
// there was none.
var ErrUnset = errors.New("variable is not set")

// A Source says where a piece of metadata is read from. The zero Source is not
// valid; [ParseSource] makes one.
type Source struct {
	spelled string // as the user wrote it, for messages
	path    string // of a file
	env     string // the name of a variable
	fd      int    // a descriptor, -1 if it is not one
}

// ParseSource reads the notation of the command line:
//
//	file:PATH  a file
//	env:NAME   a variable of the environment
//	fd:N       a descriptor that is open in this process, 0 or from 3 up
//	-          standard input, the same as fd:0
//	PATH       a file; one whose name starts with "-" needs file: or ./
//
// A PATH of /dev/stdin, /dev/fd/N or /proc/self/fd/N is the descriptor itself,
// so that what was read there cannot be read a second time. Whether it was the
// caller who opened a descriptor is for the caller to know: Go has some of its
// own, and their content is nobody's metadata.
func ParseSource(spelled string) (Source, error) {
	s := Source{spelled: spelled, fd: -1}
	kind, rest, found := strings.Cut(spelled, ":")
	switch {
	case spelled == "":
		return Source{}, errors.New("a source is empty")
	case spelled == "-":
		s.fd = 0
		return s, nil
	case strings.HasPrefix(spelled, "-"):
		return Source{}, fmt.Errorf("source %q starts with a dash; a file of that name needs file: or ./ before it", spelled)
	case found && kind == "env":
		if rest == "" || strings.ContainsAny(rest, "=\x00") {
			return Source{}, fmt.Errorf("source %q does not name a variable", spelled)
		}
		s.env = rest
		return s, nil
	case found && kind == "fd":
		return s.descriptor(rest)
	case found && kind == "file":
		s.path = rest
	default:
		s.path = spelled
	}
	if s.path == "" || strings.Contains(s.path, "\x00") {
		return Source{}, fmt.Errorf("source %q does not name a file", spelled)
	}
	for _, folder := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if number, ok := strings.CutPrefix(s.path, folder); ok {
			return s.descriptor(number)
		}
	}
	for number, path := range []string{"/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		if s.path == path {
			return s.descriptor(strconv.Itoa(number))
		}
	}
	return s, nil
}

func (s Source) descriptor(number string) (Source, error) {
	fd, err := descriptor.Parse(number)
	switch {
	case err != nil:
		return Source{}, fmt.Errorf("source %q does not name a descriptor by its number", s.spelled)
	case fd == 1 || fd == 2:
		return Source{}, fmt.Errorf("source %q is the command's output; use 0, or 3 and up", s.spelled)
	}
	s.fd, s.path = fd, ""
	return s, nil
}

// String returns the source as it was written, quoted if it could not stand in
// a line of a message.
func (s Source) String() string { return printable.Line(s.spelled) }

// Env returns the name of the variable that s reads, or "".
func (s Source) Env() string { return s.env }

// Descriptor returns the number of the descriptor that s reads, or -1.
func (s Source) Descriptor() int { return s.fd }

// Read reads the source to its end. It can be done once for each source: a
// descriptor is closed afterwards, and standard input is then /dev/null, so
// that no command finds there what was not meant for it. The environment is
// left alone; who starts a command takes [Source.Env] out of it.
//
// The error is [ErrUnset], or a [*Refusal] with [CodeMetadataUnreadable], or,
// for a variable that is set but empty, [CodeMetadataMalformed].
func (s Source) Read() ([]byte, error) {
	read := s.readFile
	if s.env != "" {
		read = s.readEnv
	}
	text, err := read()
	if err != nil {
		return nil, err
	}
	if len(text) > MaxSourceSize {
		return nil, &Refusal{
			Code:    CodeMetadataUnreadable,
			Message: fmt.Sprintf("%s: larger than %d MiB", s, MaxSourceSize>>20),
			Hint:    "pass the one request, or only its _meta, and not a whole stream",
		}
	}
	return text, nil
}

func (s Source) readEnv() ([]byte, error) {
	value, set := os.LookupEnv(s.env)
	if !set {
		return nil, ErrUnset
	}
	if value == "" {
		return nil, &Refusal{
			Code:    CodeMetadataMalformed,
			Message: fmt.Sprintf("%s: the variable is empty", s),
			Hint:    "where a call carries no metadata, leave the variable unset",
		}
	}
	return []byte(value), nil
}

func (s Source) readFile() ([]byte, error) {
	f, err := s.open()
	if err != nil {
		return nil, s.unreadable(err)
	}
	text, err := readBounded(f)
	f.Close()
	if err == nil && s.fd == 0 {
		err = emptyStdin()
	}
	if err != nil {
		return nil, s.unreadable(err)
	}
	return text, nil
}

func (s Source) open() (*os.File, error) {
	if s.fd < 0 {
		return os.Open(s.path)
	}
	f := os.NewFile(uintptr(s.fd), s.spelled)
	if f == nil {
		return nil, unix.EBADF
	}
	return f, nil
}

// readBounded reads to the end, or one byte past [MaxSourceSize].
func readBounded(f *os.File) ([]byte, error) {
	size := 4096
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		// One more than the size, so that the end is seen without growing.
		size = max(size, int(min(info.Size(), MaxSourceSize))+1)
	}
	text := make([]byte, 0, size)
	for {
		n, err := f.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case err == io.EOF:
			return text, nil
		case err != nil:
			return nil, err
		case len(text) > MaxSourceSize:
			return text, nil
		case len(text) == cap(text):
			grown := make([]byte, len(text), min(2*cap(text), MaxSourceSize+1))
			copy(grown, text)
			text = grown
		}
	}
}

// emptyStdin puts /dev/null in the place of descriptor 0, which is closed.
// open(2) takes the lowest free number.
func emptyStdin() error {
	fd, err := unix.Open(os.DevNull, unix.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("cannot put %s in the place of stdin: %w", os.DevNull, err)
	}
	if fd != 0 {
		return fmt.Errorf("cannot put %s in the place of stdin: descriptor 0 was taken", os.DevNull)
	}
	return nil
}

func (s Source) unreadable(err error) *Refusal {
	reason := err
	var path *os.PathError
	if errors.As(err, &path) {
		reason = path.Err
	}
	return &Refusal{
		Code:    CodeMetadataUnreadable,
		Message: fmt.Sprintf("%s: %v", s, reason),
		Err:     err,
	}
}
