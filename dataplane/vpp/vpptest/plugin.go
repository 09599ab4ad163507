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

// errNoPlugin reports that our own plugin cannot be built on this machine.
var errNoPlugin = errors.New("the contiv plugin cannot be built (CONTIV_VPP_PLUGIN names a built one)")

// Plugin returns the path of our own plugin: $CONTIV_VPP_PLUGIN if set, else a plugin built for the VPP that Find returns, from the
// repository that contains the working directory. A built plugin is cached under the hash of its sources. sanitize has the meaning of
// SANITIZE in the plugin's Makefile.
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
	// A build uses both processors for a minute, and many tests need the plugin at the same time.
	unlock, err := filelock.Wait(ctx, filepath.Dir(path)+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil // another test has built it in the meantime
	}
	return path, build(ctx, source, "OUT="+path, "VPP_PREFIX="+prefix, "SANITIZE="+sanitize)
}

// build builds the plugin. Without a compiler or VPP's headers it returns errNoPlugin. Sources that do not compile cause another
// error, so that tests fail instead of being skipped.
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

// pluginSource returns the path of dataplane/vpp/plugin in the repository that contains the working directory.
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

// pluginSum returns a hash of all files that the build reads and of more, which holds the other inputs of the build.
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

// sanitizers returns the runtime libraries that must be loaded before VPP, because VPP itself is built without sanitizers.
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
