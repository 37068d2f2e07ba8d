package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// manualPart returns the lines of the manual from one macro line to the next
// section.
func manualPart(t *testing.T, start string) []string {
	t.Helper()
	text, err := os.ReadFile("../../man/mcp-sandbox-exec.1")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n"+start+"\n")
	if !found {
		t.Fatalf("the manual has no line %q", start)
	}
	part, _, _ = strings.Cut(part, "\n.Sh ")
	return strings.Split(part, "\n")
}

// programFlags returns the flags of the program and of its subcommands.
func programFlags() (flags []*cli.GenericFlag) {
	app := newApp(nil, false)
	all := slices.Clone(app.Flags)
	for _, c := range app.Commands {
		all = append(all, c.Flags...)
	}
	for _, f := range all {
		flags = append(flags, f.(*cli.GenericFlag))
	}
	return flags
}

// programOptions returns the options of the program and its subcommands, and
// whether each takes a value.
func programOptions() map[string]bool {
	options := map[string]bool{"help": false, "version": false}
	for _, g := range programFlags() {
		options[g.Name] = !g.Value.(*option).toggle
	}
	return options
}

func TestManualListsTheOptions(t *testing.T) {
	manual := map[string]bool{}
	for _, line := range manualPart(t, ".Sh OPTIONS") {
		if item, ok := strings.CutPrefix(line, ".It Fl -"); ok {
			name, value, _ := strings.Cut(item, " ")
			if _, twice := manual[name]; twice {
				t.Errorf("the manual has --%s twice", name)
			}
			manual[name] = value != ""
		}
	}
	if program := programOptions(); !maps.Equal(manual, program) {
		t.Errorf("options, and whether they have a value:\nmanual  %v\nprogram %v", manual, program)
	}
}

// The help gives an option a value where it has one, and says which can be
// repeated.
func TestHelpMatchesTheOptions(t *testing.T) {
	for _, g := range programFlags() {
		o := g.Value.(*option)
		if hasValue := strings.Contains(g.Usage, "`"); hasValue == o.toggle {
			t.Errorf("--%s: a toggle is %v, but its help is %q", g.Name, o.toggle, g.Usage)
		}
		if o.repeatable != strings.Contains(g.Usage, "(repeatable)") {
			t.Errorf("--%s: repeatable is %v, but its help is %q", g.Name, o.repeatable, g.Usage)
		}
	}
}

// A name stands apart from what is said about it.
func TestHelpIsAligned(t *testing.T) {
	app := newApp(nil, false)
	text := help(app)
	for _, c := range app.Commands {
		text += help(c)
	}
	for name := range programOptions() {
		if !regexp.MustCompile(`(?m)^  --` + name + `( [^ ]+)?(  +[^ ]|\n {30}[^ ]|, -h  +[^ ])`).MatchString(text) {
			t.Errorf("--%s is not set apart:\n%s", name, text)
		}
	}
}

func TestManualListsTheSubcommands(t *testing.T) {
	var manual, program []string
	for _, line := range manualPart(t, ".Sh SUBCOMMANDS") {
		if name, ok := strings.CutPrefix(line, ".It Cm "); ok {
			manual = append(manual, name)
		}
	}
	for _, c := range newApp(nil, false).Commands {
		program = append(program, c.Name)
	}
	if !slices.Equal(manual, program) {
		t.Errorf("manual %q, program %q", manual, program)
	}
}

// sourceCodes reads the codes off the constants themselves, so that none can be
// forgotten.
func sourceCodes(t *testing.T) (codes []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../verify/refusal.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if ident, ok := spec.Type.(*ast.Ident); ok && ident.Name == "Code" {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
		return false
	})
	return codes
}

func TestManualListsTheCodes(t *testing.T) {
	var manual []string
	for _, line := range manualPart(t, ".Ss ERRORS") {
		if code, ok := strings.CutPrefix(line, ".It Li "); ok {
			manual = append(manual, code)
		}
	}
	if source := sourceCodes(t); len(source) == 0 || !slices.Equal(manual, source) {
		t.Errorf("codes, in their order:\nmanual %q\nsource %q", manual, source)
	}
}

// Each option is used and each code is seen in a script.
func TestScriptsShowOptionsAndCodes(t *testing.T) {
	files, err := filepath.Glob("../../testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	var runs []string // lines that run the program
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "mcp-sandbox-exec") {
				runs = append(runs, line)
			}
		}
	}
	shown := func(pattern string) bool {
		return slices.ContainsFunc(runs, regexp.MustCompile(pattern).MatchString)
	}
	for name := range programOptions() {
		if !shown(`^status 0 .*mcp-sandbox-exec [^#]*--` + name + `\b`) {
			t.Errorf("no script uses --%s with success", name)
		}
	}
	for _, code := range sourceCodes(t) {
		if !shown(`^(\[linux\] )?refused ` + code + ` `) {
			t.Errorf("no script is refused with %s", code)
		}
	}
}
