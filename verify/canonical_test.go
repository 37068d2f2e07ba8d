package verify

import (
	"runtime"
	"strings"
	"testing"
)

func TestSameValue(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{`{}`, `{ }`, true},
		{`{"a":1,"b":[2,3]}`, "{\n\"b\" : [2 ,3] , \"a\":1}", true},
		{`"\u0061\/\b\f\n\r\t\"\\"`, `"a/\u0008\u000C\u000a\u000d\u0009\u0022\u005c"`, true},
		{`"\ud83d\ude00"`, `"😀"`, true},
		{`"\uD800"`, `"\ud800"`, true},
		{`"\ud800\ud83d\ude00"`, `"\ud800😀"`, true},
		{`{"a":1,"a":2,"b":3}`, `{"b":3,"a":1,"a":2}`, true},
		{`{"\u0061":1}`, `{"a":1}`, true},

		{`1`, `1.0`, false},
		{`10`, `1e1`, false},
		{`1E2`, `1e2`, false},
		{`0`, `-0`, false},
		{`12345678901234567890`, `12345678901234567891`, false},
		{`1`, `"1"`, false},
		{`null`, `"null"`, false},
		{`null`, `false`, false},
		{`[]`, `{}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[1]`, `[[1]]`, false},
		{`[1,2]`, `[12]`, false},
		{`[[],1]`, `[[1]]`, false},
		{`{"a":1}`, `{"a":1,"a":1}`, false},
		{`{"a":1,"a":2}`, `{"a":2,"a":1}`, false},
		{`{"a":1}`, `{"A":1}`, false},
		{`{"a":{"b":1}}`, `{"a":{},"b":1}`, false},
		{`"\ud800"`, `"\udfff"`, false},
		{`"\ud800"`, `"\ufffd"`, false},
		{`"\ud800\udc00"`, `"\udc00\ud800"`, false},
		// A string cannot be made to look like the syntax around it.
		{`["a,b"]`, `["a","b"]`, false},
		{`["a\",\"b"]`, `["a","b"]`, false},
		{`{"a\":1,\"b":2}`, `{"a":1,"b":2}`, false},
		{`"\\u0061"`, `"a"`, false},
		{`"\\n"`, `"\n"`, false},
	} {
		if got := sameValue([]byte(test.a), []byte(test.b)); got != test.same {
			t.Errorf("%s and %s are the same: %v", test.a, test.b, got)
		}
		if got := sameValue([]byte(test.b), []byte(test.a)); got != test.same {
			t.Errorf("%s and %s are the same: %v", test.b, test.a, got)
		}
	}
}

// Depth costs no copies: what is nested thousands deep is compared at once, and
// memory stays in proportion.
func TestSameValueOfDeepObjects(t *testing.T) {
	for _, level := range []string{`{"x":`, `{"b":0,"a":`} {
		depth := 9_000
		a := strings.Repeat(level, depth) + "0" + strings.Repeat("}", depth)
		b := strings.Replace(a, ":", ": ", 1)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if !sameValue([]byte(a), []byte(b)) {
			t.Errorf("%s: they are not the same", level)
		}
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		if most := uint64(200 * len(a)); allocated > most {
			t.Errorf("%s: %d bytes are allocated for %d", level, allocated, len(a))
		}
	}
}
