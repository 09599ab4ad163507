package connectivity

import (
	"errors"
	"io/fs"

	"contiv.dev/vswitch/internal/nsdo"
)

func makeNamespace(path string) error { return nsdo.Create(path) }

// removeNamespace returns nil if there is no namespace at path.
func removeNamespace(path string) error {
	if err := nsdo.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
