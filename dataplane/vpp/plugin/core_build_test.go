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

// coreFlags are the flags of the compiler for the core and its tests.
var coreFlags = []string{"-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-sign-conversion", "-fno-omit-frame-pointer",
	"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-pthread"}

// keptFor is how long a program is kept after its last run.
const keptFor = 5 * 24 * time.Hour

// coreBuild compiles the programs of core/test. With sanitizers that takes four times as long as to run them, so it keeps each program by the
// content of what it is made of.
type coreBuild struct {
	gcc     string
	version string   // of gcc
	kept    string   // the directory of the programs
	objects string   // the directory of the objects of the core
	made    []string // which objects there are
}

// newCoreBuild removes the programs that no test ran for a while.
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

// program is the path of the program that has a name in core/test.
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
	if err := os.Rename(made, path); err != nil { // over that of a test beside this one, which has the same content
		t.Fatal(err)
	}
	return path
}

// core compiles the core, once.
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

// coreSources are those of the core, and the file of the shell that has no VPP headers either.
func coreSources(t *testing.T) []string {
	t.Helper()
	return append(files(t, "core/*.c"), "shell/frag.c")
}

// sum is a sum of all that makes a difference to a program.
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

// files are the paths that match.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
