package gobuild

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"contiv.dev/vswitch/internal/filelock"
)

// Commands builds commands into dir. Binaries that are up to date are copied from a folder that all tests of the repository
// share: linking the agent takes seconds, and many packages test it.
func Commands(dir string, packages ...string) error { return Build{}.Commands(dir, packages...) }

// Build has the parameters of a build. The zero value builds commands of the module of the current directory.
type Build struct {
	Module  string // the directory of another module
	LDFlags string // additional flags of the linker
}

// Commands is like the function Commands.
func (b Build) Commands(dir string, packages ...string) error {
	shared, err := b.sharedBinaries()
	if err != nil {
		return err
	}
	unlock, err := filelock.Wait(context.Background(), filepath.Join(shared, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	cmd := exec.Command("go", append([]string{"build", "-trimpath", "-ldflags=-s -w " + b.LDFlags, "-o", shared + "/"}, packages...)...)
	cmd.Dir, cmd.Env = b.Module, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	for _, pkg := range packages { // binaries are copied: a later build must not change what a test runs
		name := filepath.Base(pkg)
		if err := copyBinary(filepath.Join(dir, name), filepath.Join(shared, name)); err != nil {
			return err
		}
	}
	return nil
}

// sharedBinaries returns the folder into which the build writes.
func (b Build) sharedBinaries() (string, error) {
	cmd := exec.Command("go", "env", "GOMOD")
	cmd.Dir = b.Module
	mod, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(string(mod)) + b.LDFlags))
	dir := filepath.Join(base, "contiv-vpptest", fmt.Sprintf("bin-%x", sum[:6]))
	return dir, os.MkdirAll(dir, 0o755)
}

func copyBinary(to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, source)
	return errors.Join(err, file.Close())
}
