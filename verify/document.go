package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A document is the text of one source while it is read, from its first byte
// to its last, without a copy of anything in it.
//
// encoding/json would not do here: it matches member names without regard to
// case, keeps the last of two, and lets invalid text pass as U+FFFD.
type document struct {
	name string // what the text is, for messages
	text []byte
	dec  *jsontext.Decoder
}

// openDocument checks that text is UTF-8 without a byte order mark.
func openDocument(name string, text []byte) (*document, error) {
	d := &document{name: name, text: text}
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return nil, d.malformed("write it without one: JSON has none", "starts with a byte order mark (BOM)")
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return nil, d.malformed("write it as UTF-8", "starts with the byte order mark (BOM) of UTF-16")
	case !utf8.Valid(text):
		return nil, d.malformed("", "not UTF-8 at byte %d", invalidOffset(text))
	}
	// Names that stand twice and lone surrogates are the business of whoever
	// owns the value; those that are read here are checked where they are read.
	d.dec = jsontext.NewDecoder(bytes.NewBuffer(text),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return d, nil
}

// invalidOffset returns the place of the first byte of text that is not UTF-8.
func invalidOffset(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return len(text)
}

// members reads the object that comes next. It calls read for each member of
// one of the given names, which then takes the member's value off the document,
// and passes the others by. A name counts exactly, and only once.
func (d *document) members(what string, names []string, read func(name string) error) error {
	if got := d.dec.PeekKind(); got != '{' && got != jsontext.KindInvalid {
		return d.malformed("", "%s is %s, not an object", what, kindName(got))
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return d.syntax(err)
	}
	seen := make([]bool, len(names))
	for d.dec.PeekKind() != '}' {
		name, err := d.dec.ReadToken()
		if err != nil {
			return d.syntax(err)
		}
		i := slices.Index(names, name.String())
		if i < 0 {
			if err := d.dec.SkipValue(); err != nil {
				return d.syntax(err)
			}
			continue
		}
		if seen[i] {
			return d.malformed("which of the two the sender meant cannot be known",
				"%q stands twice in %s", names[i], what)
		}
		seen[i] = true
		if err := read(names[i]); err != nil {
			return err
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return d.syntax(err)
	}
	return nil
}

// value takes the value that comes next: its bytes in the text, first to last.
func (d *document) value() ([]byte, error) {
	v, err := d.dec.ReadValue()
	if err != nil {
		return nil, d.syntax(err)
	}
	end := int(d.dec.InputOffset())
	return d.text[end-len(v) : end : end], nil
}

// end checks that nothing but white space is left.
func (d *document) end() error {
	if d.dec.PeekKind() == jsontext.KindInvalid {
		if _, err := d.dec.ReadToken(); err == io.EOF {
			return nil
		}
	}
	offset := int(d.dec.InputOffset())
	offset += len(d.text[offset:]) - len(bytes.TrimLeft(d.text[offset:], " \t\r\n"))
	return d.malformed("pass one JSON value and nothing else", "more data after the value, at byte %d", offset)
}

// syntax makes a refusal of an error of the decoder. The decoder's own words
// are used up to a few characters of the text, never more of it.
func (d *document) syntax(err error) *Refusal {
	if err == io.EOF {
		return d.malformed("", "empty")
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) && syntactic.Err != nil {
		return d.malformed("", "not valid JSON at byte %d: %v", syntactic.ByteOffset, syntactic.Err)
	}
	return d.malformed("", "not valid JSON: %v", err)
}

func (d *document) malformed(hint, format string, args ...any) *Refusal {
	return &Refusal{
		Code:    CodeMetadataMalformed,
		Message: d.name + ": " + fmt.Sprintf(format, args...),
		Hint:    hint,
	}
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	default:
		return "a boolean"
	}
}
