// Command images builds the container images without a container engine: static binaries, packed by internal/imagepack into docker-archives. `make
// images` runs it.
//
//	images [-out bin/images] [-version 0.1.0] [-commit 4f3a2b1c0d9e] [-arch arm64] [agent|vpp|agent-windows]...
//
// The agent's image has this machine's nft and iptables, or Debian's for another architecture; VPP's image has the VPP of this machine, if there is
// one (docker/vpp.Dockerfile builds it from FD.io's packages). agent-windows is for Windows nodes.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/imagepack"
)

const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func main() {
	out := flag.String("out", "bin/images", "directory for the archives")
	version := flag.String("version", "", "tag, and version of the programs (default: appVersion of the chart)")
	commit := flag.String("commit", "", "commit that the programs report")
	arch := flag.String("arch", runtime.GOARCH, "architecture: amd64 or arm64; VPP's image only that of this machine")
	flag.Parse()
	if err := run(*out, *arch, stamp{*version, *commit}, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// stamp is the version that the programs of an image report.
type stamp struct{ version, commit string }

// flags returns the linker's flags, equal to STAMP of the Makefile.
func (s stamp) flags() string {
	const pkg = "contiv.dev/vswitch/internal/version."
	return fmt.Sprintf("-X %srelease=%s -X %scommit=%s -X 'main.stamp=%s (%s)'", pkg, s.version, pkg, s.commit, s.version, s.commit)
}

func run(out, arch string, s stamp, names []string) (err error) {
	if s.version == "" {
		if s.version, err = appVersion(); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		names = []string{"agent", "vpp", "agent-windows"}
	}
	work, err := os.MkdirTemp("", "images")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		var image imagepack.Image
		switch name {
		case "agent":
			image, err = agentImage(work, arch, filepath.Join(filepath.Dir(out), "cache"), s)
		case "agent-windows":
			image, err = windowsImage(work, arch, s)
		case "vpp":
			if arch != runtime.GOARCH {
				return fmt.Errorf("VPP's image for %s: build it on a machine of that architecture", arch)
			}
			image, err = vppImage(work, s)
			if errors.Is(err, exec.ErrNotFound) && len(names) > 1 {
				fmt.Println("vpp: skipped, no VPP on this machine; docker/vpp.Dockerfile builds the image with a container engine")
				continue
			}
		default:
			err = fmt.Errorf("no image %s; there are agent, vpp and agent-windows", name)
		}
		if err != nil {
			return err
		}
		image.Tag, image.Arch = "docker.io/contiv/"+name+":"+s.version, arch
		if image.OS == "" {
			image.Path = searchPath
			image.Files = append(image.Files, skeleton()...)
		}
		if err := write(image, filepath.Join(out, name+".tar")); err != nil {
			return err
		}
	}
	return nil
}

// appVersion returns the version in the chart, so that manifests and images have the same version.
func appVersion() (string, error) {
	chart, err := os.ReadFile("k8s/contiv-vpp/Chart.yaml")
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`(?m)^appVersion: "([^"]+)"`).FindSubmatch(chart)
	if m == nil {
		return "", errors.New("k8s/contiv-vpp/Chart.yaml has no appVersion in quotes")
	}
	return string(m[1]), nil
}

// skeleton returns the files that every root has.
func skeleton() []imagepack.File {
	return []imagepack.File{
		{Path: "tmp", Dir: true, Mode: 0o1777}, {Path: "run", Dir: true}, {Path: "dev", Dir: true}, {Path: "proc", Dir: true},
		{Path: "sys", Dir: true}, {Path: "var/run", Link: "/run"}, {Path: "var/lib", Dir: true},
		{Path: "etc/passwd", Data: []byte("root:x:0:0:root:/:/\nnonroot:x:65532:65532:nonroot:/:/\n"), Mode: 0o644},
		{Path: "etc/group", Data: []byte("root:x:0:\nnonroot:x:65532:\nvpp:x:999:\n"), Mode: 0o644},
	}
}

func write(image imagepack.Image, path string) error {
	var b bytes.Buffer
	digest, err := image.Write(&b)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Printf("%s  %s  %s  %d MB\n", path, image.Tag, digest, b.Len()>>20)
	return nil
}

