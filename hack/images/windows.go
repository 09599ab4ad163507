package main

import (
	"path/filepath"
	"strings"

	"contiv.dev/vswitch/internal/imagepack"
)

// windowsRoot is the part of a Windows layer that a container has as its files.
const windowsRoot = "Files/"

// windowsImage holds the programs of Windows nodes. Their containers are host processes: the node's own files are theirs, and the image is
// at C:\hpc. So it has nothing of Windows except for the registry hives, which Windows wants in each base layer. It is what
// docker/windows.Dockerfile makes on Microsoft's base image of host-process containers, in one layer.
func windowsImage(work, arch string, s stamp) (imagepack.Image, error) {
	dir := filepath.Join(work, "windows")
	if err := build(dir, "windows", arch, s, "./cmd/contiv-agent", "./cmd/contiv-cni", "./cmd/contiv-init", "./cmd/contiv-netctl"); err != nil {
		return imagepack.Image{}, err
	}
	programs, err := binaries(dir)
	if err != nil {
		return imagepack.Image{}, err
	}
	return windowsImageOf(programs)
}

// windowsImageOf is the image of programs that are built.
func windowsImageOf(programs []imagepack.File) (imagepack.Image, error) {
	image := imagepack.Image{OS: "windows", Entrypoint: []string{"C:/hpc/contiv-agent.exe"}, Path: `C:\Windows\system32;C:\Windows;C:\hpc;`}
	for _, f := range programs {
		f.Path = windowsRoot + strings.TrimPrefix(f.Path, binDir)
		image.Files = append(image.Files, f)
	}
	for _, name := range []string{"DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"} {
		hive, err := emptyHive(name)
		if err != nil {
			return image, err
		}
		image.Files = append(image.Files, imagepack.File{Path: windowsRoot + "Windows/System32/config/" + name, Data: hive, Mode: 0o644})
	}
	return image, nil
}
