package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sources holds the measurements of single files.
type sources struct {
	functions  []int // lines of each function of the product
	files      int
	long       []string // files of more than 400 lines
	product    int      // lines
	tests      int
	widest     int // methods of the widest interface of the product
	widestName string
	most       int // fields of the largest struct of the product
	mostName   string
	sleeps     int // calls of time.Sleep in tests
	bareGo     int // go statements of the product
}

const maxFileLines = 400

// readSources parses all hand-written Go files that git tracks.
func readSources(ctx context.Context) (*sources, error) {
	out, err := exec.CommandContext(ctx, "git", "ls-files", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	s := &sources{}
	for name := range strings.Lines(string(out)) {
		if err := s.read(strings.TrimSpace(name)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *sources) read(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	lines := bytes.Count(text, []byte("\n"))
	s.files++
	if lines > maxFileLines {
		s.long = append(s.long, fmt.Sprintf("%s (%d)", name, lines))
	}
	if isTest(name) {
		s.tests += lines
	} else {
		s.product += lines
	}
	s.inspect(name, file, fset)
	return nil
}

// isTest reports whether a file belongs to the tests; packages that only tests import count as
// tests, too.
func isTest(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/")
}

func (s *sources) inspect(name string, file *ast.File, fset *token.FileSet) {
	test := isTest(name)
	where := func(t *ast.TypeSpec) string { return filepath.Dir(name) + "." + t.Name.Name }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if test && isSleep(n) {
				s.sleeps++
			}
		case *ast.GoStmt:
			if !test {
				s.bareGo++
			}
		case *ast.FuncDecl:
			if !test {
				s.functions = append(s.functions, fset.Position(n.End()).Line-fset.Position(n.Pos()).Line+1)
			}
		case *ast.TypeSpec:
			if test {
				break
			}
			switch t := n.Type.(type) {
			case *ast.InterfaceType:
				if m := t.Methods.NumFields(); m > s.widest {
					s.widest, s.widestName = m, where(n)
				}
			case *ast.StructType:
				if m := t.Fields.NumFields(); m > s.most {
					s.most, s.mostName = m, where(n)
				}
			}
		}
		return true
	})
}

func isSleep(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Sleep" {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == "time"
}

func (s *sources) rows() []row {
	return []row{
		{"lines of the product / of tests", fmt.Sprintf("%d / %d", s.product, s.tests), ""},
		{"functions median/p95/max lines", spread(s.functions), "max 80"},
		{fmt.Sprintf("files over %d lines", maxFileLines), fmt.Sprintf("%d of %d", len(s.long), s.files), "0"},
		{"widest interface", fmt.Sprintf("%d (%s)", s.widest, s.widestName), "8"},
		{"most fields of a struct", fmt.Sprintf("%d (%s)", s.most, s.mostName), "15"},
		{"sleeps in tests", fmt.Sprint(s.sleeps), "0 outside of a list"},
		{"go statements", fmt.Sprint(s.bareGo), "named jobs"},
	}
}
