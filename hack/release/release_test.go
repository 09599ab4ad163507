package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"contiv.dev/vswitch/internal/imagepack"
)

// archives makes the output of hack/images: the agent for two architectures. The program in it is this test binary, which is a Go
// program, too.
func archives(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		image := imagepack.Image{Tag: "docker.io/contiv/agent:0.1.0", Arch: arch, Entrypoint: []string{"/usr/local/bin/contiv-agent"}, Path: "/usr/bin",
			Files: []imagepack.File{{Path: "usr/local/bin/contiv-agent", Source: self}, {Path: "etc/arch", Data: []byte(arch)}}}
		var b bytes.Buffer
		if _, err := image.Write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, arch), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, arch, "agent.tar"), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	windows := imagepack.Image{Tag: "docker.io/contiv/agent-windows:0.1.0", OS: "windows", Arch: "amd64", Entrypoint: []string{"C:/hpc/contiv-agent.exe"},
		Files: []imagepack.File{{Path: "Files/contiv-agent.exe", Source: self}}}
	var b bytes.Buffer
	if _, err := windows.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "amd64", "agent-windows.tar"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func release(t *testing.T, o options) string {
	t.Helper()
	o.chart, o.out = "../../k8s/contiv-vpp", t.TempDir()
	if err := run(t.Context(), o, io.Discard); err != nil {
		t.Fatal(err)
	}
	return o.out
}

