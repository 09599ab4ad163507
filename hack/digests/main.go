// Command digests queries registries for the digests of images, to pin them.
//
//	pinned=$(go run ./hack/digests) && env $pinned docker/build.sh  # the Dockerfiles' base images
//	go run ./hack/digests registry.k8s.io/etcd:3.6.4-0              # any image: sha256:…
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"time"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := registry{client: http.DefaultClient, scheme: "https"}
	if err := run(ctx, r, os.Stdout, "docker", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "digests:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, r registry, w io.Writer, dir string, images []string) error {
	for _, image := range images {
		ref, err := parse(image)
		if err != nil {
			return err
		}
		digest, err := r.digest(ctx, ref)
		if err != nil {
			return fmt.Errorf("image %s: %w", image, err)
		}
		if _, err := fmt.Fprintln(w, digest); err != nil {
			return err
		}
	}
	if len(images) > 0 {
		return nil
	}
	bases, err := baseImages(dir)
	if err != nil {
		return err
	}
	for _, arg := range slices.Sorted(maps.Keys(bases)) {
		ref, err := parse(bases[arg])
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		digest, err := r.digest(ctx, ref)
		if err != nil {
			return fmt.Errorf("image %s: %w", bases[arg], err)
		}
		if _, err := fmt.Fprintf(w, "%s=%s/%s@%s\n", arg, ref.host, ref.name, digest); err != nil {
			return err
		}
	}
	return nil
}

// baseImages returns the defaults of the Dockerfiles' arguments that name images. All files must have
// the same defaults.
func baseImages(dir string) (map[string]string, error) {
	images := map[string]string{}
	for _, name := range []string{"agent.Dockerfile", "vpp.Dockerfile"} {
		text, err := os.ReadFile(dir + "/" + name)
		if err != nil {
			return nil, err
		}
		for _, m := range regexp.MustCompile(`(?m)^ARG ([A-Z]+_IMAGE)=(\S+)$`).FindAllStringSubmatch(string(text), -1) {
			if other := images[m[1]]; other != "" && other != m[2] {
				return nil, fmt.Errorf("%s/%s: %s is %s, elsewhere %s", dir, name, m[1], m[2], other)
			}
			images[m[1]] = m[2]
		}
	}
	if len(images) == 0 {
		return nil, errors.New(dir + ": no ARG …_IMAGE= in the Dockerfiles")
	}
	return images, nil
}
