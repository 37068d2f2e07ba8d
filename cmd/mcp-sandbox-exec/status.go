package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/printable"
	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// statusCommand lists the retained authorities, after those of processes that ended
// are removed if that was asked for.
func statusCommand(o *options) error {
	p, err := o.begin()
	if err == nil {
		err = o.planRecords(p)
	}
	if err != nil {
		return err
	}
	if o.prune.given() {
		removed, err := p.records.Prune(p.server.Name, p.server.Environment)
		for _, r := range removed {
			p.note("removed the record of process %d of server %s, which has ended", r.PID, r.Server)
		}
		if err != nil {
			return err
		}
	}
	records, err := p.records.List(p.server.Name, p.server.Environment)
	if err != nil {
		return err
	}
	if p.asJSON {
		return printLine(recordsJSON(records))
	}
	return printLine(recordsTable(records, time.Now()))
}

func recordsJSON(records []*verify.Record) string {
	array := []byte{'['}
	for i, r := range records {
		if i > 0 {
			array = append(array, ',')
		}
		array = appendJSONString(append(array, `{"server":`...), r.Server.Name)
		array = append(array, `,"environment":`...)
		if r.Server.Environment == "" {
			array = append(array, "null"...)
		} else {
			array = appendJSONString(array, r.Server.Environment)
		}
		array = fmt.Appendf(array, `,"process":%d,"status":%q,"since":%q,"fingerprint":%q}`,
			r.PID, r.Liveness(), r.Since.Format(time.RFC3339), r.Fingerprint)
	}
	return string(append(array, ']'))
}

// recordsTable returns an aligned table with a line for each record.
func recordsTable(records []*verify.Record, now time.Time) string {
	rows := [][]string{{"SERVER", "ENVIRONMENT", "PROCESS", "STATUS", "SINCE", "FINGERPRINT"}}
	for _, r := range records {
		environment := "-" // the unnamed one
		if r.Server.Environment != "" {
			environment = tableName(r.Server.Environment)
		}
		rows = append(rows, []string{
			tableName(r.Server.Name), environment, strconv.Itoa(r.PID), string(r.Liveness()),
			ago(now.Sub(r.Since)), r.Fingerprint[:12],
		})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		for j, cell := range row {
			lines[i] += cell + strings.Repeat(" ", widths[j]-uniseg.StringWidth(cell)+2)
		}
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// tableName returns a name as it can stand in a table: quoted where it could break
// it, or be taken for something else.
func tableName(name string) string {
	if name == "-" || strings.TrimSpace(name) != name || strings.Contains(name, "  ") {
		return strconv.Quote(name)
	}
	return printable.Line(name)
}

// ago says in one unit how long something has been.
func ago(d time.Duration) string {
	if d <= -time.Minute {
		return "in the future" // after the clock went back
	}
	for _, unit := range []struct {
		name string
		size time.Duration
	}{
		{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second},
	} {
		switch n := d / unit.size; {
		case n == 1:
			return "1 " + unit.name + " ago"
		case n > 1:
			return fmt.Sprintf("%d %ss ago", n, unit.name)
		}
	}
	return "just now"
}
