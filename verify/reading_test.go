package verify

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// A tree is one value of a JSON text as the tests' own reader understands it.
// The reader is written from RFC 8259 and shares nothing with the package, so
// that a mistake in one of the two shows as a difference.
type tree struct {
	kind       byte     // '{', '[', '"', '0', 't', 'f' or 'n'
	start, end int      // where the value stands in the text
	number     string   // as it is written
	text       []uint16 // of a string: UTF-16, where a lone surrogate is one unit
	names      [][]uint16
	items      []*tree // of an array, or beside the names of an object
}

var (
	errNotJSON = errors.New("not one JSON value")
	errTooDeep = errors.New("nested too deep for this reader")
)

// deepest is how deep the reader goes. It is less than the 10,000 of the
// program, so that only one of the two limits is ever met.
const deepest = 9000

// read returns what a text means, or errNotJSON or errTooDeep.
func read(text []byte) (*tree, error) {
	r := &reader{text: text}
	r.space()
	v := r.value(deepest)
	r.space()
	if r.pos < len(text) {
		r.fail(errNotJSON)
	}
	return v, r.err
}

// A reader stands at one place of a text. After an error nothing matches.
type reader struct {
	text []byte
	pos  int
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// has takes word off the text, if that is what comes next.
func (r *reader) has(word string) bool {
	if r.err != nil || !bytes.HasPrefix(r.text[r.pos:], []byte(word)) {
		return false
	}
	r.pos += len(word)
	return true
}

func (r *reader) need(word string) {
	if !r.has(word) {
		r.fail(errNotJSON)
	}
}

func (r *reader) space() {
	for r.has(" ") || r.has("\t") || r.has("\n") || r.has("\r") {
	}
}

var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?`)

func (r *reader) value(depth int) *tree {
	v := &tree{start: r.pos}
	switch {
	case depth == 0:
		r.fail(errTooDeep)
	case r.has("{"):
		v.kind = '{'
		r.list("}", func() {
			r.need(`"`)
			v.names = append(v.names, r.string())
			r.space()
			r.need(":")
			r.space()
			v.items = append(v.items, r.value(depth-1))
		})
	case r.has("["):
		v.kind = '['
		r.list("]", func() { v.items = append(v.items, r.value(depth-1)) })
	case r.has(`"`):
		v.kind, v.text = '"', r.string()
	case r.has("true"), r.has("false"), r.has("null"):
		v.kind = r.text[v.start]
	default:
		v.kind, v.number = '0', string(number.Find(r.text[r.pos:]))
		if v.number == "" {
			r.fail(errNotJSON)
		}
		r.pos += len(v.number)
	}
	v.end = r.pos
	return v
}

// list reads items with commas between them, and what ends them.
func (r *reader) list(end string, item func()) {
	r.space()
	if r.has(end) {
		return
	}
	for r.err == nil {
		item()
		r.space()
		if r.has(end) {
			return
		}
		r.need(",")
		r.space()
	}
}

