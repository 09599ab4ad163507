package walks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// step is a line of a walk: `1. [file](../../file) `function` → `name`: what happens`.
type step struct {
	file, function, to string
	first              bool // below a heading
}

var (
	numbered = regexp.MustCompile(`^\d+\. `)
	stepLine = regexp.MustCompile("^\\d+\\. \\[([^\\]]+)\\]\\(\\.\\./\\.\\./([^)]+)\\) `([^`]+)`(?: → `([^`]+)`)?: \\S")
)

// TestWalks compares the pages with the code. Each step names a function that exists. A step with an arrow has a name that occurs in that function,
// and the next step must describe it: the name is in the name or the text of the next function. A step without an arrow returns, so the next step is
// in one of the previous functions, or begins a part of the page that another event starts.
func TestWalks(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) < 3 {
		t.Fatalf("pages: %v, %v", pages, err)
	}
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			steps := read(t, page)
			if len(steps) < 10 {
				t.Fatalf("%d steps", len(steps))
			}
			check(t, steps)
		})
	}
}

func read(t *testing.T, page string) (steps []step) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	first := false
	for line := range strings.Lines(string(data)) {
		first = first || strings.HasPrefix(line, "## ")
		if !numbered.MatchString(line) {
			continue
		}
		m := stepLine.FindStringSubmatch(line)
		switch {
		case m == nil:
			t.Errorf("not a step: %s", line)
		case m[1] != m[2]:
			t.Errorf("%s links to %s", m[1], m[2])
		default:
			steps, first = append(steps, step{file: m[1], function: m[3], to: m[4], first: first}), false
		}
	}
	return steps
}

func check(t *testing.T, steps []step) {
	for i, s := range steps {
		text, ok := functionText(t, s)
		if !ok {
			t.Errorf("step %d: %s has no function %s", i+1, s.file, s.function)
			continue
		}
		if s.to != "" && !strings.Contains(text, s.to) {
			t.Errorf("step %d: %s does not use %s", i+1, s.function, s.to)
		}
		if i == 0 {
			continue
		}
		before := steps[i-1]
		switch {
		case before.to == "" && !s.first && !visitedBefore(steps[:i-1], s):
			t.Errorf("step %d: %s returns, and %s was not on the way", i, before.function, s.function)
		case before.to != "" && !visitedBefore(steps[:i-1], s) && !follows(s, text, before.to):
			t.Errorf("step %d: %s has nothing to do with %s of the step before", i+1, s.function, before.to)
		}
	}
	if last := steps[len(steps)-1]; last.to != "" {
		t.Errorf("the last step leads on to %s", last.to)
	}
}

func visitedBefore(steps []step, s step) bool {
	for _, b := range steps {
		if b.file == s.file && b.function == s.function {
			return true
		}
	}
	return false
}

func follows(s step, text, name string) bool {
	return strings.Contains(strings.ToLower(s.function+"\n"+text), strings.ToLower(name))
}

// functionText returns the source of a function, or of a method written as Type.method.
func functionText(t *testing.T, s step) (text string, ok bool) {
	path := filepath.Join(root, s.file)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return "", false
	}
	if filepath.Ext(path) != ".go" {
		m := regexp.MustCompile(`(?ms)^` + regexp.QuoteMeta(s.function) + ` \([^;]*?^\{.*?^}`).FindString(string(data))
		return m, m != ""
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, data, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, is := d.(*ast.FuncDecl); is && nameOf(f) == s.function {
			return string(data[files.Position(f.Pos()).Offset:files.Position(f.End()).Offset]), true
		}
	}
	return "", false
}

func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, is := receiver.(*ast.StarExpr); is {
		receiver = star.X
	}
	if id, is := receiver.(*ast.Ident); is {
		return id.Name + "." + f.Name.Name
	}
	return ""
}
