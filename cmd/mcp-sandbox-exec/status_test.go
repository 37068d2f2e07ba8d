package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// A name is quoted where it could be taken for something else, or break the table.
func TestTableName(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"devbox", "devbox"},
		{"a b", "a b"},
		{"--", "--"},
		{"日本 é", "日本 é"},
		{"-", `"-"`},
		{" a", `" a"`},
		{"a ", `"a "`},
		{"\u3000a", `"\u3000a"`},
		{"a  b", `"a  b"`},
		{"a\nb", `"a\nb"`},
		{"\x1b[1m", `"\x1b[1m"`},
		{"a\tb", `"a\tb"`},
		{"a\u202eb", `"a\u202eb"`},
		{"a\u00a0b", `"a\u00a0b"`},
		{`"-"`, `"\"-\""`},
		{`a\nb`, `"a\\nb"`},
	} {
		if got := tableName(test.name); got != test.want {
			t.Errorf("%q is printed as %s, not %s", test.name, got, test.want)
		}
	}
}

func TestAgo(t *testing.T) {
	for _, test := range []struct {
		since time.Duration
		want  string
	}{
		{-59 * time.Second, "just now"},
		{-time.Hour, "in the future"},
		{0, "just now"},
		{time.Second - 1, "just now"},
		{time.Second, "1 second ago"},
		{2*time.Second - 1, "1 second ago"},
		{2 * time.Second, "2 seconds ago"},
		{time.Minute - 1, "59 seconds ago"},
		{time.Minute, "1 minute ago"},
		{time.Hour - 1, "59 minutes ago"},
		{90 * time.Minute, "1 hour ago"},
		{24*time.Hour - 1, "23 hours ago"},
		{36 * time.Hour, "1 day ago"},
		{1000 * 24 * time.Hour, "1000 days ago"},
	} {
		if got := ago(test.since); got != test.want {
			t.Errorf("%v is %q, not %q", test.since, got, test.want)
		}
	}
}

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// some returns records of processes that have ended, of which nothing is asked of the
// system.
func some(servers ...verify.Server) (records []*verify.Record) {
	for i, s := range servers {
		records = append(records, &verify.Record{
			Server: s, PID: -9, Since: now.Add(-time.Duration(i) * time.Hour).Add(1), Fingerprint: strings.Repeat("0123456789abcdef", 4),
		})
	}
	return records
}

// The columns stand one below the other, as wide as they must be.
func TestRecordsTable(t *testing.T) {
	if got, want := recordsTable(nil, now), "SERVER  ENVIRONMENT  PROCESS  STATUS  SINCE  FINGERPRINT"; got != want {
		t.Errorf("without records: %q", got)
	}
	servers := []verify.Server{{Name: "日本語の名前"}, {Name: "e\u0301", Environment: "-"}, {Name: "a\nb", Environment: "a very long environment"}, {Name: "-", Environment: "か\u3099❤\ufe0f"}}
	lines := strings.Split(recordsTable(some(servers...), now), "\n")
	status := string((&verify.Record{}).Liveness())
	column := func(name string) int { return strings.Index(lines[0], name) }
	want := [][]string{
		{"日本語の名前", "-", "just now"}, {"e\u0301", `"-"`, "59 minutes ago"}, {`"a\nb"`, "a very long environment", "1 hour ago"}, {`"-"`, "か\u3099❤\ufe0f", "2 hours ago"},
	}
	if len(lines) != len(want)+1 || column("ENVIRONMENT") != 12+2 || column("PROCESS") != 14+23+2 || column("STATUS") != column("PROCESS")+9 || column("FINGERPRINT") != column("SINCE")+16 {
		t.Fatalf("the table is\n%s", strings.Join(lines, "\n"))
	}
	for i, line := range lines[1:] {
		cells := slices.Concat(want[i][:2], []string{"-9", status}, want[i][2:], []string{"0123456789ab"})
		for j, name := range []string{"SERVER", "ENVIRONMENT", "PROCESS", "STATUS", "SINCE", "FINGERPRINT"} {
			before, _, found := strings.Cut(line, cells[j])
			line = strings.Repeat(" ", uniseg.StringWidth(before+cells[j])) + strings.TrimPrefix(line, before+cells[j])
			if !found || strings.TrimSpace(before) != "" || uniseg.StringWidth(before) != column(name) {
				t.Errorf("in line %d there is no %q under %s:\n%s", i, cells[j], name, strings.Join(lines, "\n"))
			}
		}
		if strings.TrimSpace(line) != "" || strings.HasSuffix(lines[i+1], " ") {
			t.Errorf("line %d has more: %q", i, lines[i+1])
		}
	}
}

func TestRecordsJSON(t *testing.T) {
	if got := recordsJSON(nil); got != "[]" {
		t.Errorf("without records: %s", got)
	}
	servers := []verify.Server{{Name: "a\n\"\x1b\u2028é"}, {Name: "b", Environment: "none"}}
	text := recordsJSON(some(servers...))
	if strings.ContainsAny(text, "\n\x1b") {
		t.Errorf("more than a line: %q", text)
	}
	var got []map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got) != 2 {
		t.Fatalf("%s: %v", text, err)
	}
	since := []string{"2026-11-30T12:00:00Z", "2026-11-30T11:00:00Z"}
	for i, environment := range []any{nil, "none"} {
		want := map[string]any{
			"server": servers[i].Name, "environment": environment, "process": float64(-9), "status": string((&verify.Record{}).Liveness()),
			"since": since[i], "fingerprint": strings.Repeat("0123456789abcdef", 4),
		}
		if fmt.Sprint(got[i]) != fmt.Sprint(want) {
			t.Errorf("%v is not %v", got[i], want)
		}
	}
}
