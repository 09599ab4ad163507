package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// The media types of Helm's charts in registries (https://helm.sh/docs/topics/registries).
const (
	chartConfig  = types.MediaType("application/vnd.cncf.helm.config.v1+json")
	chartContent = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")
)

// chart is a packed chart.
type chart struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion"`

	metadata []byte // Chart.yaml as JSON
	archive  []byte // the archive of `helm package`, but with times of zero
}

func (c *chart) fileName() string { return c.Name + "-" + c.Version + ".tgz" }

func loadChart(dir string) (*chart, error) {
	text, err := os.ReadFile(filepath.Join(dir, "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	c := &chart{}
	if c.metadata, err = yaml.YAMLToJSON(text); err != nil {
		return nil, fmt.Errorf("Chart.yaml: %w", err)
	}
	if err := json.Unmarshal(c.metadata, c); err != nil {
		return nil, fmt.Errorf("Chart.yaml: %w", err)
	}
	if c.Name == "" || c.Version == "" || c.AppVersion == "" {
		return nil, errors.New("Chart.yaml: it lacks name, version or appVersion")
	}
	c.archive, err = packChart(dir, c.Name)
	return c, err
}

// packChart packs the chart's files in the order of their names. Owners and times are zero: the same chart gives the same archive.
func packChart(dir, name string) ([]byte, error) {
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	tw := tar.NewWriter(gz)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: name + "/" + filepath.ToSlash(rel), Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(0, 0)}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		_, err = tw.Write(data)
		return err
	})
	if err := errors.Join(err, tw.Close(), gz.Close()); err != nil {
		return nil, fmt.Errorf("pack the chart: %w", err)
	}
	return b.Bytes(), nil
}

// artefact returns the chart in the form that `helm pull oci://…` expects.
func (c *chart) artefact() (artefact, error) {
	a := artefact{name: c.Name, tag: c.Version}
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(c.archive, chartContent))
	if err != nil {
		return a, err
	}
	a.image = withConfig{Image: img, config: c.metadata}
	a.digest, err = a.image.Digest()
	return a, err
}
