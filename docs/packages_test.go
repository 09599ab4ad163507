package docs

import (
	"bytes"
	"testing"

	"contiv.dev/vswitch/hack/docs/pkgindex"
)

// TestPackageIndex checks that docs/packages.md is the output of `make docs`.
func TestPackageIndex(t *testing.T) {
	want, err := pkgindex.Page(root)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(want, []byte("\n| `")); n < 150 {
		t.Errorf("the index has only %d packages", n)
	}
	if documents(t)["docs/packages.md"] != string(want) {
		t.Error("docs/packages.md is out of date: run make docs")
	}
}
