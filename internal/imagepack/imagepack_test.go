package imagepack

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func image(t *testing.T) (Image, string) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(source, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	return Image{
		Tag: "docker.io/contiv/agent:1", Entrypoint: []string{"/usr/bin/agent"}, User: "0", Path: "/usr/bin", Arch: "amd64",
		Files: []File{
			{Path: "usr/bin/agent", Source: source}, {Path: "var/run", Link: "/run"}, {Path: "tmp", Dir: true, Mode: 0o1777},
			{Path: "etc/passwd", Data: []byte("root:x:0:0:::\n"), Mode: 0o644},
		},
	}, source
}

func pack(t *testing.T, i Image) ([]byte, string) {
	t.Helper()
	var b bytes.Buffer
	digest, err := i.Write(&b)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), digest
}

func entries(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(time.Unix(0, 0)) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s has a time or an owner: %+v", h.Name, h)
		}
		if out[fmt.Sprintf("%s %o %s", h.Name, h.Mode, h.Linkname)], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSameInputSameArchive checks that the order of files, their times and the clock do not change the archive, and that
// a changed byte does.
func TestSameInputSameArchive(t *testing.T) {
	i, source := image(t)
	first, digest := pack(t, i)
	slices.Reverse(i.Files)
	if err := os.Chtimes(source, time.Unix(7, 0), time.Unix(7, 0)); err != nil {
		t.Fatal(err)
	}
	second, again := pack(t, i)
	if !bytes.Equal(first, second) || digest != again {
		t.Errorf("%s, then %s", digest, again)
	}
	if err := os.WriteFile(source, []byte("Program"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, other := pack(t, i); other == digest {
		t.Error("another program, the same digest")
	}
}

// TestArchiveIsConsistent checks, as container engines do, that every name and checksum in the archive matches its
// content.
func TestArchiveIsConsistent(t *testing.T) {
	i, _ := image(t)
	archive, digest := pack(t, i)
	parts := entries(t, archive)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(parts["manifest.json 644 "], &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("%v, %v", manifest, err)
	}
	config := parts[manifest[0].Config+" 644 "]
	if sum := fmt.Sprintf("%x", sha256.Sum256(config)); "sha256:"+sum != digest || sum+".json" != manifest[0].Config {
		t.Errorf("configuration %s, sum %s, digest %s", manifest[0].Config, sum, digest)
	}
	layer := parts[manifest[0].Layers[0]+" 644 "]
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); !strings.Contains(string(config), sum) {
		t.Errorf("the configuration has not the layer %s: %s", sum, config)
	}
	files := entries(t, layer)
	for _, want := range []string{"usr/ 755 ", "usr/bin/ 755 ", "usr/bin/agent 755 ", "var/run 777 /run", "tmp/ 1777 ",
		"etc/passwd 644 "} {
		if _, ok := files[want]; !ok {
			t.Errorf("%q is missing: %v", want, files)
		}
	}
	if string(files["usr/bin/agent 755 "]) != "program" {
		t.Error("the program is not what it was")
	}
}

// TestFaults checks that files that could not be unpacked are rejected.
func TestFaults(t *testing.T) {
	for _, files := range [][]File{
		{{Path: "/abs", Data: []byte("x")}}, {{Path: "../up", Data: []byte("x")}}, {{Path: "a", Data: []byte("x")}, {Path: "a",
			Dir: true}},
		{{Path: "a", Data: []byte("x")}, {Path: "a/b", Data: []byte("x")}}, {{Path: "a", Source: "/nowhere"}}, {{Path: ""}},
	} {
		if _, err := (Image{Files: files}).Write(io.Discard); err == nil {
			t.Errorf("%+v was packed", files)
		}
	}
}
