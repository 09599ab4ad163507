package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// registration is a call of RegisterHTTPHandler.
type registration struct {
	method string
	dir    string // of the package of the handler, which reads the parameters
}

// registrations returns all REST paths that the product's code registers.
func registrations(t *testing.T) map[string]registration {
	t.Helper()
	consts := map[string]map[string]string{} // by folder of the package, and by name
	files := map[string]*ast.File{}
	for _, top := range []string{"cmd/contiv-agent", "cmd/internal", "internal", "plugins", "dataplane"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			files[path] = f
			addConstants(consts, filepath.Dir(path), f)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]registration{}
	for path, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || sel.Sel.Name != "RegisterHTTPHandler" {
				return true
			}
			where := constant(t, consts, filepath.Dir(path), call.Args[0])
			r := registration{method: "get", dir: filepath.Dir(path)}
			if len(call.Args) == 3 {
				r.method = strings.ToLower(constant(t, consts, filepath.Dir(path), call.Args[2]))
			}
			out[where] = r
			return true
		})
	}
	return out
}

// addConstants collects the string constants of a file.
func addConstants(consts map[string]map[string]string, dir string, f *ast.File) {
	if consts[dir] == nil {
		consts[dir] = map[string]string{}
	}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, name := range v.Names {
				if i >= len(v.Values) {
					continue
				}
				if lit, ok := v.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					consts[dir][name.Name], _ = strconv.Unquote(lit.Value)
				}
			}
		}
	}
}

// constant returns the text of an argument: a literal, a constant of the package, or one of another package.
func constant(t *testing.T, consts map[string]map[string]string, dir string, e ast.Expr) string {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.Ident:
		if text, ok := consts[dir][e.Name]; ok {
			return text
		}
	case *ast.SelectorExpr:
		pkg := e.X.(*ast.Ident).Name
		if pkg == "http" {
			return strings.TrimPrefix(e.Sel.Name, "Method")
		}
		for d, names := range consts {
			if text, ok := names[e.Sel.Name]; ok && filepath.Base(d) == pkg {
				return text
			}
		}
	}
	t.Fatalf("%s: the path or method of a REST handler is not a constant: %v", dir, e)
	return ""
}

// operation is an operation of openapi.yaml.
type operation struct {
	Summary    string `yaml:"summary"`
	Parameters []struct {
		Name string `yaml:"name"`
	} `yaml:"parameters"`
}

// TestOpenAPI checks that openapi.yaml and rest.md have every path with its method, and no others; the parameters must occur in the
// handler's package.
func TestOpenAPI(t *testing.T) {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Paths map[string]map[string]operation `yaml:"paths"`
	}
	if err := yaml.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	code := registrations(t)
	if len(code) < 25 {
		t.Fatalf("only %d REST paths were found in the code", len(code))
	}
	page := documents(t)["docs/rest.md"]
	for path, r := range code {
		op, ok := api.Paths[path][r.method]
		if !ok || len(api.Paths[path]) != 1 {
			t.Errorf("%s %s is served (%s), and openapi.yaml has %v for it", r.method, path, r.dir, slices.Collect(maps.Keys(api.Paths[path])))
		}
		if op.Summary == "" || !strings.Contains(page, "| `"+path+"` | "+strings.ToUpper(r.method)+" |") {
			t.Errorf("%s %s: no summary in openapi.yaml, or not in docs/rest.md", r.method, path)
		}
		source := sources(t, r.dir)
		for _, p := range op.Parameters {
			if !strings.Contains(source, strconv.Quote(p.Name)) {
				t.Errorf("%s: openapi.yaml has the parameter %s, of which %s knows nothing", path, p.Name, r.dir)
			}
		}
	}
	for path := range api.Paths {
		if _, ok := code[path]; !ok {
			t.Errorf("openapi.yaml has %s, which no code registers", path)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(/[^`]*)` \\| (GET|POST)").FindAllStringSubmatch(page, -1) {
		if _, ok := code[m[1]]; !ok {
			t.Errorf("docs/rest.md has %s, which no code registers", m[1])
		}
	}
}

// sources returns the text of a package.
func sources(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
