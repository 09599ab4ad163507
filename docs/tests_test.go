package docs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testInSpan  = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)[`/]")
	testDefined = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
)

// TestNamedTestsExist checks that each test that a document names exists: the compiler does not see these names when a test is renamed.
func TestNamedTestsExist(t *testing.T) {
	there, err := definedTests(root)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for name, text := range documents(t) {
		named := namedTests(text)
		checked += len(named)
		for _, test := range missing(named, there) {
			t.Errorf("%s names %s, which does not exist", name, test)
		}
	}
	if checked < 150 {
		t.Errorf("only %d names of tests were found", checked)
	}
}

// TestNamedTestsNotices checks that a name without a test is found, also with a subtest, and that the start of a name with an ellipsis is not a name.
func TestNamedTestsNotices(t *testing.T) {
	there := map[string]bool{"TestA": true, "BenchmarkB": true}
	text := "see `TestA`, `TestA/tap`, `BenchmarkB`, all `TestOf…`, but not `TestGone`, `FuzzGone/seed`, `BenchmarkGone`"
	want := []string{"BenchmarkGone", "FuzzGone", "TestGone"}
	if got := missing(namedTests(text), there); !slices.Equal(got, want) {
		t.Errorf("%v are missing, want %v", got, want)
	}
}

// definedTests returns the names of the tests, fuzz tests and benchmarks below a folder.
func definedTests(dir string) (map[string]bool, error) {
	there := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range testDefined.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	return there, err
}

// namedTests returns the names of tests in the spans of a document, in order, each once.
func namedTests(text string) []string {
	named := map[string]bool{}
	for _, m := range testInSpan.FindAllStringSubmatch(text, -1) {
		named[m[1]] = true
	}
	return slices.Sorted(maps.Keys(named))
}

// missing returns the names that are not there.
func missing(named []string, there map[string]bool) []string {
	return slices.DeleteFunc(named, func(test string) bool { return there[test] })
}