// string reads a string behind its first quotation mark.
func (r *reader) string() (units []uint16) {
	for r.err == nil && !r.has(`"`) {
		if r.has(`\`) {
			units = append(units, r.escape())
			continue
		}
		c, size := utf8.DecodeRune(r.text[r.pos:])
		if c < 0x20 || c == utf8.RuneError && size <= 1 {
			r.fail(errNotJSON)
		}
		units = utf16.AppendRune(units, c)
		r.pos += size
	}
	return units
}

func (r *reader) escape() uint16 {
	const letters, meant = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	for i := range letters {
		if r.has(letters[i : i+1]) {
			return uint16(meant[i])
		}
	}
	r.need("u")
	digits := r.text[r.pos:min(r.pos+4, len(r.text))]
	unit, err := strconv.ParseUint(string(digits), 16, 16)
	if err != nil || len(digits) < 4 {
		r.fail(errNotJSON)
	}
	r.pos += len(digits)
	return uint16(unit)
}

// byName returns the members of an object, those with the same name together
// and in their order.
func (v *tree) byName() map[string][]*tree {
	members := map[string][]*tree{}
	for i, units := range v.names {
		name, err := binary.Append(nil, binary.BigEndian, units)
		if err != nil {
			panic(err)
		}
		members[string(name)] = append(members[string(name)], v.items[i])
	}
	return members
}

// same reports whether v and w are one value: the order of members with
// different names and the spelling of strings do not count, the order of members
// with the same name and the spelling of numbers do.
func (v *tree) same(w *tree) bool {
	if v.kind != w.kind || v.number != w.number || !slices.Equal(v.text, w.text) || len(v.items) != len(w.items) {
		return false
	}
	if v.kind != '{' {
		return slices.EqualFunc(v.items, w.items, (*tree).same)
	}
	others := w.byName()
	for name, items := range v.byName() {
		if !slices.EqualFunc(items, others[name], (*tree).same) {
			return false
		}
	}
	return true
}

// respell returns another text of the same value: with white space, every
// string in escapes, and members with different names in another order.
func (v *tree) respell() []byte { return v.appendRespelled(nil) }

func (v *tree) appendRespelled(dst []byte) []byte {
	quote := func(dst []byte, units []uint16) []byte {
		dst = append(dst, '"')
		for _, unit := range units {
			dst = fmt.Appendf(dst, `\u%04X`, unit)
		}
		return append(dst, '"')
	}
	order := make([]int, len(v.items))
	for i := range order {
		order[i] = i
	}
	switch v.kind {
	case '{':
		slices.SortStableFunc(order, func(i, j int) int { return slices.Compare(v.names[j], v.names[i]) })
		fallthrough
	case '[':
		dst = append(dst, v.kind, '\n')
		for n, i := range order {
			if n > 0 {
				dst = append(dst, " ,\t"...)
			}
			if v.kind == '{' {
				dst = append(quote(dst, v.names[i]), " :\r\n"...)
			}
			dst = v.items[i].appendRespelled(dst)
		}
		return append(dst, '\n', v.kind+2)
	case '"':
		return quote(dst, v.text)
	case '0':
		return append(dst, v.number...)
	default:
		return append(dst, map[byte]string{'t': "true", 'f': "false", 'n': "null"}[v.kind]...)
	}
}

// readTree returns what a text means, nil if it is no JSON value, and skips a
// text that is nested too deep. encoding/json must agree about what is JSON; it
// takes text that is not UTF-8 besides.
func readTree(t *testing.T, text []byte) *tree {
	t.Helper()
	v, err := read(text)
	if err == errTooDeep {
		t.Skip(err)
	}
	if valid := json.Valid(text) && utf8.Valid(text); valid != (err == nil) {
		t.Fatalf("encoding/json says %v of %q, the tests' reader %v", valid, text, err)
	}
	if err != nil {
		return nil
	}
	return v
}

func TestReading(t *testing.T) {
	for _, text := range slices.Concat(values, broken) {
		v := readTree(t, []byte(text))
		if (v == nil) != slices.Contains(broken, text) {
			t.Errorf("%q is read as %v", text, v)
		}
		if v == nil {
			continue
		}
		if again := readTree(t, v.respell()); again == nil || !v.same(again) || !again.same(v) {
			t.Errorf("%q is another value when it is written %q", text, v.respell())
		}
	}
	text := ` { "\u0061\/b" : [ -1.50E+2 , "\ud83d\ude00😀\ud83d" ] , "a/b" : null } `
	v := readTree(t, []byte(text))
	if got := text[v.start:v.end]; v.kind != '{' || got != text[1:len(text)-1] {
		t.Errorf("the object is %q", got)
	}
	if name := utf16.Encode([]rune("a/b")); !slices.Equal(v.names[0], name) || !slices.Equal(v.names[1], name) {
		t.Errorf("the names are %v", v.names)
	}
	list := v.items[0]
	if got := text[list.start:list.end]; got != `[ -1.50E+2 , "\ud83d\ude00😀\ud83d" ]` || list.items[0].number != "-1.50E+2" {
		t.Errorf("the array is %q with the number %q", got, list.items[0].number)
	}
	if got := list.items[1].text; !slices.Equal(got, []uint16{0xd83d, 0xde00, 0xd83d, 0xde00, 0xd83d}) {
		t.Errorf("the string is %x", got)
	}
	if got := v.items[1]; text[got.start:got.end] != "null" || got.kind != 'n' {
		t.Errorf("the last is %q", text[got.start:got.end])
	}
	for depth, want := range map[int]error{deepest - 1: nil, deepest: errTooDeep} {
		if _, err := read([]byte(strings.Repeat("[", depth) + "0" + strings.Repeat("]", depth))); err != want {
			t.Errorf("%d deep: %v", depth, err)
		}
	}
}
