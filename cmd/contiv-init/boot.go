package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bootFile is the file in a run directory with the ID of the boot that created the directory's files.
const bootFile = "boot"

// emptyAfterReboot removes the content of a run directory that survives reboots, unless it is of this boot: the pods of a previous boot do not
// exist any more.
func emptyAfterReboot(dir, boot string) error {
	if strings.TrimSpace(boot) == "" {
		return fmt.Errorf("run directory %s: the boot ID of the machine is not available; empty the directory by hand after a reboot", dir)
	}
	path := filepath.Join(dir, bootFile)
	last, err := os.ReadFile(path)
	if err == nil && string(last) == boot {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	if err := errors.Join(errs...); err != nil { // the next start tries again
		return fmt.Errorf("run directory %s, of an earlier boot: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(boot), 0o600)
}
