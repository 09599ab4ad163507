package atomicfile

import (
	"os"

	"golang.org/x/sys/windows"
)

// rename returns when the new name is on the disk. Windows cannot sync a directory: MOVEFILE_WRITE_THROUGH has the same effect.
func rename(from, to string) error {
	old, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	if err := windows.MoveFileEx(old, name, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
