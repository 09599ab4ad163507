package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// bomType is the media type of a bill of materials as a layer (IANA).
const bomType = types.MediaType("application/vnd.cyclonedx+json")

// imageArtefacts returns the images, each for all architectures whose directory has it, and their bills of materials by name and
// architecture.
func imageArtefacts(dir, version string) (out []artefact, boms map[string][]byte, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.tar"))
	if err != nil {
		return nil, nil, err
	}
	byName := map[string][]string{}
	for _, f := range files {
		image := strings.TrimSuffix(filepath.Base(f), ".tar")
		byName[image] = append(byName[image], f)
	}
	if len(byName["agent"]) == 0 {
		return nil, nil, fmt.Errorf("%s has no <architecture>/agent.tar: run hack/images first", dir)
	}
	boms = map[string][]byte{}
	for _, image := range slices.Sorted(maps.Keys(byName)) {
		a, err := imageArtefact(image, version, byName[image], boms)
		if err != nil {
			return nil, nil, fmt.Errorf("image %s: %w", image, err)
		}
		out = append(out, a)
	}
	return out, boms, nil
}

func imageArtefact(image, version string, files []string, boms map[string][]byte) (artefact, error) {
	a := artefact{name: image, tag: version, index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	slices.Sort(files)
	for _, file := range files {
		arch := filepath.Base(filepath.Dir(file))
		img, err := ociImage(file, arch)
		if err != nil {
			return a, fmt.Errorf("%s: %w", file, err)
		}
		desc, err := partial.Descriptor(img)
		if err != nil {
			return a, err
		}
		config, err := img.ConfigFile()
		if err != nil {
			return a, err
		}
		desc.Platform = &v1.Platform{OS: config.OS, Architecture: arch}
		a.index = mutate.AppendManifests(a.index, mutate.IndexAddendum{Add: img, Descriptor: *desc})
		bom, err := billOf(img, image, version, arch)
		if err != nil {
			return a, fmt.Errorf("bill of materials: %w", err)
		}
		boms[image+"_"+arch] = bom
		attached, err := attach(bom, *desc)
		if err != nil {
			return a, err
		}
		a.attached = append(a.attached, attached)
	}
	var err error
	a.digest, err = a.index.Digest()
	return a, err
}

// ociImage converts an archive of hack/images to an OCI image: the same root, in a compressed layer.
func ociImage(file, arch string) (v1.Image, error) {
	from, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return nil, err
	}
	config, err := from.ConfigFile()
	if err != nil {
		return nil, err
	}
	if config.Architecture != arch {
		return nil, fmt.Errorf("the image is for %s, its directory says %s", config.Architecture, arch)
	}
	layers, err := from.Layers()
	if err != nil {
		return nil, err
	}
	if len(layers) != 1 {
		return nil, fmt.Errorf("%d layers, want one", len(layers))
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return layers[0].Uncompressed() },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	config.RootFS.DiffIDs, config.History = nil, nil
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "contiv hack/images", Created: config.Created}})
}

// attach returns an artefact that refers to an image (OCI 1.1, subject).
func attach(bom []byte, subject v1.Descriptor) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), bomType)
	img, err := mutate.AppendLayers(img, static.NewLayer(bom, bomType))
	if err != nil {
		return nil, err
	}
	subject.Platform = nil
	referrer, ok := mutate.Subject(img, subject).(v1.Image)
	if !ok {
		return nil, errors.New("the bill of materials is no image")
	}
	return referrer, nil
}
