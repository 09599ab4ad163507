package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// bom is a bill of materials in the format CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json).
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   bomMetadata `json:"metadata"`
	Components []component `json:"components"`
}

type bomMetadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref,omitempty"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	PURL    string `json:"purl,omitempty"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// billOf lists the files of an image with their checksums, and the Go modules that are recorded in its programs.
func billOf(img v1.Image, name, version, arch string) ([]byte, error) {
	out := bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: bomMetadata{component{
		Type: "container", Ref: "image", Name: "contiv/" + name + " (" + arch + ")", Version: version}}}
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	modules := map[string]component{}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			return nil, err
		}
		files, err := filesOf(r, modules)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
		out.Components = append(out.Components, files...)
	}
	for _, key := range slices.Sorted(maps.Keys(modules)) {
		out.Components = append(out.Components, modules[key])
	}
	return json.MarshalIndent(out, "", " ")
}

func filesOf(r io.Reader, modules map[string]component) (files []component, err error) {
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			return nil, err
		}
		files = append(files, component{Type: "file", Ref: "file:/" + h.Name, Name: "/" + h.Name,
			Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(data))}}})
		info, err := buildinfo.Read(bytes.NewReader(data))
		if err != nil {
			continue // the program is not a Go program
		}
		module := func(path, version string) {
			modules[path+"@"+version] = component{Type: "library", Ref: path + "@" + version, Name: path, Version: version,
				PURL: "pkg:golang/" + path + "@" + version}
		}
		module("stdlib", info.GoVersion)
		for _, d := range info.Deps {
			if d.Replace != nil {
				d = d.Replace
			}
			module(d.Path, d.Version)
		}
	}
}
