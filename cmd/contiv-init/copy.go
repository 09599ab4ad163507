package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// copyCommand copies this program for a container of another image, which has no shell to copy it itself.
func copyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "copy DIRECTORY",
		Short: "Copy this program into a directory",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := copySelf(filepath.Join(args[0], "contiv-init")); err != nil {
				return fmt.Errorf("copy to %s: %w", args[0], err)
			}
			return nil
		},
	}
}

func copySelf(to string) error {
	self, err := openSelf()
	if err != nil {
		return err
	}
	defer self.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, self)
	return errors.Join(err, out.Close())
}
