// Command manifests generates the chart's schema, its copy of the dashboard, and k8s/contiv-vpp.yaml from the chart. `make manifests` runs it.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"contiv.dev/vswitch/k8s"
)

func main() {
	if err := run("k8s"); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	base, err := os.ReadFile(filepath.Join(dir, "schema.base.json"))
	if err != nil {
		return err
	}
	schema, err := k8s.Schema(base)
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "contiv-vpp", "values.schema.json"), schema, 0o644); err != nil {
		return err
	}
	// A chart cannot contain files from outside of its directory.
	dashboard, err := os.ReadFile("docs/observability/contiv-dashboard.json")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "contiv-vpp", "files", "contiv-dashboard.json"), dashboard, 0o644); err != nil {
		return err
	}
	cmd := exec.Command("go", "run", ".", "../contiv-vpp")
	cmd.Dir, cmd.Stderr, cmd.Env = filepath.Join(dir, "render"), os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("render the chart: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "contiv-vpp.yaml"), text, 0o644)
}
