package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestArchitectureListsHandlers compares the plugins in the diagram of docs/architecture.md with the list in wire.go, in order.
func TestArchitectureListsHandlers(t *testing.T) {
	want := strings.Join(handlers(t), " · ")
	for line := range strings.Lines(documents(t)["docs/architecture.md"]) {
		if strings.Contains(line, " · ") && strings.TrimSpace(line) == want {
			return
		}
	}
	t.Errorf("the diagram of docs/architecture.md must have a line with the plugins of cmd/contiv-agent/wire.go: %s", want)
}

// handlers returns the names of the packages of the plugins that wire.go lists in the method handlers.
func handlers(t *testing.T) (packages []string) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "cmd", "contiv-agent", "wire.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	packageOf := map[string]string{} // field of agent -> package of its type
	ast.Inspect(file, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok {
			return true
		}
		star, ok := field.Type.(*ast.StarExpr)
		if !ok {
			return true
		}
		if sel, ok := star.X.(*ast.SelectorExpr); ok {
			for _, name := range field.Names {
				packageOf[name.Name] = sel.X.(*ast.Ident).Name
			}
		}
		return true
	})
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "handlers" {
			ast.Inspect(f.Body, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok || packageOf[sel.Sel.Name] == "" {
					return true
				}
				if p := packageOf[sel.Sel.Name]; len(packages) == 0 || packages[len(packages)-1] != p { // if a.path != nil { … a.path }
					packages = append(packages, p)
				}
				return true
			})
		}
	}
	if len(packages) < 8 {
		t.Fatalf("wire.go lists only %d handlers: %v", len(packages), packages)
	}
	return packages
}
