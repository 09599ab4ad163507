package atomicfile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLines: the stored lines are loaded again, also if the directory is missing at first; a file that cannot be written is an error.
func TestLines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	f := Lines(filepath.Join(dir, "ids"))
	for _, ids := range [][]string{nil, {"A", "B"}, {"C"}, nil} {
		if got, err := f.Load(); err != nil || len(ids) == 0 && len(got) > 1 {
			t.Errorf("%v, %v", got, err)
		}
		if err := f.Store(ids); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Load(); err != nil || !slices.Equal(got, ids) {
			t.Errorf("%v, %v, want %v", got, err, ids)
		}
	}
	for _, err := range []error{os.Remove(string(f)), os.MkdirAll(filepath.Join(string(f), "sub"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Store([]string{"D"}); err == nil {
		t.Error("the file cannot be written, and there is no error")
	}
	if ids, err := f.Load(); err == nil {
		t.Errorf("a directory is read as %v", ids)
	}
}
