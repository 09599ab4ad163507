package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inNames are words that names in Go code must not have: machines are not persons, and there are standard terms.
var inNames = []string{
	"who", "whom", "whose", "whoever", "nobody", "nobodys", "somebody", "anybody", "everybody", "everyone", "anew", "afresh", "patience", "patient",
	"hinder", "acquaint", "remedy", "remedies", "stranger", "strangers", "teller", "tellers", "toy", "toys", "trash", "mover", "vandal", "vandalise",
	"told", "tell", "tells", "squatter", "liar", "newcomer", "newcomers", "foretold",
	"forget", "remember", "nudge", "hurry", "duel", "servant", "retell",
}

// wordBoundary matches the boundaries between the words of a name: in camelCase, and at underscores.
var wordBoundary = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])|_`)

// wordsOf returns the words of a name, in lower case.
func wordsOf(name string) []string {
	for range 2 { // matches do not overlap: "HNSOfX" has two boundaries with a common letter
		name = wordBoundary.ReplaceAllString(name, "$1$3 $2$4")
	}
	return strings.Fields(strings.ToLower(name))
}

// declaredNames returns the names that a file declares: functions, types, constants, variables, fields,
// parameters.
func declaredNames(f *ast.File) (names []string) {
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			names = append(names, id.Name)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.Field:
			add(n.Names...)
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					add(id)
				}
			}
		}
		return true
	})
	return names
}

// TestPlainNames checks that no name that Go code declares has one of these words.
func TestPlainNames(t *testing.T) {
	if got := wordsOf("TestHNSOfNobody_else2X"); !slices.Equal(got, []string{"test", "hns", "of", "nobody", "else2", "x"}) {
		t.Fatalf("the words of a name are %q", got)
	}
	checked := 0
	for _, top := range []string{"cmd", "internal", "plugins", "dataplane", "k8s", "hack", "test", "examples", "docs", "vagrant"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, ".pb.go") || strings.HasSuffix(path, ".ba.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, name := range declaredNames(f) {
				checked++
				for _, word := range wordsOf(name) {
					if slices.Contains(inNames, word) {
						t.Errorf("%s: %s has a word that names must not have; house rule: docs/style.md, rule 3", path, name)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if checked < 10000 {
		t.Errorf("only %d names were checked", checked)
	}
}
