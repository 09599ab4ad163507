package imagepack

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// File is an entry of the image's root. Exactly one of Source, Data, Link and Dir is set and determines its kind.
type File struct {
	Path   string // in the image, without leading slash
	Source string // file to copy
	Data   []byte
	Link   string // target of a symbolic link
	Dir    bool
	Mode   int64 // permissions; 0755 when zero
}

// Image describes the image to pack.
type Image struct {
	Tag        string
	Entrypoint []string
	User       string
	Path       string // $PATH
	// LibraryPath is the folder that the loader searches first for libraries; empty: only the usual folders.
	LibraryPath string
	// OS is the system on which the programs run; empty: linux. All files of a Windows image are below Files.
	OS    string
	Arch  string
	Files []File
}

// epoch returns the time stamp of all files.
func epoch() time.Time { return time.Unix(0, 0).UTC() }

// Write writes the archive and returns the digest of the image (of its configuration), as container engines show it.
func (i Image) Write(w io.Writer) (digest string, err error) {
	layer, err := i.layer()
	if err != nil {
		return "", fmt.Errorf("image %s: %w", i.Tag, err)
	}
	layerSum := fmt.Sprintf("%x", sha256.Sum256(layer))
	env := []string{"PATH=" + i.Path}
	if i.LibraryPath != "" {
		env = append(env, "LD_LIBRARY_PATH="+i.LibraryPath)
	}
	system, dir := cmp.Or(i.OS, "linux"), "/"
	if system == "windows" {
		dir = "" // the runtime chooses
	}
	config, err := json.Marshal(map[string]any{
		"architecture": i.Arch, "os": system, "created": epoch().Format(time.RFC3339),
		"config":  map[string]any{"Entrypoint": i.Entrypoint, "User": i.User, "Env": env, "WorkingDir": dir},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + layerSum}},
		"history": []any{map[string]any{"created": epoch().Format(time.RFC3339), "created_by": "contiv hack/images"}},
	})
	if err != nil {
		return "", fmt.Errorf("image %s: %w", i.Tag, err)
	}
	configSum := fmt.Sprintf("%x", sha256.Sum256(config))
	layerName := layerSum + "/layer.tar"
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": configSum + ".json", "RepoTags": []string{i.Tag}, "Layers": []string{layerName},
	}})
	if err != nil {
		return "", fmt.Errorf("image %s: %w", i.Tag, err)
	}
	tw := tar.NewWriter(w)
	for _, part := range []struct {
		name string
		data []byte
	}{{layerName, layer}, {configSum + ".json", config}, {"manifest.json", manifest}} {
		h := &tar.Header{Name: part.name, Mode: 0o644, Size: int64(len(part.data)), ModTime: epoch(), Typeflag: tar.TypeReg}
		if err := tw.WriteHeader(h); err != nil {
			return "", fmt.Errorf("image %s: %w", i.Tag, err)
		}
		if _, err := tw.Write(part.data); err != nil {
			return "", fmt.Errorf("image %s: %w", i.Tag, err)
		}
	}
	if err := tw.Close(); err != nil {
		return "", fmt.Errorf("image %s: %w", i.Tag, err)
	}
	return "sha256:" + configSum, nil
}

// layer returns the root as a tar file.
func (i Image) layer() ([]byte, error) {
	files, err := withParents(i.Files)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, f := range files {
		if err := f.write(tw); err != nil {
			return nil, fmt.Errorf("/%s: %w", f.Path, err)
		}
	}
	err = tw.Close()
	return b.Bytes(), err
}

// withParents sorts the files and adds their parent directories.
func withParents(files []File) ([]File, error) {
	all := map[string]File{}
	for _, f := range files {
		if f.Path == "" || path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || strings.HasPrefix(f.Path, "..") {
			return nil, fmt.Errorf("%q is not a clean path below the root", f.Path)
		}
		if _, twice := all[f.Path]; twice {
			return nil, fmt.Errorf("/%s is given twice", f.Path)
		}
		all[f.Path] = f
	}
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			have, ok := all[dir]
			if !ok {
				all[dir] = File{Path: dir, Dir: true}
			} else if !have.Dir {
				return nil, fmt.Errorf("/%s is in /%s, which is not a directory", f.Path, dir)
			}
		}
	}
	out := make([]File, 0, len(all))
	for _, f := range all {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

func (f File) write(tw *tar.Writer) error {
	h := &tar.Header{Name: f.Path, Mode: f.Mode, ModTime: epoch(), Format: tar.FormatPAX}
	if h.Mode == 0 {
		h.Mode = 0o755
	}
	switch {
	case f.Dir:
		h.Typeflag, h.Name = tar.TypeDir, f.Path+"/"
		return tw.WriteHeader(h)
	case f.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
		return tw.WriteHeader(h)
	}
	data := f.Data
	if f.Source != "" {
		if data != nil {
			return errors.New("it has both a source and data")
		}
		var err error
		if data, err = os.ReadFile(f.Source); err != nil {
			return err
		}
	}
	h.Typeflag, h.Size = tar.TypeReg, int64(len(data))
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err := tw.Write(data)
	return err
}
