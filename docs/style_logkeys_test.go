package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// keyForm is the form of a key of a log attribute.
var keyForm = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

// keyRow is a row of the table "Keys of log attributes" in style.md: the right keys, their values, and the keys to replace.
var keyRow = regexp.MustCompile("(?m)^\\| (`[^|]+) \\| [^|]+ \\| (`[^|]+) \\|$")

// wrongKeys returns the keys that log attributes must not have, with the right keys.
func wrongKeys(t *testing.T) map[string]string {
	t.Helper()
	_, table, ok := strings.Cut(documents(t)["docs/style.md"], "## Keys of log attributes")
	if !ok {
		t.Fatal("docs/style.md has no section Keys of log attributes")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	wrong := map[string]string{}
	for _, m := range keyRow.FindAllStringSubmatch(table, -1) {
		for key := range strings.SplitSeq(m[2], ", ") {
			wrong[strings.Trim(key, "`")] = m[1]
		}
	}
	if len(wrong) < 20 {
		t.Fatalf("only %d wrong keys were found in docs/style.md", len(wrong))
	}
	return wrong
}

// firstKey is the index of the first key among the arguments of a method of slog.Logger.
var firstKey = map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "Log": 3, "With": 0}

// attribute matches the functions of slog that make one attribute.
var attribute = regexp.MustCompile(`^(?:Any|Bool|Duration|Float64|Group|Int|Int64|String|Time|Uint64)$`)

// logKeys returns the keys that a call gives to log attributes, as far as they are literals. A value may be an attribute itself, and takes
// the place of a key and a value then.
func logKeys(call *ast.CallExpr) (keys []*ast.BasicLit) {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	pkg, _ := fun.X.(*ast.Ident)
	if pkg != nil && pkg.Name == "slog" && attribute.MatchString(fun.Sel.Name) && len(call.Args) > 0 {
		if lit, ok := call.Args[0].(*ast.BasicLit); ok {
			keys = append(keys, lit)
		}
	}
	first, ok := firstKey[fun.Sel.Name]
	if !ok || pkg != nil && (pkg.Name == "http" || pkg.Name == "t" || pkg.Name == "tb") {
		return keys
	}
	for i := first; i < len(call.Args); i++ {
		if _, isAttribute := call.Args[i].(*ast.CallExpr); isAttribute {
			continue
		}
		if lit, ok := call.Args[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			keys = append(keys, lit)
		}
		i++ // the value
	}
	return keys
}

// TestLogKeys checks that log attributes have keys of one form, and the keys in style.md.
func TestLogKeys(t *testing.T) {
	wrong, checked := wrongKeys(t), 0
	for _, top := range []string{"cmd", "internal", "plugins", "dataplane", "k8s", "hack", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				for _, lit := range logKeys(call) {
					checked++
					key, _ := strconv.Unquote(lit.Value)
					if instead := wrong[key]; instead != "" {
						t.Errorf("%s: attribute %q: use %s", fset.Position(lit.Pos()), key, instead)
					} else if !keyForm.MatchString(key) {
						t.Errorf("%s: attribute %q: a key is a noun in camelCase", fset.Position(lit.Pos()), key)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if checked < 500 {
		t.Errorf("only %d keys were checked", checked)
	}
}
