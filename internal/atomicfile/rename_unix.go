//go:build !windows

package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// rename returns when the directory with the new name is on the disk.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
