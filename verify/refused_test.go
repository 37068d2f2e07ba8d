package verify

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/testcorpus"
)

func readRefused(t *testing.T) []testcorpus.Case {
	t.Helper()
	cases, err := testcorpus.Read("testdata/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// The library refuses each text of the table with its code, and knows it from
// the text alone: none of the launchers is there.
func TestRefusedTexts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	places := map[string]string{"@BIN@": "/nowhere", "@WORK@": "/nowhere"}
	for _, c := range readRefused(t) {
		if _, isText := testcorpus.Good[c.Kind]; !isText {
			continue
		}
		if err := os.WriteFile(file, []byte(testcorpus.Replace(c.Words[0], places)), 0o666); err != nil {
			t.Fatal(err)
		}
		err := refuseText(c.Kind, file)
		if code := codeOf(t, err); string(code) != c.Code {
			t.Errorf("line %d: the code is %q, not %q (%v): %.200q", c.Line, code, c.Code, err, c.Words[0])
		}
	}
}

// refuseText goes as far as it gets without a file for the launcher.
func refuseText(kind, file string) error {
	source, err := ParseSource(file)
	if err != nil {
		return err
	}
	text, err := source.Read()
	if err != nil {
		return err
	}
	var m *Metadata
	switch kind {
	case "request":
		m, err = ParseRequest(text)
	case "meta":
		m, err = ParseMeta(text)
	case "state":
		m, err = ParseState(text)
	case "launcher":
		m, err = ParseState([]byte("{}"))
		if err == nil {
			err = m.AddLauncher(text)
		}
	}
	if err != nil {
		return err
	}
	_, err = m.Authority(context.Background(), Options{})
	return err
}

func TestRefusedTable(t *testing.T) {
	cases := readRefused(t)
	if len(cases) < 200 {
		t.Errorf("there are %d cases", len(cases))
	}
	lines := map[string]int{}
	for _, c := range cases {
		input := c.Kind + "\x00" + strings.Join(c.Words, "\x00")
		if first := lines[input]; first != 0 {
			t.Errorf("line %d is line %d again", c.Line, first)
		}
		lines[input] = c.Line
	}
}