// TestReproducible checks that two runs over the same images give the same files, and so the same digests.
func TestReproducible(t *testing.T) {
	images := archives(t)
	first, second := release(t, options{images: images}), release(t, options{images: images})
	a, err := os.ReadFile(filepath.Join(first, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(second, "SHA256SUMS"))
	if err != nil || string(a) != string(b) {
		t.Errorf("the second run made other files: %v\n%s\n%s", err, a, b)
	}
	checked := 0
	for line := range strings.Lines(string(a)) {
		sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := os.ReadFile(filepath.Join(first, file))
		if err != nil || fmt.Sprintf("%x", sha256.Sum256(data)) != sum {
			t.Errorf("%s is not as SHA256SUMS says: %v", file, err)
		}
		checked++
	}
	if checked < 10 {
		t.Errorf("SHA256SUMS has %d files", checked)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(first, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 6 { // two images, three bills of materials, the chart
		t.Errorf("the layout has %v, %v", manifest, err)
	}
}

// TestPush checks that, after a push, a runtime of each architecture can pull its image, Helm can pull the chart, and the bill of
// materials is found by the image's digest.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	out := release(t, options{images: archives(t), push: host + "/contiv", plainHTTP: true})
	tag, err := name.NewTag(host+"/contiv/agent:0.1.0", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		img, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatal(err)
		}
		if got := fileOf(t, img, "etc/arch"); got != arch {
			t.Errorf("the image for %s is the one for %s", arch, got)
		}
		config, err := img.ConfigFile()
		if err != nil || config.Architecture != arch || config.Config.Entrypoint[0] != "/usr/local/bin/contiv-agent" {
			t.Errorf("%s: configuration %v, %v", arch, config, err)
		}
		digest, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		checkBOM(t, tag.Context().Digest(digest.String()))
	}
	windows, err := name.NewTag(host+"/contiv/agent-windows:0.1.0", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if img, err := remote.Image(windows, remote.WithPlatform(v1.Platform{OS: "windows", Architecture: "amd64"})); err != nil {
		t.Errorf("a Windows node finds no image: %v", err)
	} else if config, err := img.ConfigFile(); err != nil || config.OS != "windows" {
		t.Errorf("image of Windows nodes: %v, %v", config, err)
	}
	index, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	digests, err := os.ReadFile(filepath.Join(out, "digests.txt"))
	if err != nil || !strings.Contains(string(digests), "agent:0.1.0 "+digest.String()+"\n") {
		t.Errorf("digests.txt: %v\n%s lacks %s", err, digests, digest)
	}
	checkChart(t, host, out)
}

func checkBOM(t *testing.T, image name.Digest) {
	t.Helper()
	referrers, err := remote.Referrers(image)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := referrers.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("referrers: %v, %v", manifest, err)
	}
	img, err := remote.Image(image.Context().Digest(manifest.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(layerOf(t, img, bomType), &b); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"/usr/local/bin/contiv-agent": false, "github.com/google/go-containerregistry": false, "stdlib": false}
	for _, c := range b.Components {
		if _, ok := want[c.Name]; ok {
			want[c.Name] = true
		}
	}
	for name, found := range want {
		if !found {
			t.Errorf("the bill of materials lacks %s", name)
		}
	}
}

func checkChart(t *testing.T, host, out string) {
	t.Helper()
	tag, err := name.NewTag(host+"/contiv/contiv-vpp:0.1.0", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := img.Manifest()
	if err != nil || manifest.Config.MediaType != chartConfig {
		t.Errorf("chart: %v, %v", manifest, err)
	}
	var metadata chart
	raw, err := img.RawConfigFile()
	if err = errors.Join(err, json.Unmarshal(raw, &metadata)); err != nil || metadata.Name != "contiv-vpp" {
		t.Errorf("chart's metadata: %s, %v", raw, err)
	}
	file, err := os.ReadFile(filepath.Join(out, "contiv-vpp-0.1.0.tgz"))
	if err != nil || !bytes.Equal(file, layerOf(t, img, chartContent)) {
		t.Errorf("the chart in the registry is not the file: %v", err)
	}
}

func layerOf(t *testing.T, img v1.Image, want types.MediaType) []byte {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	if got, err := layers[0].MediaType(); err != nil || got != want {
		t.Errorf("media type %s, %v", got, err)
	}
	r, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func fileOf(t *testing.T, img v1.Image, path string) string {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if h.Name == path {
			data, err := io.ReadAll(tr)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
	}
}

// TestBadInput checks that invalid input is rejected with the reason, and leaves no release.
func TestBadInput(t *testing.T) {
	swapped := archives(t)
	if err := os.Rename(filepath.Join(swapped, "arm64"), filepath.Join(swapped, "riscv64")); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]options{
		"run hack/images first": {images: t.TempDir(), chart: "../../k8s/contiv-vpp"},
		"Chart.yaml":            {images: swapped, chart: t.TempDir()},
		"the image is for arm64, its directory says riscv64": {images: swapped, chart: "../../k8s/contiv-vpp"},
	} {
		o.out = filepath.Join(t.TempDir(), "out")
		err := run(t.Context(), o, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if _, err := os.Stat(o.out); err == nil {
			t.Errorf("%s: there is a release", want)
		}
	}
}

// TestPlugin checks that krew's manifest names the archives with their checksums, and that an archive has the program and the manual
// pages.
func TestPlugin(t *testing.T) {
	dir, man := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "linux_amd64", "kubectl-contiv"): "program", filepath.Join(dir, "windows_amd64", "kubectl-contiv.exe"): "other program",
		filepath.Join(man, "contiv-netctl.1"): "page",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	out := release(t, options{images: archives(t), plugins: dir, man: man, base: "https://example.org"})
	manifest, err := os.ReadFile(filepath.Join(out, "krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for file, program := range map[string]string{"kubectl-contiv_linux_amd64.tar.gz": "kubectl-contiv", "kubectl-contiv_windows_amd64.tar.gz": "kubectl-contiv.exe"} {
		data, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"https://example.org/" + file, fmt.Sprintf("%x", sha256.Sum256(data)), "bin: " + program} {
			if !strings.Contains(string(manifest), want) {
				t.Errorf("krew.yaml lacks %s:\n%s", want, manifest)
			}
		}
		gz, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for tr := tar.NewReader(gz); ; {
			h, err := tr.Next()
			if err != nil {
				break
			}
			names = append(names, h.Name)
		}
		if strings.Join(names, " ") != program+" man/man1/contiv-netctl.1" {
			t.Errorf("%s has %q", file, names)
		}
	}
}
