//go:build !windows

package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// rename returns when the directory with the new name is on the disk.
func rename(from, to string) error {
	return renameAndSync(from, to, (*os.File).Sync)
}

func renameAndSync(from, to string, sync func(*os.File) error) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	err = sync(dir)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // some file systems cannot sync a directory; the file is replaced, and its content is on the disk
	}
	return errors.Join(err, dir.Close())
}
