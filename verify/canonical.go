package verify

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// sameValue reports whether two valid JSON texts are the same value, compared
// by structure: white space, the order of members and the spelling of strings
// do not count, while number literals count as they are written.
func sameValue(a, b []byte) bool {
	return bytes.Equal(a, b) || bytes.Equal(canonical(a), canonical(b))
}

// canonical returns a form of a valid JSON text that is equal for two texts if
// and only if they are the same value in the sense of [sameValue]. It is made
// to be compared and hashed, not to be parsed.
//
// A library's canonical form would not do: RFC 8785 sends numbers through a
// double, where large integers collapse, and lone surrogates are replaced, so
// that two different policies could pass for one.
func canonical(text []byte) []byte {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return appendCanonical(make([]byte, 0, len(text)), dec)
}

func appendCanonical(dst []byte, dec *jsontext.Decoder) []byte {
	switch dec.PeekKind() {
	case '{':
		return appendCanonicalObject(dst, dec)
	case '[':
		mustRead(dec)
		dst = append(dst, '[')
		for dec.PeekKind() != ']' {
			dst = append(appendCanonical(dst, dec), ',')
		}
		mustRead(dec)
		return append(dst, ']')
	case '"':
		return appendCanonicalString(dst, mustReadValue(dec))
	default:
		return append(dst, mustReadValue(dec)...)
	}
}

// appendCanonicalObject sorts members by name. Of those with the same name the
// order is kept, as it decides which one a reader takes. Members are written once
// and moved only if they are not in order: copying each level into the next would
// take seconds for objects that are nested thousands deep.
func appendCanonicalObject(dst []byte, dec *jsontext.Decoder) []byte {
	type member struct{ start, nameEnd, end int } // in dst
	var members []member
	mustRead(dec)
	dst = append(dst, '{')
	first := len(dst)
	for dec.PeekKind() != '}' {
		m := member{start: len(dst)}
		dst = appendCanonicalString(dst, mustReadValue(dec))
		m.nameEnd = len(dst)
		dst = append(appendCanonical(append(dst, ':'), dec), ',')
		m.end = len(dst)
		members = append(members, m)
	}
	mustRead(dec)
	byName := func(a, b member) int {
		return bytes.Compare(dst[a.start:a.nameEnd], dst[b.start:b.nameEnd])
	}
	if !slices.IsSortedFunc(members, byName) {
		slices.SortStableFunc(members, byName)
		last := len(dst)
		for _, m := range members {
			dst = append(dst, dst[m.start:m.end]...)
		}
		dst = dst[:first+copy(dst[first:], dst[last:])]
	}
	return append(dst, '}')
}

// appendCanonicalString appends a JSON string with its escapes resolved, except
// those that would end it. A lone surrogate becomes the three bytes that UTF-8
// forbids for it, which no other text can become.
func appendCanonicalString(dst, raw []byte) []byte {
	dst = append(dst, '"')
	for raw = raw[1 : len(raw)-1]; len(raw) > 0; {
		if raw[0] != '\\' {
			dst, raw = append(dst, raw[0]), raw[1:]
			continue
		}
		var c rune
		switch c, raw = rune(raw[1]), raw[2:]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			c, raw = hex4(raw), raw[4:]
			if 0xd800 <= c && c < 0xdc00 && len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
				if low := hex4(raw[2:]); 0xdc00 <= low && low < 0xe000 {
					c, raw = (c-0xd800)<<10+(low-0xdc00)+0x10000, raw[6:]
				}
			}
		}
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', byte(c))
		case 0xd800 <= c && c < 0xe000:
			dst = append(dst, 0xed, 0x80|byte(c>>6&0x3f), 0x80|byte(c&0x3f))
		default:
			dst = utf8.AppendRune(dst, c)
		}
	}
	return append(dst, '"')
}

// hex4 returns the value of four hexadecimal digits.
func hex4(digits []byte) (r rune) {
	for _, d := range digits[:4] {
		if d <= '9' {
			d -= '0'
		} else {
			d = d | 0x20 - 'a' + 10
		}
		r = r<<4 | rune(d)
	}
	return r
}

// A text comes here only after a document has read it, so that reading it again
// cannot fail.
func mustRead(dec *jsontext.Decoder) {
	if _, err := dec.ReadToken(); err != nil {
		panic(err)
	}
}

func mustReadValue(dec *jsontext.Decoder) jsontext.Value {
	v, err := dec.ReadValue()
	if err != nil {
		panic(err)
	}
	return v
}
