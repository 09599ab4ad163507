package vpptest

import (
	"context"
	"crypto/sha256"
	_ "embed" // for the shim's source
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed vhostshim/vhostshim.c
var vhostshimSource string

// Vhostshim is the path of the library that stands in for /dev/vhost-net, compiled on first use (gcc).
func Vhostshim(ctx context.Context) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "contiv-vpptest")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("vhostshim: %w", err)
	}
	lib := filepath.Join(dir, fmt.Sprintf("vhostshim-%x.so", sha256.Sum256([]byte(vhostshimSource))))
	if _, err := os.Stat(lib); err == nil {
		return lib, nil
	}
	work, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", fmt.Errorf("vhostshim: %w", err)
	}
	defer os.RemoveAll(work)
	source, built := filepath.Join(work, "vhostshim.c"), filepath.Join(work, "vhostshim.so")
	if err := os.WriteFile(source, []byte(vhostshimSource), 0o644); err != nil {
		return "", fmt.Errorf("vhostshim: %w", err)
	}
	out, err := exec.CommandContext(ctx, "gcc", "-O2", "-shared", "-fPIC", "-o", built, source, "-ldl", "-lpthread").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("vhostshim: gcc: %w: %s", err, out)
	}
	if err := os.Rename(built, lib); err != nil { // whoever is first wins; the content is the same
		return "", fmt.Errorf("vhostshim: %w", err)
	}
	return lib, nil
}
