package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"contiv.dev/vswitch/internal/imagepack"
)

// TestToolsRunInTheImage checks that nft and iptables find all their libraries, and the extensions that our rules use, in a root that has
// only the packed files.
func TestToolsRunInTheImage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("tools in the image: needs root for chroot")
	}
	if !exists(filepath.Join(sbin, "nft")) || !exists(filepath.Join(sbin, "xtables-legacy-multi")) {
		t.Skip("tools in the image: nft or iptables is not on this machine; hack/deps.sh installs them")
	}
	files, err := firewallTools()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	unpack(t, imagepack.Image{Tag: "t", Files: append(files, skeleton()...)}, root)
	for _, tc := range []struct{ stdin, line, want string }{
		{"", "nft --version", "nftables v"},
		{"", "iptables-nft-restore --version", "(nf_tables)"},
		{"", "iptables-legacy-save --version", "(legacy)"},
		{"", "ip6tables-restore --version", "ip6tables-restore v"},
		{"", "iptables -m conntrack -h", "conntrack match options"},
		{"", "iptables -j MARK -h", "MARK target options"},
		{"table inet t {\nchain c {\nmeta mark set 1\n}\n}\n", "nft -c -f -", ""},
	} {
		argv := strings.Fields(tc.line)
		cmd := exec.Command("/usr/sbin/"+argv[0], argv[1:]...)
		cmd.Stdin = strings.NewReader(tc.stdin)
		cmd.Env = []string{"PATH=" + searchPath}
		// A new network namespace, so that this machine's rules do not change.
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Cloneflags: syscall.CLONE_NEWNET}
		cmd.Dir = "/"
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: %v\n%s", tc.line, err, out)
		}
	}
}

// TestDockerfileHasTheSame checks that an image that a container engine builds has the programs of the packed one.
func TestDockerfileHasTheSame(t *testing.T) {
	text, err := os.ReadFile("../../docker/agent.Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(text))
	for _, p := range agentPrograms() {
		if !slices.Contains(words, p) {
			t.Errorf("docker/agent.Dockerfile does not build %s", p)
		}
	}
}

// unpack packs an image and unpacks its layer below root.
func unpack(t *testing.T, image imagepack.Image, root string) {
	t.Helper()
	var b bytes.Buffer
	if _, err := image.Write(&b); err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(h.Name, "layer.tar") {
			unpackLayer(t, tar.NewReader(r), root)
			return
		}
	}
}

func unpackLayer(t *testing.T, r *tar.Reader, root string) {
	t.Helper()
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, path)
		default:
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, data, h.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestClosure checks that the libraries of files of another architecture are found without running the loader, and that they are the same
// as the loader's for this machine.
func TestClosure(t *testing.T) {
	nft := filepath.Join(sbin, "nft")
	if !exists(nft) {
		t.Skip("nft is not on this machine; hack/deps.sh installs it")
	}
	libs, err := libraries(nft)
	if err != nil {
		t.Fatal(err)
	}
	files, err := closure("/", []string{nft})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, filepath.Base(f.Path))
	}
	for _, lib := range libs {
		if !slices.Contains(got, filepath.Base(lib)) {
			t.Errorf("%s is missing in %q", lib, got)
		}
	}
}
