package atomicfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrite checks the content and the mode of the file, and that its directory is created; no temporary file is left; a file that cannot be
// replaced keeps its content.
func TestWrite(t *testing.T) {
	for name, write := range map[string]func(string, []byte, os.FileMode) error{"synced": Write, "unsynced": WriteUnsynced} {
		t.Run(name, func(t *testing.T) { checkWrite(t, write) })
	}
}

func checkWrite(t *testing.T, write func(path string, data []byte, mode os.FileMode) error) {
	dir := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(dir, "file")
	for _, text := range []string{"one", "", "three\n"} {
		if err := write(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(got) != text || info.Mode().Perm() != 0o640 {
			t.Errorf("%q, %v, %v, %v; want %q", got, info, err, statErr, text)
		}
	}
	taken := filepath.Join(dir, "directory")
	if err := os.MkdirAll(filepath.Join(taken, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := write(taken, []byte("x"), 0o600); err == nil || !strings.Contains(err.Error(), taken) {
		t.Errorf("a directory of the name: %v, want an error that names it", err)
	}
	if err := write(filepath.Join(path, "below"), []byte("x"), 0o600); err == nil {
		t.Error("a file in place of the directory: no error")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left beside the files: %v, %v", entries, err)
	}
}
