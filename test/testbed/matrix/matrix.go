package matrix

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

// Variable is the environment variable that, with the value "all", makes tests run all combinations.
const Variable = "CONTIV_TEST"

// All reports whether all combinations are to run.
func All() bool { return os.Getenv(Variable) == "all" }

// Only skips a subtest that is not named, unless all combinations are to run or the command line selects the subtest by its name. Without
// names it skips any test, unless the command line selects the test or a test that contains it.
func Only(t *testing.T, names ...string) {
	t.Helper()
	if skip(t.Name(), flag.Lookup("test.run").Value.String(), All(), names) {
		t.Skipf("in make test-all only; %s=all runs it", Variable)
	}
}

func skip(test, run string, all bool, names []string) bool {
	path := strings.Split(test, "/")
	last := path[len(path)-1]
	if all || slices.Contains(names, last) {
		return false
	}
	requested := strings.FieldsFunc(run, func(r rune) bool { return strings.ContainsRune("/|^$()", r) })
	if len(names) > 0 {
		path = path[len(path)-1:]
	}
	return !slices.ContainsFunc(path, func(name string) bool { return slices.Contains(requested, name) })
}
