package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Write replaces a file, and creates its directory if it is missing. When it returns, the content is on the disk. The error describes what could not
// be written; the file then has its old content or, if only the directory could not be written, the new content, which a loss of power may undo.
func Write(path string, data []byte, mode os.FileMode) error {
	return write(path, data, mode, (*os.File).Sync, rename)
}

// WriteUnsynced is Write for files that must survive the program but not a loss of power, such as those below /run: it does not wait for the disk.
func WriteUnsynced(path string, data []byte, mode os.FileMode) error {
	return write(path, data, mode, func(*os.File) error { return nil }, os.Rename)
}

// write writes a temporary file in the same directory and renames it. The temporary name begins with a dot and ends in .tmp, so that no other program
// that reads the directory uses the file.
func write(path string, data []byte, mode os.FileMode, sync func(*os.File) error, rename func(from, to string) error) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			if gone := os.Remove(f.Name()); gone != nil && !errors.Is(gone, os.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), sync(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return rename(f.Name(), path)
}
