package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/imagepack"
)

// toolsOf returns the firewall tools for an architecture: this machine's own, or Debian's packages for another architecture.
func toolsOf(arch, cache string) ([]imagepack.File, error) {
	if arch == runtime.GOARCH {
		return firewallTools()
	}
	root, err := debianRoot(arch, cache)
	if err != nil {
		return nil, fmt.Errorf("nft and iptables for %s: %w", arch, err)
	}
	programs, links, err := toolPaths(root)
	if err != nil {
		return nil, err
	}
	files, err := closure(root, programs)
	return append(files, links...), err
}

// debianRoot unpacks nftables and iptables with all their dependencies. apt keeps its data of the other architecture in cache, and the
// machine's own packages stay as they are.
func debianRoot(arch, cache string) (string, error) {
	state, err := filepath.Abs(filepath.Join(cache, "debian-"+arch))
	if err != nil {
		return "", err
	}
	archives, root := filepath.Join(state, "cache", "archives"), filepath.Join(state, "root")
	if exists(filepath.Join(root, "complete")) {
		return root, nil
	}
	for _, dir := range []string{filepath.Join(state, "lists", "partial"), filepath.Join(archives, "partial"), root} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(state, "status"), nil, 0o644); err != nil {
		return "", err
	}
	options := []string{"-o", "Dir::State=" + state, "-o", "Dir::State::lists=" + state + "/lists", "-o", "Dir::State::status=" + state + "/status",
		"-o", "Dir::Cache=" + state + "/cache", "-o", "APT::Architecture=" + arch, "-o", "APT::Architectures::=" + arch,
		"-o", "APT::Sandbox::User=root"}
	for _, args := range [][]string{{"update"}, {"install", "--no-install-recommends", "--download-only", "-y", "nftables", "iptables"}} {
		if out, err := exec.Command("apt-get", append(slices.Clone(options), args...)...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("apt-get %s: %w\n%s", args[0], err, out)
		}
	}
	packages, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return "", err
	}
	for _, p := range packages {
		if out, err := exec.Command("dpkg-deb", "-x", p, root).CombinedOutput(); err != nil {
			return "", fmt.Errorf("dpkg-deb -x %s: %w\n%s", p, err, out)
		}
	}
	return root, os.WriteFile(filepath.Join(root, "complete"), nil, 0o644)
}

// closure returns files below root with all libraries that they need, at the paths where the loader finds them.
func closure(root string, programs []string) ([]imagepack.File, error) {
	dirs, err := filepath.Glob(filepath.Join(root, "lib", "*-linux-gnu*"))
	if err != nil {
		return nil, err
	}
	more, err := filepath.Glob(filepath.Join(root, "usr", "lib", "*-linux-gnu*"))
	if err != nil {
		return nil, err
	}
	dirs = append(append(dirs, more...), filepath.Join(root, "lib"))
	seen := map[string]bool{}
	var files []imagepack.File
	for todo := slices.Clone(programs); len(todo) > 0; {
		path := todo[0]
		todo = todo[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		files = append(files, imagepack.File{Path: strings.TrimPrefix(path, strings.TrimSuffix(root, "/")+"/"), Source: path})
		needs, err := neededBy(path)
		if err != nil {
			return nil, err
		}
		for _, lib := range needs {
			found, err := findLibrary(dirs, lib)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			todo = append(todo, found)
		}
	}
	return files, nil
}

// neededBy returns the libraries and the loader that an ELF file needs.
func neededBy(path string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name := make([]byte, p.Filesz)
			if _, err := p.ReadAt(name, 0); err != nil {
				return nil, fmt.Errorf("%s: its loader: %w", path, err)
			}
			libs = append(libs, filepath.Base(strings.TrimRight(string(name), "\x00")))
		}
	}
	return libs, nil
}

func findLibrary(dirs []string, name string) (string, error) {
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); exists(path) {
			return path, nil
		}
	}
	return "", errors.New("no library " + name + " in the packages")
}
