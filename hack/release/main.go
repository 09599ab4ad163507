// Command release makes the artefacts of a release from the archives of hack/images: images for several architectures and the chart as OCI
// artefacts in one OCI layout, a bill of materials for each image, the digests, and checksums. It is its own module, so that the product
// does not depend on the library for registries. `make release` runs it.
//
//	release -images DIR [-chart k8s/contiv-vpp] [-out bin/release] [-push registry.example.org/contiv] [-plain-http]
//
// DIR has a directory for each architecture (DIR/arm64/agent.tar). The same archives and the same chart give the same digests, on any
// machine and at any time. Nothing leaves the machine without -push.
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

type options struct {
	images, chart, out string
	push               string
	plainHTTP          bool
	plugins, man, base string
}

func main() {
	var o options
	flag.StringVar(&o.images, "images", "bin/release/images", "directory with a directory of archives for each architecture")
	flag.StringVar(&o.chart, "chart", "k8s/contiv-vpp", "the chart")
	flag.StringVar(&o.out, "out", "bin/release", "where the release goes")
	flag.StringVar(&o.plugins, "plugins", "bin/release/plugins", "directory with a directory of kubectl-contiv for each platform; none: no plugin")
	flag.StringVar(&o.man, "man", "bin/release/man", "directory with manual pages")
	flag.StringVar(&o.base, "base", "https://contiv.dev/vswitch/releases", "URL of the folder where the plugins will be, for krew's manifest")
	flag.StringVar(&o.push, "push", "", "registry and folder to push to, such as registry.example.org/contiv; empty: nowhere")
	flag.BoolVar(&o.plainHTTP, "plain-http", false, "the registry has no TLS")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// artefact is an object with a name in a registry.
type artefact struct {
	name, tag string
	index     v1.ImageIndex // the index of an image for several architectures; nil: image is used
	image     v1.Image
	digest    v1.Hash
	// attached are objects that refer to the artefact or to its parts: bills of materials.
	attached []v1.Image
}

func run(ctx context.Context, o options, w io.Writer) error {
	c, err := loadChart(o.chart)
	if err != nil {
		return err
	}
	artefacts, boms, err := imageArtefacts(o.images, c.AppVersion)
	if err != nil {
		return err
	}
	packed, err := c.artefact()
	if err != nil {
		return err
	}
	artefacts = append(artefacts, packed)
	if err := o.write(artefacts, boms, c); err != nil {
		return err
	}
	for _, a := range artefacts {
		if _, err := fmt.Fprintf(w, "%s:%s  %s\n", a.name, a.tag, a.digest); err != nil {
			return err
		}
	}
	if o.push == "" {
		return nil
	}
	for _, a := range artefacts {
		if err := o.pushOne(ctx, a); err != nil {
			return fmt.Errorf("push %s: %w", a.name, err)
		}
	}
	return nil
}

// write writes the files of the release.
func (o options) write(artefacts []artefact, boms map[string][]byte, c *chart) error {
	oci := filepath.Join(o.out, "oci")
	if err := os.RemoveAll(oci); err != nil {
		return err
	}
	path, err := layout.Write(oci, empty.Index)
	if err != nil {
		return fmt.Errorf("OCI layout: %w", err)
	}
	var digests strings.Builder
	for _, a := range artefacts {
		named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": a.name + ":" + a.tag})
		if a.index != nil {
			err = path.AppendIndex(a.index, named)
		} else {
			err = path.AppendImage(a.image, named)
		}
		for _, image := range a.attached {
			if err == nil {
				err = path.AppendImage(image)
			}
		}
		if err != nil {
			return fmt.Errorf("OCI layout: %s: %w", a.name, err)
		}
		fmt.Fprintf(&digests, "%s:%s %s\n", a.name, a.tag, a.digest)
	}
	files := map[string][]byte{"digests.txt": []byte(digests.String()), c.fileName(): c.archive}
	packed, err := plugins(o.plugins, o.man, c.AppVersion, o.base)
	if err != nil {
		return err
	}
	maps.Copy(files, packed)
	for name, data := range boms {
		files[filepath.Join("sbom", name+".cdx.json")] = data
	}
	for name, data := range files {
		path := filepath.Join(o.out, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return checksums(o.out)
}

// checksums writes SHA256SUMS, which sha256sum -c reads, for all files of the release.
func checksums(out string) error {
	const file = "SHA256SUMS"
	var b strings.Builder
	err := filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(out, path)
		if err == nil && d.IsDir() && (name == "images" || name == "cache" || name == "plugins" || name == "man") {
			return filepath.SkipDir
		}
		if err != nil || !d.Type().IsRegular() || name == file {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), name)
		return err
	})
	if err != nil {
		return fmt.Errorf("checksums: %w", err)
	}
	return os.WriteFile(filepath.Join(out, file), []byte(b.String()), 0o644)
}

// pushOne pushes an artefact under its tag, and the objects that are attached to it.
func (o options) pushOne(ctx context.Context, a artefact) error {
	var insecure []name.Option
	if o.plainHTTP {
		insecure = append(insecure, name.Insecure)
	}
	tag, err := name.NewTag(o.push+"/"+a.name+":"+a.tag, insecure...)
	if err != nil {
		return err
	}
	with := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if a.index != nil {
		err = remote.WriteIndex(tag, a.index, with...)
	} else {
		err = remote.Write(tag, a.image, with...)
	}
	if err != nil {
		return err
	}
	for _, image := range a.attached {
		digest, err := image.Digest()
		if err != nil {
			return err
		}
		if err := remote.Write(tag.Context().Digest(digest.String()), image, with...); err != nil {
			return fmt.Errorf("bill of materials: %w", err)
		}
	}
	return nil
}
