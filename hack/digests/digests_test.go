package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake is a registry that serves manifests to clients that have fetched a token, as public ones do.
func fake(t *testing.T, manifests map[string]string, lie bool) (host string) {
	t.Helper()
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			fmt.Fprintf(w, `{"token": "for %s"}`, r.URL.Query().Get("scope"))
		case !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer for repository:"):
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+server.URL+`/token",service="fake",scope="repository:x:pull"`)
			w.WriteHeader(http.StatusUnauthorized)
		case manifests[r.URL.Path] == "" || !strings.Contains(strings.Join(r.Header.Values("Accept"), " "), "index"):
			http.Error(w, "MANIFEST_UNKNOWN", http.StatusNotFound)
		default:
			if lie {
				w.Header().Set("Docker-Content-Digest", "sha256:0000")
			}
			_, _ = w.Write([]byte(manifests[r.URL.Path]))
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func digests(t *testing.T, dir string, images ...string) (string, error) {
	var b bytes.Buffer
	err := run(t.Context(), registry{http.DefaultClient, "http"}, &b, dir, images)
	return b.String(), err
}

// TestDigests checks that the digest is the checksum of the registry's answer, and that base images are printed as the
// arguments of docker/build.sh.
func TestDigests(t *testing.T) {
	host := fake(t, map[string]string{"/v2/a/b/manifests/1": "index", "/v2/go/manifests/1.26": "go"}, false)
	sum := func(s string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s))) }
	if got, err := digests(t, "", host+"/a/b:1"); err != nil || got != sum("index")+"\n" {
		t.Errorf("%q, %v", got, err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("agent.Dockerfile", "ARG GO_IMAGE="+host+"/go:1.26\nARG DEBIAN_IMAGE="+host+"/a/b:1\nARG VPP_VERSION=1\n")
	write("vpp.Dockerfile", "ARG GO_IMAGE="+host+"/go:1.26\n")
	want := "DEBIAN_IMAGE=" + host + "/a/b@" + sum("index") + "\nGO_IMAGE=" + host + "/go@" + sum("go") + "\n"
	if got, err := digests(t, dir); err != nil || got != want {
		t.Errorf("%q, want %q, %v", got, want, err)
	}
	write("vpp.Dockerfile", "ARG GO_IMAGE="+host+"/go:1.27\n")
	if _, err := digests(t, dir); err == nil || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("Dockerfiles that disagree: %v", err)
	}
}

// TestRefusals checks that a digest is printed only if it is that of the image.
func TestRefusals(t *testing.T) {
	host := fake(t, map[string]string{"/v2/a/manifests/1": "index"}, true)
	for image, want := range map[string]string{
		host + "/a:1":   "the registry announces sha256:0000",
		host + "/b:1":   "MANIFEST_UNKNOWN",
		"debian:12":     "registry/name:tag",
		host + "/a":     "registry/name:tag",
		host + "/a@b:1": "registry/name:tag",
	} {
		if got, err := digests(t, "", image); err == nil || got != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", image, got, err)
		}
	}
}

// TestBaseImages checks that the Dockerfiles of the project have base images with full names.
func TestBaseImages(t *testing.T) {
	bases, err := baseImages("../../docker")
	if err != nil || len(bases) != 2 {
		t.Fatal(bases, err)
	}
	for arg, image := range bases {
		if _, err := parse(image); err != nil {
			t.Errorf("%s: %v", arg, err)
		}
	}
}
