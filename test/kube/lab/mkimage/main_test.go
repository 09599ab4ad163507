package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSameTreeSameImage checks that times and owners of files do not matter, and that contents and
// names do.
func TestSameTreeSameImage(t *testing.T) {
	first := pack(t, tree(t, "content"))
	old := tree(t, "content")
	if err := os.Chtimes(filepath.Join(old, "bin", "program"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, pack(t, old)) {
		t.Error("the same tree gives another image")
	}
	if bytes.Equal(first, pack(t, tree(t, "other content"))) {
		t.Error("another tree gives the same image")
	}
	var manifest []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	files := entries(t, first)
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("manifest %s: %v", files["manifest.json"], err)
	}
	layer := entries(t, files[manifest[0].Layers[0]])
	if string(layer["bin/program"]) != "content" || files[manifest[0].Config] == nil || manifest[0].RepoTags[0] != "a:1" {
		t.Errorf("the image has %v, the layer %q", manifest, layer)
	}
}

// TestMissingTree checks that a missing tree is an error, and not an empty image.
func TestMissingTree(t *testing.T) {
	if err := (image{out: filepath.Join(t.TempDir(), "x.tar"), root: "/does/not/exist"}).write(); err == nil {
		t.Error("an image was made of nothing")
	}
}

func tree(t *testing.T, content string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bin", "program"), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("program", filepath.Join(root, "bin", "link")); err != nil {
		t.Fatal(err)
	}
	return root
}

func pack(t *testing.T, root string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := (image{out: out, root: root, tags: "a:1,b:2", entrypoint: "/bin/program"}).write(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func entries(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
