package vpptest

import (
	"context"
	"crypto/sha256"
	_ "embed" // for the shim's source
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"contiv.dev/vswitch/dataplane/vpp/epollshim"
	"contiv.dev/vswitch/dataplane/vpp/watchdogshim"
)

//go:embed vhostshim/vhostshim.c
var vhostshimSource string

//go:embed cpushim/cpushim.c
var cpushimSource string

// preloads returns the libraries to preload into VPP, in the format of LD_PRELOAD.
func (v *VPP) preloads(ctx context.Context) (string, error) {
	var libs []string
	if v.opts.Sanitize != "" {
		all, err := sanitizers(ctx, v.opts.Sanitize)
		if err != nil {
			return "", err
		}
		libs = append(libs, all...) // sanitizers must come first
	}
	if v.opts.Vhostshim {
		lib, err := Vhostshim(ctx)
		if err != nil {
			return "", err
		}
		libs = append(libs, lib)
	}
	if v.opts.Workers >= runtime.NumCPU() { // the main thread takes a processor, too
		lib, err := compile(ctx, "cpushim", cpushimSource)
		if err != nil {
			return "", err
		}
		libs = append(libs, lib)
	}
	if !v.opts.Stock {
		for _, shim := range []struct{ name, source string }{
			{"epollshim", epollshim.Source}, {"watchdogshim", watchdogshim.Source},
		} {
			lib, err := compile(ctx, shim.name, shim.source)
			if err != nil && !errors.Is(err, exec.ErrNotFound) {
				return "", err
			}
			if err == nil { // without a compiler VPP runs unmodified
				libs = append(libs, lib)
			}
		}
	}
	return strings.Join(libs, ":"), nil
}

// Vhostshim returns the path of the library that replaces /dev/vhost-net. The library is compiled on first use (gcc).
func Vhostshim(ctx context.Context) (string, error) {
	return compile(ctx, "vhostshim", vhostshimSource)
}

// compile returns the path of the library compiled from a C source. The library is cached.
func compile(ctx context.Context, name, content string) (string, error) {
	wrap := func(err error) error { return fmt.Errorf("%s: %w", name, err) }
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "contiv-vpptest")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", wrap(err)
	}
	lib := filepath.Join(dir, fmt.Sprintf("%s-%x.so", name, sha256.Sum256([]byte(content))))
	if _, err := os.Stat(lib); err == nil {
		return lib, nil
	}
	work, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", wrap(err)
	}
	defer os.RemoveAll(work)
	source, built := filepath.Join(work, name+".c"), filepath.Join(work, name+".so")
	if err := os.WriteFile(source, []byte(content), 0o644); err != nil {
		return "", wrap(err)
	}
	out, err := exec.CommandContext(ctx, "gcc", "-O2", "-shared", "-fPIC", "-o", built, source, "-ldl", "-lpthread").CombinedOutput()
	if err != nil {
		return "", wrap(fmt.Errorf("gcc: %w: %s", err, out))
	}
	if err := os.Rename(built, lib); err != nil { // the first builder or the last one: the content is the same
		return "", wrap(err)
	}
	return lib, nil
}
