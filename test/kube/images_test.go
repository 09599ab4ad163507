package kube

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

const (
	agentImage = "docker.io/contiv/agent"
	vppImage   = "docker.io/contiv/vpp"
	imageTag   = "0.1.0"
	upgradeTag = "0.1.1" // tag of an agent that is built differently
	etcdImage  = "registry.k8s.io/etcd"
	etcdTag    = "lab"

	// shimInImage is the stand-in for /dev/vhost-net if the kernel has none.
	shimInImage = "usr/lib/contiv/vhostshim.so"
)

// images is a folder of archives: those of `make images`, and additional ones for tests.
type images struct{ dir string }

// builtImages builds the images once; every cluster uses them.
var builtImages = sync.OnceValues(func() (images, error) {
	i := images{filepath.Join(filepath.Dir(binDir), "images")}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return i, i.make(ctx)
})

func (i images) agent() string   { return filepath.Join(i.dir, "agent.tar") }
func (i images) upgrade() string { return filepath.Join(i.dir, "agent-upgrade.tar") }
func (i images) vpp() string     { return filepath.Join(i.dir, "vpp.tar") }
func (i images) etcd() string    { return filepath.Join(i.dir, "etcd.tar") }

func (i images) make(ctx context.Context) error {
	args := []string{"run", "./hack/images", "-out", i.dir, "-version", imageTag, "agent"}
	_, hasVPP := vpptest.Find()
	if hasVPP {
		args = append(args, "vpp")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("hack/images: %w: %s", err, out)
	}
	others := map[string]string{}
	for _, name := range []string{"contiv-agent", "contiv-cni", "contiv-init", "contiv-netctl"} {
		others["usr/local/bin/"+name] = filepath.Join(upgradeDir, name)
	}
	if err := repack(ctx, i.agent(), i.upgrade(), agentImage+":"+upgradeTag, others); err != nil {
		return err
	}
	etcd := map[string]string{"usr/local/bin/etcd": filepath.Join(cacheDir(), "bin", "etcd")}
	if err := repack(ctx, "", i.etcd(), etcdImage+":"+etcdTag, etcd); err != nil || !hasVPP || hasVhost() {
		return err
	}
	shim, err := vpptest.Vhostshim(ctx)
	if err != nil {
		return err
	}
	return repack(ctx, i.vpp(), i.vpp(), vppImage+":"+imageTag, map[string]string{shimInImage: shim})
}

func hasVhost() bool {
	_, err := os.Stat("/dev/vhost-net")
	return err == nil
}

// repack makes an image from another one, if that exists, and adds or replaces files: path in the image to file.
func repack(ctx context.Context, from, to, name string, files map[string]string) error {
	root, err := os.MkdirTemp(filepath.Dir(to), "root-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	script := `mkdir -p "$1/tmp"; chmod 1777 "$1/tmp"; test -z "$2" || tar -xOf "$2" --wildcards '*layer.tar' | tar -xf - -C "$1"`
	unpack := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script, "sh", root, from)
	if out, err := unpack.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w: %s", from, err, out)
	}
	for path, source := range files {
		at := filepath.Join(root, path)
		data, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, data, 0o755); err != nil {
			return err
		}
	}
	pack := exec.CommandContext(ctx, filepath.Join(cacheDir(), "bin", "mkimage"), "-root", root, "-tag", name, "-o", to)
	if out, err := pack.CombinedOutput(); err != nil {
		return fmt.Errorf("mkimage %s: %w: %s", name, err, out)
	}
	return nil
}

// load loads images on all nodes.
func (w *world) load(archives ...string) {
	w.t.Helper()
	w.must(each(len(w.nodes), func(i int) error {
		_, err := w.nodes[i].sh(w.ctx, "for f in "+strings.Join(archives, " ")+
			"; do ctr -n k8s.io images import --all-platforms $f; done")
		return err
	}))
}
