package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/imagepack"
)

// sbin is the folder in which Debian has nft and iptables.
const sbin = "/usr/sbin"

// firewallTools returns nft, for host ports on VPP and for traces, and iptables in both variants, for
// --linux-backend=iptables.
func firewallTools() ([]imagepack.File, error) {
	programs, links, err := toolPaths("")
	if err != nil {
		return nil, err
	}
	files, err := withLibraries(programs...)
	return append(files, links...), err
}

// toolPaths returns the programs and their extensions below a root, and the links by which they are called.
func toolPaths(root string) (programs []string, links []imagepack.File, err error) {
	programs = []string{filepath.Join(root, sbin, "nft")}
	for _, variant := range []string{"nft", "legacy"} {
		multi := "xtables-" + variant + "-multi"
		programs = append(programs, filepath.Join(root, sbin, multi))
		for _, family := range []string{"iptables", "ip6tables"} {
			for _, verb := range []string{"", "-save", "-restore"} {
				links = append(links, link(family+"-"+variant+verb, multi))
				if variant == "nft" { // Debian's default
					links = append(links, link(family+verb, multi))
				}
			}
		}
	}
	for _, p := range programs {
		if !exists(p) {
			return nil, nil, fmt.Errorf("%s is not on this machine: apt-get install nftables iptables (hack/deps.sh)", p)
		}
	}
	matches, err := filepath.Glob(root + "/usr/lib/*/xtables/*.so")
	return append(programs, matches...), links, err
}

func link(name, target string) imagepack.File {
	return imagepack.File{Path: strings.TrimPrefix(filepath.Join(sbin, name), "/"), Link: target}
}

// withLibraries returns programs of this machine, at the same paths, with all libraries that they need.
func withLibraries(programs ...string) ([]imagepack.File, error) {
	libs, err := libraries(programs...)
	if err != nil {
		return nil, err
	}
	all := append(libs, programs...)
	slices.Sort(all)
	var files []imagepack.File
	for _, path := range slices.Compact(all) {
		files = append(files, imagepack.File{Path: strings.TrimPrefix(path, "/"), Source: path})
	}
	return files, nil
}

// libraries returns the shared libraries that programs need, by the names that the loader looks up.
func libraries(programs ...string) ([]string, error) {
	programs = distinct(programs)
	out, err := exec.Command("ldd", programs...).Output()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", strings.Join(programs, " "), err)
	}
	var libs []string
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		fields := strings.Fields(sc.Text())
		switch {
		case strings.Contains(sc.Text(), "not found"):
			return nil, fmt.Errorf("library %s is missing on this machine", fields[0])
		case len(fields) >= 3 && fields[1] == "=>":
			libs = append(libs, fields[2])
		case strings.HasSuffix(sc.Text(), ":"): // the program that the next lines describe
		case len(fields) > 0 && strings.HasPrefix(fields[0], "/"):
			libs = append(libs, fields[0]) // the loader itself
		}
	}
	return libs, nil
}

// distinct returns one program of each group with equal answers from ldd, which starts six processes for a program.
func distinct(programs []string) (some []string) {
	seen := map[string]bool{}
	for _, p := range programs {
		key, err := lookups(p)
		if err != nil {
			key = p // ldd reports what is wrong
		}
		if !seen[key] {
			seen[key] = true
			some = append(some, p)
		}
	}
	return some
}

// lookups returns all that the loader reads of an ELF file to find its libraries, in one string.
func lookups(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	// The folder stands for $ORIGIN in a search path.
	key := fmt.Sprintln(filepath.Dir(path), f.Class, f.Data, f.Machine, f.OSABI, f.Type)
	for _, tag := range []elf.DynTag{elf.DT_NEEDED, elf.DT_RPATH, elf.DT_RUNPATH} {
		values, err := f.DynString(tag)
		if err != nil {
			return "", err
		}
		key += fmt.Sprintf("%v %q\n", tag, values)
	}
	for _, tag := range []elf.DynTag{elf.DT_FLAGS, elf.DT_FLAGS_1, elf.DT_AUXILIARY, elf.DT_FILTER} {
		values, err := f.DynValue(tag)
		if err != nil {
			return "", err
		}
		if len(values) > 0 && (tag == elf.DT_AUXILIARY || tag == elf.DT_FILTER) {
			return "", fmt.Errorf("%s has %v", path, tag) // names of libraries that debug/elf does not read
		}
		key += fmt.Sprintln(tag, values)
	}
	versions, err := f.DynamicVersionNeeds()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return "", err
	}
	return key + fmt.Sprintf("%+v", versions), nil
}
