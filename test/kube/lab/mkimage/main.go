// Command mkimage packs a file tree into a docker-archive that `ctr images import` reads: the same tree gives the same archive.
// The test cluster has no registry, so that every image in it is packed from binaries on this machine.
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

func main() {
	var i image
	flag.StringVar(&i.out, "o", "", "archive to write")
	flag.StringVar(&i.root, "root", "", "file tree")
	flag.StringVar(&i.tags, "tag", "", "names, comma separated")
	flag.StringVar(&i.entrypoint, "entrypoint", "", "program and arguments, comma separated")
	flag.StringVar(&i.cmd, "cmd", "", "default arguments, comma separated")
	flag.StringVar(&i.user, "user", "", "uid:gid")
	flag.StringVar(&i.ports, "expose", "", "ports, comma separated")
	flag.Parse()
	if err := i.write(); err != nil {
		fmt.Fprintf(os.Stderr, "mkimage: %s: %v\n", i.out, err)
		os.Exit(1)
	}
}

type image struct{ out, root, tags, entrypoint, cmd, user, ports string }

// epoch returns the time stamp of all files.
func epoch() time.Time { return time.Unix(0, 0).UTC() }

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func (i image) write() error {
	layer, err := os.CreateTemp("", "layer")
	if err != nil {
		return err
	}
	defer os.Remove(layer.Name())
	defer layer.Close()
	digest := sha256.New()
	if err := packTree(io.MultiWriter(layer, digest), i.root); err != nil {
		return err
	}
	id := hex.EncodeToString(digest.Sum(nil))
	config, err := i.config(id)
	if err != nil {
		return err
	}
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": configName, "RepoTags": split(i.tags), "Layers": []string{id + "/layer.tar"},
	}})
	if err != nil {
		return err
	}
	size, err := layer.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return writeArchive(i.out, []entry{
		{id + "/layer.tar", size, layer},
		{configName, int64(len(config)), bytes.NewReader(config)},
		{"manifest.json", int64(len(manifest)), bytes.NewReader(manifest)},
	})
}

// config returns the image's configuration.
func (i image) config(layer string) ([]byte, error) {
	ports := map[string]struct{}{}
	for _, p := range split(i.ports) {
		ports[p] = struct{}{}
	}
	created := epoch().Format(time.RFC3339)
	return json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": created,
		"config": map[string]any{
			"Entrypoint": split(i.entrypoint), "Cmd": split(i.cmd), "User": i.user, "ExposedPorts": ports, "WorkingDir": "/",
			"Env": []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + layer}},
		"history": []any{map[string]any{"created": created, "created_by": "mkimage"}},
	})
}

type entry struct {
	name    string
	size    int64
	content io.Reader
}

func writeArchive(path string, entries []entry) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Size: e.size, ModTime: epoch(), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(w, e.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}

// packTree writes the tree as a tar whose entries belong to root and have no times.
func packTree(to io.Writer, root string) error {
	w := tar.NewWriter(to)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return packFile(w, path, name, d)
	})
	if err != nil {
		return err
	}
	return w.Close()
}

func packFile(w *tar.Writer, path, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name, h.ModTime, h.Uid, h.Gid, h.Uname, h.Gname = name, epoch(), 0, 0, "", ""
	h.AccessTime, h.ChangeTime = time.Time{}, time.Time{}
	if info.IsDir() {
		h.Name += "/"
	}
	if err := w.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
