package main

import (
	"bytes"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// withConfig is an image with the configuration that Helm requires, which is not a container configuration.
type withConfig struct {
	v1.Image
	config []byte
}

// RawConfigFile implements v1.Image.
func (i withConfig) RawConfigFile() ([]byte, error) { return i.config, nil }

// ConfigName implements v1.Image.
func (i withConfig) ConfigName() (v1.Hash, error) { return partial.ConfigName(i) }

// Manifest implements v1.Image.
func (i withConfig) Manifest() (*v1.Manifest, error) {
	m, err := i.Image.Manifest()
	if err != nil {
		return nil, err
	}
	m = m.DeepCopy()
	hash, size, err := v1.SHA256(bytes.NewReader(i.config))
	m.Config = v1.Descriptor{MediaType: chartConfig, Size: size, Digest: hash}
	return m, err
}

// RawManifest implements v1.Image.
func (i withConfig) RawManifest() ([]byte, error) { return partial.RawManifest(i) }

// Digest implements v1.Image.
func (i withConfig) Digest() (v1.Hash, error) { return partial.Digest(i) }

// Size implements v1.Image.
func (i withConfig) Size() (int64, error) { return partial.Size(i) }

// MediaType implements v1.Image.
func (i withConfig) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
