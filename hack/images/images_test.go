package main

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestAgentImage builds the agent's image as `make images` does, and checks that our programs run in a root
// with nothing else.
func TestAgentImage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the agent's image: needs root for chroot")
	}
	if !exists(filepath.Join(sbin, "nft")) || !exists(filepath.Join(sbin, "xtables-legacy-multi")) {
		t.Skip("the agent's image: nft or iptables is not on this machine; hack/deps.sh installs them")
	}
	t.Chdir("../..") // make runs it there
	root, layer := t.TempDir(), tar.NewReader(bytes.NewReader(archive(t)))
	for h, err := layer.Next(); !strings.HasSuffix(h.Name, "layer.tar"); h, err = layer.Next() {
		if err != nil {
			t.Fatal(err)
		}
	}
	unpackLayer(t, tar.NewReader(layer), root)
	for _, tc := range []struct{ line, want string }{
		{"contiv-agent --help", "--dataplane"},
		{"contiv-agent --version", "contiv-agent test (c0ffee)"},
		{"contiv-netctl --version", "contiv-netctl test (c0ffee)"},
		{"contiv-cni --version", "contiv-cni test (c0ffee)"},
		{"contiv-init --help", "preflight"},
		{"contiv-ksr --help", "Usage:"},
		{"contiv-netctl --help", "trace"},
		{"contiv-cni", `"supportedVersions"`},
		{"portmap", `"supportedVersions"`},
		{"loopback", `"supportedVersions"`},
	} {
		argv := strings.Fields(tc.line)
		cmd := exec.Command("/usr/local/bin/"+argv[0], argv[1:]...)
		cmd.Stdin = strings.NewReader(`{"cniVersion": "1.0.0"}`)
		cmd.Env = []string{"PATH=" + searchPath, "CNI_COMMAND=VERSION"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Cloneflags: syscall.CLONE_NEWNET}
		cmd.Dir = "/"
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: %v, want %s in\n%s", tc.line, err, tc.want, out)
		}
	}
}

func archive(t *testing.T) []byte {
	t.Helper()
	out := t.TempDir()
	if err := run(out, runtime.GOARCH, stamp{"test", "c0ffee"}, []string{"agent"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(out, "agent.tar"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
