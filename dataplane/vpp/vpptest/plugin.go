package vpptest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/filelock"
)

// errNoPlugin: our own plugin cannot be built here.
var errNoPlugin = errors.New("the contiv plugin cannot be built (CONTIV_VPP_PLUGIN names a built one)")

// Plugin is the path of our own plugin: $CONTIV_VPP_PLUGIN, else built from the repository that the present directory is in, for
// the VPP that Find finds. What was built once is kept, by the content of its sources. sanitize is as in the plugin's Makefile.
func Plugin(ctx context.Context, sanitize string) (string, error) {
	if path := os.Getenv("CONTIV_VPP_PLUGIN"); path != "" {
		if filepath.Base(path) != "contiv_plugin.so" {
			return "", fmt.Errorf("CONTIV_VPP_PLUGIN=%s: the file has to have the name contiv_plugin.so, by which VPP loads it", path)
		}
		_, err := os.Stat(path)
		return path, err
	}
	source, err := pluginSource()
	if err != nil {
		return "", err
	}
	bin, ok := Find()
	if !ok {
		return "", ErrNoVPP
	}
	if bin, err = filepath.EvalSymlinks(bin); err != nil {
		return "", err
	}
	prefix := filepath.Dir(filepath.Dir(bin))
	sum, err := pluginSum(source, prefix+sanitize)
	if err != nil {
		return "", fmt.Errorf("sources of the contiv plugin: %w", err)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	path := filepath.Join(base, "contiv-vpptest", "plugin-"+sum, "contiv_plugin.so")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Dir(path)), 0o755); err != nil {
		return "", err
	}
	// A build takes both processors for a minute, and many tests need the plugin at once.
	unlock, err := filelock.Wait(ctx, filepath.Dir(path)+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil // another test has built it meanwhile
	}
	return path, build(ctx, source, "OUT="+path, "VPP_PREFIX="+prefix, "SANITIZE="+sanitize)
}

// build makes the plugin. Without compiler or headers there can be none, and the error is errNoPlugin. Sources that do not compile are
// another error, so that no test is skipped for them.
func build(ctx context.Context, source string, variables ...string) error {
	args := append([]string{"-s", "-C", source}, variables...)
	if out, err := exec.CommandContext(ctx, "make", append(args, "vpp")...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", errNoPlugin, strings.TrimSpace(string(out)))
	}
	if out, err := exec.CommandContext(ctx, "make", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build the contiv plugin: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// pluginSource is dataplane/vpp/plugin of the repository.
func pluginSource() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		source := filepath.Join(dir, "dataplane", "vpp", "plugin")
		if _, err := os.Stat(filepath.Join(source, "Makefile")); err == nil {
			return source, nil
		}
	}
	return "", fmt.Errorf("%w: no sources above the present directory", errNoPlugin)
}

// pluginSum is a sum of all that the build reads, and of what else makes a difference.
func pluginSum(source, more string) (string, error) {
	h := sha256.New()
	var files []string
	err := filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err == nil && !d.IsDir() && (ext == ".c" || ext == ".h" || d.Name() == "Makefile") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	slices.Sort(files)
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(path), len(data), data)
	}
	fmt.Fprint(h, more)
	return fmt.Sprintf("%x", h.Sum(nil)[:12]), nil
}

// sanitizers are the runtime libraries that have to be there before VPP: VPP itself is built without.
func sanitizers(ctx context.Context, names string) ([]string, error) {
	var libs []string
	for name := range strings.SplitSeq(names, ",") {
		lib := map[string]string{"address": "libasan.so", "undefined": "libubsan.so"}[name]
		out, err := exec.CommandContext(ctx, "gcc", "-print-file-name="+lib).Output()
		if err != nil || lib == "" {
			return nil, fmt.Errorf("%w: no run-time library of sanitizer %q", errNoPlugin, name)
		}
		libs = append(libs, strings.TrimSpace(string(out)))
	}
	return libs, nil
}
