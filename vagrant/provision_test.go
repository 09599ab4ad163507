package vagrant

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// machine is one whose commands only write down that they were called.
type machine struct {
	t    *testing.T
	root string
	bin  string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, root: t.TempDir(), bin: t.TempDir()}
	for _, name := range []string{"swapoff", "modprobe", "sysctl", "apt-get", "apt-mark", "curl", "systemctl", "ctr"} {
		m.stub(name, "")
	}
	m.stub("hostname", "echo node-1")
	m.stub("containerd", "echo '  SystemdCgroup = false'; echo '  bin_dir = \"/usr/lib/cni\"'")
	m.stub("kubectl", `case "$*" in *apply*) cat > "$ROOT/applied.yaml";; esac`)
	m.stub("kubeadm", `mkdir -p "$ROOT/etc/kubernetes"
case $1 in init) f=admin.conf;; join) f=kubelet.conf;; esac
echo x > "$ROOT/etc/kubernetes/$f"`)
	return m
}

func (m *machine) stub(name, body string) {
	m.t.Helper()
	text := "#!/bin/sh\necho \"" + name + " $*\" >> \"$ROOT/calls\"\n" + body + "\n"
	if err := os.WriteFile(filepath.Join(m.bin, name), []byte(text), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

// provision runs the script and returns the calls of this run.
func (m *machine) provision(env ...string) (calls string, err error) {
	m.t.Helper()
	_ = os.Remove(filepath.Join(m.root, "calls")) // of the run before
	repo, err := filepath.Abs("..")
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command("sh", "provision.sh")
	cmd.Env = append([]string{
		"PATH=" + m.bin + ":" + os.Getenv("PATH"), "ROOT=" + m.root, "CONTIV=" + repo,
		"NODE_IP=192.0.2.11", "CONTROL_PLANE_IP=192.0.2.11",
	}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Logf("%v: %s", env, out)
	}
	return m.read("calls"), err
}

func (m *machine) read(name string) string {
	data, err := os.ReadFile(filepath.Join(m.root, name))
	if err != nil {
		return ""
	}
	return string(data)
}

func (m *machine) has(what, text string, wants ...string) {
	m.t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			m.t.Errorf("%s: no %q in\n%s", what, want, text)
		}
	}
}

// TestControlPlane: the first node gets a cluster without kube-proxy and the manifests, whose pods know the API server's own
// address; a second run makes no second cluster.
func TestControlPlane(t *testing.T) {
	m := newMachine(t)
	calls, err := m.provision("ROLE=control-plane", "DATAPLANE=vpp")
	if err != nil {
		t.Fatal(err)
	}
	m.has("calls", calls, "swapoff -a", "modprobe vxlan", "modprobe vfio-pci", "sysctl -q --system",
		"install -qy kubelet kubeadm kubectl",
		"kubeadm init --apiserver-advertise-address=192.0.2.11", "--skip-phases=addon/kube-proxy", "kubectl apply -f -",
		"kubectl label node --overwrite node-1 contiv.dev/dataplane=vpp")
	m.has("sysctl", m.read("etc/sysctl.d/90-contiv.conf"), "net.ipv4.ip_forward=1", "vm.nr_hugepages=256")
	m.has("containerd", m.read("etc/containerd/config.toml"), "SystemdCgroup = true", "/opt/cni/bin")
	m.has("kubelet", m.read("etc/default/kubelet"), "--node-ip=192.0.2.11")
	agents := 0
	for dec := yaml.NewDecoder(strings.NewReader(m.read("applied.yaml"))); ; {
		var d map[string]any
		if err := dec.Decode(&d); err != nil {
			if err.Error() != "EOF" {
				t.Fatalf("what is applied is not YAML: %v", err)
			}
			break
		}
		text, err := yaml.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if d["kind"] == "DaemonSet" {
			agents++
			m.has("DaemonSet", string(text), "name: CONTIV_KUBERNETES_SERVER", "value: https://192.0.2.11:6443",
				"name: CONTIV_NODE_NAME")
		}
	}
	if agents == 0 {
		t.Error("no DaemonSet was applied")
	}
	if calls, err = m.provision("ROLE=control-plane", "DATAPLANE=vpp"); err != nil || strings.Contains(calls, "kubeadm init") {
		t.Errorf("again: %v\n%s", err, calls)
	}
}

// TestWorker joins once, and loads no drivers for VPP on Linux.
func TestWorker(t *testing.T) {
	m := newMachine(t)
	calls, err := m.provision("ROLE=worker", "NODE_IP=192.0.2.12")
	if err != nil {
		t.Fatal(err)
	}
	m.has("calls", calls, "kubeadm join 192.0.2.11:6443")
	for _, not := range []string{"kubeadm init", "kubectl apply", "modprobe vfio-pci"} {
		if strings.Contains(calls, not) {
			t.Errorf("%s was called", not)
		}
	}
	if calls, err = m.provision("ROLE=worker", "NODE_IP=192.0.2.12"); err != nil || strings.Contains(calls, "kubeadm join") {
		t.Errorf("again: %v\n%s", err, calls)
	}
}

// TestFaults: a wrong role ends before anything is touched; a step that fails ends the script.
func TestFaults(t *testing.T) {
	m := newMachine(t)
	for _, env := range [][]string{{"ROLE=master"}, {"ROLE=worker", "DATAPLANE=ovs"}, {"ROLE=worker", "NODE_IP="}} {
		if calls, err := m.provision(env...); err == nil || calls != "" {
			t.Errorf("%v: %v, calls %q", env, err, calls)
		}
	}
	m.stub("sysctl", "exit 1")
	if calls, err := m.provision("ROLE=worker"); err == nil || strings.Contains(calls, "apt-get") {
		t.Errorf("after a failed step: %v, %s", err, calls)
	}
}

// TestShellcheck: the script has no construct that shellcheck knows to go wrong.
func TestShellcheck(t *testing.T) {
	bin, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck is not installed")
	}
	if out, err := exec.Command(bin, "provision.sh").CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
}
