package main

import (
	"archive/tar"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// TestImageOfVPPElsewhere checks that an image starts whose VPP is found only by VPP_PREFIX: the supervisor finds VPP by its name,
// and VPP finds its plugins.
func TestImageOfVPPElsewhere(t *testing.T) {
	bin, ok := vpptest.Find()
	if !ok || os.Geteuid() != 0 {
		t.Skip("VPP's image: needs VPP 25.10 (VPP_PREFIX or PATH) and root")
	}
	plugins, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(bin)), "lib", "*", "vpp_plugins"))
	if err != nil || len(plugins) != 1 {
		t.Fatalf("VPP's plugins: %v %v", plugins, err)
	}
	t.Chdir("../..")
	prefix := filepath.Join(t.TempDir(), "elsewhere")
	to := filepath.Join(prefix, "lib", filepath.Base(filepath.Dir(plugins[0])), "vpp_plugins")
	for _, dir := range []string{filepath.Join(prefix, "bin"), to} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for from, file := range map[string]string{bin: filepath.Join(prefix, "bin", "vpp"),
		filepath.Join(filepath.Dir(bin), "vppctl"):  filepath.Join(prefix, "bin", "vppctl"),
		filepath.Join(plugins[0], "ping_plugin.so"): filepath.Join(to, "ping_plugin.so")} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(file, data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("VPP_PREFIX", prefix)
	t.Setenv("PATH", withoutVPP())
	out := t.TempDir()
	if err := run(out, runtime.GOARCH, stamp{"test", "c0ffee"}, []string{"vpp"}); err != nil {
		t.Fatal(err)
	}
	root, env := unpackImage(t, filepath.Join(out, "vpp.tar"))
	for script, want := range map[string]string{
		`chroot "$0" /usr/local/bin/contiv-vpp-supervisor --print`: "socksvr {",
		`chroot "$0" /usr/local/bin/vpp unix { nodaemon cli-listen /run/cli.sock } buffers { page-size default } &
			for i in $(seq 100); do
				sleep 0.1
				! chroot "$0" /usr/local/bin/vppctl -s /run/cli.sock show plugins || break
			done
			kill $!`: "ping_plugin.so",
	} {
		// As in a container; VPP finds its plugins by /proc/self/exe.
		mounts := `mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount -t tmpfs none "$0/dev" && mkdir "$0/dev/shm" &&
			mknod "$0/dev/null" c 1 3 && `
		cmd := exec.Command("unshare", "-mn", "sh", "-c", mounts+script, root)
		cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, env...) // the last value of a variable counts
		if out, err := cmd.CombinedOutput(); !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %s in\n%.1500s", script, err, want, out)
		}
	}
	t.Setenv("VPP_PREFIX", t.TempDir())
	if err := run(t.TempDir(), runtime.GOARCH, stamp{version: "test"}, []string{"vpp"}); err == nil || !strings.Contains(err.Error(), "VPP_PREFIX: there is no ") {
		t.Errorf("a prefix without VPP: %v", err)
	}
}

// withoutVPP returns PATH without the directories that contain a vpp.
func withoutVPP() string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !exists(filepath.Join(dir, "vpp")) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

// unpackImage unpacks the root of an archive, and returns the environment of the image.
func unpackImage(t *testing.T, archive string) (root string, env []string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	root = t.TempDir()
	for all := tar.NewReader(f); ; {
		h, err := all.Next()
		if err == io.EOF {
			return root, env
		}
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasSuffix(h.Name, "layer.tar"):
			unpackLayer(t, tar.NewReader(all), root)
		case strings.HasSuffix(h.Name, ".json") && h.Name != "manifest.json":
			var config struct{ Config struct{ Env []string } }
			if err := json.NewDecoder(all).Decode(&config); err != nil {
				t.Fatal(err)
			}
			env = config.Config.Env
		}
	}
}
