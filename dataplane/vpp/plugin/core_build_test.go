package plugin_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// coreFlags are the compiler flags for the core and its tests.
var coreFlags = []string{"-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-sign-conversion", "-fno-omit-frame-pointer",
	"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-pthread"}

// keptFor is the time for which a program is cached after its last run.
const keptFor = 5 * 24 * time.Hour

// coreBuild compiles the programs of core/test. With sanitizers, compilation takes four times as long as running them, so it caches each
// program under the hash of its sources, compiler and flags.
type coreBuild struct {
	gcc     string
	version string   // version of gcc
	kept    string   // the cache directory of the programs
	objects string   // the directory of the object files of the core
	made    []string // the object files that exist
}

// newCoreBuild returns a coreBuild. It removes cached programs that no test has run for the time keptFor.
func newCoreBuild(t *testing.T, gcc string) *coreBuild {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	b := &coreBuild{gcc: gcc, version: run(t, gcc, "--version"), kept: filepath.Join(base, "contiv-vpptest", "core"), objects: t.TempDir()}
	if err := os.MkdirAll(b.kept, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range files(t, b.kept+"/*") {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > keptFor {
			_ = os.RemoveAll(path) // another test may have removed it
		}
	}
	return b
}

// program returns the path of the program with a name in core/test, and compiles it if necessary.
func (b *coreBuild) program(t *testing.T, name string) string {
	t.Helper()
	source := filepath.Join("core/test", name+".c")
	path := filepath.Join(b.kept, name+"-"+b.sum(t, source))
	now := time.Now()
	if os.Chtimes(path, now, now) == nil {
		return path
	}
	work, err := os.MkdirTemp(b.kept, "build-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	made := filepath.Join(work, name)
	run(t, b.gcc, slices.Concat(coreFlags, []string{"-o", made, source}, b.core(t))...)
	if err := os.Rename(made, path); err != nil { // replaces the same program that a concurrent test may have built
		t.Fatal(err)
	}
	return path
}

// core compiles the core once and returns its object files.
func (b *coreBuild) core(t *testing.T) []string {
	t.Helper()
	if b.made != nil {
		return b.made
	}
	for _, source := range coreSources(t) {
		object := filepath.Join(b.objects, strings.TrimSuffix(filepath.Base(source), ".c")+".o")
		run(t, b.gcc, slices.Concat(coreFlags, []string{"-c", "-o", object, source})...)
		b.made = append(b.made, object)
	}
	return b.made
}

// coreSources returns the sources of the core, and the file of the shell that needs no VPP headers.
func coreSources(t *testing.T) []string {
	t.Helper()
	return append(files(t, "core/*.c"), "shell/frag.c")
}

// sum returns a hash of all inputs of a program.
func (b *coreBuild) sum(t *testing.T, source string) string {
	t.Helper()
	sources := coreSources(t)
	if len(sources) < 2 {
		t.Fatal("there are no sources of the core")
	}
	h := sha256.New()
	fmt.Fprintln(h, b.gcc, b.version, coreFlags)
	for _, path := range slices.Concat(sources, files(t, "core/*.h"), files(t, "shell/frag.h"), files(t, "core/test/*.h"), []string{source}) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(h, "%s %d\n%s", path, len(data), data)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:12])
}

// files returns the paths that match a pattern.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
