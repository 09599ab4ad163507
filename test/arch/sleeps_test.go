package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSleeps limits sleeps in tests: a test that sleeps depends on the speed of the machine, or waits longer than necessary. Await a
// condition, or advance the time in a bubble of testing/synctest, by VPP's "set clock adjust", or by a clock of the test. testdata/sleeps.txt
// has the remaining sleeps, by file; the numbers may only become smaller.
func TestSleeps(t *testing.T) {
	allowed := allowedSleeps(t)
	found := sleepsOfTests(t)
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if n := found[path]; n > allowed[path] {
			t.Errorf("%s has %d calls of time.Sleep outside of synctest.Test, and %d are allowed: await a condition instead", path, n, allowed[path])
		}
	}
	for path, n := range allowed {
		if n > found[path] {
			t.Logf("%s has %d calls of time.Sleep: lower its number in testdata/sleeps.txt, which is %d", path, found[path], n)
		}
	}
}

func allowedSleeps(t *testing.T) map[string]int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "sleeps.txt"))
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]int{}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var n int
		var path string
		if _, err := fmt.Sscan(line, &n, &path); err != nil {
			t.Fatalf("testdata/sleeps.txt: %q: %v", line, err)
		}
		allowed[path] = n
	}
	return allowed
}

// sleepsOfTests counts calls of time.Sleep in tests, and in packages that only tests use, by file. Calls inside of synctest.Test do not count,
// because time passes at once there.
func sleepsOfTests(t *testing.T) map[string]int {
	t.Helper()
	root, found := filepath.Join("..", ".."), map[string]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if !strings.HasSuffix(rel, ".go") || !strings.HasSuffix(rel, "_test.go") && !strings.HasPrefix(rel, "test/") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if ok && isCall(call, "time", "Sleep") {
				found[rel]++
			}
			return !ok || !isCall(call, "synctest", "Test")
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func isCall(call *ast.CallExpr, pkg, name string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}
