package main

import (
	"path/filepath"
	"strings"

	"contiv.dev/vswitch/internal/imagepack"
)

// windowsRoot is the folder of a Windows layer that contains the container's files.
const windowsRoot = "Files/"

// windowsImage returns the image with the programs of Windows nodes. Their containers are host processes: they see the node's own files,
// and the image is at C:\hpc. So the image has no part of Windows except for the registry hives, which Windows requires in each base
// layer. It has the same content as the image that docker/windows.Dockerfile builds on Microsoft's base image of host-process containers,
// in one layer.
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

// windowsImageOf returns the image with the given programs.
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
