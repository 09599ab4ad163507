// Command docs writes docs/configuration.md and docs/packages.md. `make docs` runs it from the root of the repository.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"contiv.dev/vswitch/hack/docs/configref"
	"contiv.dev/vswitch/hack/docs/pkgindex"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "docs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", dir+"/", "./cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	s := configref.Sources{Help: map[string]string{}}
	for _, command := range configref.Programs() {
		words := strings.Fields(command)
		out, err := exec.Command(filepath.Join(dir, words[0]), append(words[1:], "--help")...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s --help: %w\n%s", command, err, out)
		}
		s.Help[command] = string(out)
	}
	if s.Values, err = os.ReadFile("k8s/contiv-vpp/values.yaml"); err != nil {
		return err
	}
	if s.Schema, err = os.ReadFile("k8s/contiv-vpp/values.schema.json"); err != nil {
		return err
	}
	page, err := configref.Page(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile("docs/configuration.md", page, 0o644); err != nil {
		return err
	}
	if page, err = pkgindex.Page("."); err != nil {
		return err
	}
	return os.WriteFile("docs/packages.md", page, 0o644)
}
