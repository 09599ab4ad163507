package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// plugins packs the kubectl plugin for each platform (DIR/linux_amd64/kubectl-contiv), with the manual pages, and writes the manifest
// with which krew installs it. base is the URL of the folder in which the archives will be published.
func plugins(dir, man, version, base string) (map[string][]byte, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*_*", "kubectl-contiv*"))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	pages, err := filepath.Glob(filepath.Join(man, "*.1"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	var platforms []map[string]any
	slices.Sort(found)
	for _, program := range found {
		platform := filepath.Base(filepath.Dir(program))
		system, arch, _ := strings.Cut(platform, "_")
		archive, err := packProgram(program, pages)
		if err != nil {
			return nil, fmt.Errorf("plugin for %s: %w", platform, err)
		}
		name := "kubectl-contiv_" + platform + ".tar.gz"
		files[name] = archive
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]string{"os": system, "arch": arch}},
			"uri":      base + "/" + name, "sha256": fmt.Sprintf("%x", sha256.Sum256(archive)), "bin": filepath.Base(program),
		})
	}
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]string{"name": "contiv"},
		"spec": map[string]any{"version": "v" + version, "homepage": "https://contiv.dev/vswitch",
			"shortDescription": "Inspect and test a cluster's network",
			"description":      "Runs contiv-netctl in a pod of a Contiv agent: status, trace, ping, check and more.", "platforms": platforms},
	})
	files["krew.yaml"] = manifest
	return files, err
}

// packProgram packs a program and manual pages, with all times set to zero.
func packProgram(program string, pages []string) ([]byte, error) {
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	tw := tar.NewWriter(gz)
	add := func(path, name string, mode int64) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
		_, err = tw.Write(data)
		return err
	}
	err := add(program, filepath.Base(program), 0o755)
	for _, page := range pages {
		err = errors.Join(err, add(page, "man/man1/"+filepath.Base(page), 0o644))
	}
	err = errors.Join(err, tw.Close(), gz.Close())
	return b.Bytes(), err
}