// build compiles packages into dir, the same way everywhere.
func build(dir, system, arch string, s stamp, packages ...string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= " + s.flags(), "-o", dir + "/"}, packages...)
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// binDir is the folder of the programs in a Linux image.
const binDir = "usr/local/bin/"

// binaries returns all files of a directory, for binDir.
func binaries(dir string) ([]imagepack.File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []imagepack.File
	for _, e := range entries {
		files = append(files, imagepack.File{Path: binDir + e.Name(), Source: filepath.Join(dir, e.Name())})
	}
	return files, nil
}

// agentPrograms returns the packages of our programs and of the CNI plugins that our plugin needs beside it.
func agentPrograms() []string {
	const plugins = "github.com/containernetworking/plugins/plugins/"
	return []string{"./cmd/contiv-agent", "./cmd/contiv-cni", "./cmd/contiv-init", "./cmd/contiv-ksr", "./cmd/contiv-netctl",
		plugins + "meta/portmap", plugins + "main/loopback"}
}

// agentImage returns the image with the static binaries, and the programs that the agent runs.
func agentImage(work, arch, cache string, s stamp) (imagepack.Image, error) {
	image := imagepack.Image{Entrypoint: []string{"/usr/local/bin/contiv-agent"}}
	dir := filepath.Join(work, "agent")
	if err := build(dir, "linux", arch, s, agentPrograms()...); err != nil {
		return image, err
	}
	files, err := binaries(dir)
	if err != nil {
		return image, err
	}
	tools, err := toolsOf(arch, cache)
	image.Files = append(files, tools...)
	return image, err
}

// vppImage returns the image with the machine's VPP, the libraries that it needs, and the supervisor.
func vppImage(work string, s stamp) (imagepack.Image, error) {
	image := imagepack.Image{Entrypoint: []string{"/usr/local/bin/contiv-vpp-supervisor"}}
	bin, err := findVPP()
	if err != nil {
		return image, err
	}
	dir := filepath.Join(work, "vpp")
	if err := build(dir, "linux", runtime.GOARCH, s, "./cmd/contiv-vpp-supervisor"); err != nil {
		return image, err
	}
	if image.Files, err = binaries(dir); err != nil {
		return image, err
	}
	for _, name := range []string{"epollshim", "watchdogshim"} {
		shim := filepath.Join(work, name+".so")
		gcc := exec.Command("gcc", "-O2", "-shared", "-fPIC", "-o", shim, "dataplane/vpp/"+name+"/src/"+name+".c", "-ldl")
		if out, err := gcc.CombinedOutput(); err != nil {
			return image, fmt.Errorf("%s: %w: %s", name, err, out)
		}
		image.Files = append(image.Files, imagepack.File{Path: "usr/lib/contiv/" + name + ".so", Source: shim})
	}
	programs, err := vppFiles(bin)
	if err != nil {
		return image, err
	}
	plugin, err := pluginFile(work, bin, programs)
	if err != nil {
		fmt.Fprintf(os.Stderr, "images: contiv/vpp is without our plugin: %v\n", err)
	} else {
		image.Files = append(image.Files, plugin)
	}
	files, err := withLibraries(programs...)
	image.Files = append(append(image.Files, files...), onPath(programs)...)
	// If the loader needed this variable here to find VPP's libraries, it needs it in the image, too: the paths are the same.
	image.LibraryPath = os.Getenv("LD_LIBRARY_PATH")
	return image, err
}

// findVPP returns $VPP_PREFIX/bin/vpp, as elsewhere in this repository, or vpp in PATH if the variable is not set.
func findVPP() (string, error) {
	prefix := os.Getenv("VPP_PREFIX")
	if prefix == "" {
		return exec.LookPath("vpp")
	}
	bin, err := filepath.Abs(filepath.Join(prefix, "bin", "vpp"))
	if err == nil && !exists(bin) {
		err = fmt.Errorf("VPP_PREFIX: there is no %s", bin)
	}
	return bin, err
}

// onPath returns links in a directory on the image's PATH for programs that are not on it: the supervisor and users that inspect the container find
// them by name.
func onPath(programs []string) []imagepack.File {
	var links []imagepack.File
	for _, p := range programs {
		name := filepath.Base(p)
		if (name == "vpp" || name == "vppctl") && !slices.Contains(filepath.SplitList(searchPath), filepath.Dir(p)) {
			links = append(links, imagepack.File{Path: "usr/local/bin/" + name, Link: p})
		}
	}
	return links
}

// pluginFile builds our own plugin, which is placed beside VPP's.
func pluginFile(work, bin string, programs []string) (imagepack.File, error) {
	built := filepath.Join(work, "contiv_plugin.so")
	bin, err := filepath.EvalSymlinks(bin)
	if err != nil {
		return imagepack.File{}, err
	}
	out, err := exec.Command("make", "-s", "-C", "dataplane/vpp/plugin", "OUT="+built, "VPP_PREFIX="+filepath.Dir(filepath.Dir(bin))).CombinedOutput()
	if err != nil {
		return imagepack.File{}, fmt.Errorf("%w: %s", err, out)
	}
	for _, path := range programs {
		if filepath.Ext(path) == ".so" {
			return imagepack.File{Path: strings.TrimPrefix(filepath.Join(filepath.Dir(path), "contiv_plugin.so"), "/"), Source: built}, nil
		}
	}
	return imagepack.File{}, errors.New("VPP has no plugins")
}

// vppFiles returns VPP, vppctl and the plugins.
func vppFiles(bin string) ([]string, error) {
	files := []string{bin}
	if ctl := filepath.Join(filepath.Dir(bin), "vppctl"); exists(ctl) {
		files = append(files, ctl)
	}
	prefix := filepath.Dir(filepath.Dir(bin))
	for _, lib := range []string{"lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib"} {
		plugins := filepath.Join(prefix, lib, "vpp_plugins")
		if !exists(plugins) {
			continue
		}
		err := filepath.WalkDir(plugins, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, path)
			}
			return err
		})
		return files, err
	}
	return nil, fmt.Errorf("%s: its plugins are not found below %s/lib", bin, prefix)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
