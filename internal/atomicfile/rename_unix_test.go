//go:build !windows

package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestDirectoryThatCannotBeSynced: it is no error if the file system cannot sync directories. All other errors of the sync are returned.
func TestDirectoryThatCannotBeSynced(t *testing.T) {
	for cause, ignored := range map[error]bool{syscall.EINVAL: true, syscall.ENOTSUP: true, syscall.EIO: false, syscall.ENOSPC: false} {
		path := filepath.Join(t.TempDir(), "file")
		err := write(path, []byte("new"), 0o600, (*os.File).Sync, func(from, to string) error {
			return renameAndSync(from, to, func(dir *os.File) error {
				return &os.PathError{Op: "sync", Path: dir.Name(), Err: cause}
			})
		})
		if ignored && err != nil || !ignored && !errors.Is(err, cause) {
			t.Errorf("%v: error %v, ignored: want %t", cause, err, ignored)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "new" {
			t.Errorf("%v: the file has %q, %v", cause, text, err)
		}
	}
}
