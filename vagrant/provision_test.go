package vagrant

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
)

// machine is a machine whose commands only record their calls.
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
	m.stub("ip", `[ "$*" = "-o addr show to 192.0.2.11" ] && echo "3: eth1    inet 192.0.2.11/24 scope global eth1"`)
	m.stub("kubectl", `case "$*" in "apply -f "*) cp "$3" "$ROOT/applied.yaml";; esac`)
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
	_ = os.Remove(filepath.Join(m.root, "calls")) // calls of the previous run
	repo, err := filepath.Abs("..")
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command("sh", "provision.sh")
	cmd.Env = append([]string{
		"PATH=" + m.bin + ":" + os.Getenv("PATH"), "ROOT=" + m.root, "CONTIV=" + repo,
		"NODE_IP=192.0.2.11", "CONTROL_PLANE_IP=192.0.2.11", "NODE_NAMES=node-1 node-2",
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

// TestControlPlane checks that the first node gets a cluster without kube-proxy and the manifests, whose pods use the API
// server's own address; a second run makes no second cluster.
func TestControlPlane(t *testing.T) {
	m := newMachine(t)
	calls, err := m.provision("ROLE=control-plane", "DATAPLANE=vpp")
	if err != nil {
		t.Fatal(err)
	}
	m.has("calls", calls, "swapoff -a", "modprobe vxlan", "modprobe vfio-pci", "sysctl -q --system",
		"install -qy kubelet kubeadm kubectl",
		"kubeadm init --apiserver-advertise-address=192.0.2.11", "--skip-phases=addon/kube-proxy", "kubectl apply -f",
		"kubectl label node --overwrite node-1 contiv.dev/dataplane=vpp")
	if !regexp.MustCompile(` --token=[a-z0-9]{6}\.[a-z0-9]{16} `).MatchString(calls) {
		t.Errorf("kubeadm refuses this token: %s", calls)
	}
	m.has("sysctl", m.read("etc/sysctl.d/90-contiv.conf"), "net.ipv4.ip_forward=1", "vm.nr_hugepages=256")
	m.has("containerd", m.read("etc/containerd/config.toml"), "SystemdCgroup = true", "/opt/cni/bin")
	m.has("kubelet", m.read("etc/default/kubelet"), "--node-ip=192.0.2.11")
	agents := 0
	for _, d := range m.applied() {
		if d["kind"] != "DaemonSet" {
			continue
		}
		agents++
		text, err := yaml.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		m.has("DaemonSet", string(text), "name: CONTIV_KUBERNETES_SERVER", "value: https://192.0.2.11:6443",
			"name: CONTIV_NODE_NAME")
	}
	if agents == 0 {
		t.Error("no DaemonSet was applied")
	}
	if calls, err = m.provision("ROLE=control-plane", "DATAPLANE=vpp"); err != nil || strings.Contains(calls, "kubeadm init") {
		t.Errorf("again: %v\n%s", err, calls)
	}
}

// applied returns the objects of the last kubectl apply.
func (m *machine) applied() []map[string]any {
	m.t.Helper()
	var all []map[string]any
	for dec := yaml.NewDecoder(strings.NewReader(m.read("applied.yaml"))); ; {
		var d map[string]any
		if err := dec.Decode(&d); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			m.t.Fatalf("what is applied is not YAML: %v", err)
		}
		all = append(all, d)
	}
}

// TestNodesUseThePrivateNetwork checks that machines reach each other by the NIC with the node's address, not by that of the
// default route; VPP shares the NIC, with its own address; the rest of contiv.conf is the chart's.
func TestNodesUseThePrivateNetwork(t *testing.T) {
	for dataplane, want := range map[string][]string{
		"linux": {"eth1 []", "eth1 []"},
		"vpp":   {"host-eth1 [192.0.2.101/24]", "host-eth1 [192.0.2.102/24]"},
	} {
		m := newMachine(t)
		if _, err := m.provision("ROLE=control-plane", "DATAPLANE="+dataplane); err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, d := range m.applied() {
			if meta, _ := d["metadata"].(map[string]any); d["kind"] == "ConfigMap" && meta["name"] == "contiv-agent-cfg" {
				data, _ := d["data"].(map[string]any)
				text, _ = data["contiv.conf"].(string)
			}
		}
		for i, name := range []string{"node-1", "node-2"} {
			conf, err := conffile.Load([]byte(text), contivconf.Env{NodeName: name})
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			nic := conf.Node().MainVPPInterface
			if got := fmt.Sprint(nic.InterfaceName, " ", nic.IPs); got != want[i] {
				t.Errorf("%s on %s: %s, want %s", name, dataplane, got, want[i])
			}
			if got := fmt.Sprint(conf.IPAM().PodSubnetCIDR); got != "[10.1.0.0/16]" {
				t.Errorf("the chart's contiv.conf is lost: %s in\n%s", got, text)
			}
		}
	}
}

// TestWorker checks that a worker joins once, and loads no drivers for VPP on Linux.
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

// TestFaults checks that a wrong role ends the script before anything is changed, and that a step that fails ends the
// script.
func TestFaults(t *testing.T) {
	m := newMachine(t)
	for _, env := range [][]string{{"ROLE=master"}, {"ROLE=worker", "DATAPLANE=ovs"}, {"ROLE=worker", "NODE_IP="}} {
		if calls, err := m.provision(env...); err == nil || calls != "" {
			t.Errorf("%v: %v, calls %q", env, err, calls)
		}
	}
	m.stub("ip", "true") // the machine has another address
	if calls, err := m.provision("ROLE=control-plane"); err == nil || strings.Contains(calls, "kubectl apply") {
		t.Errorf("without a NIC: %v, calls %q", err, calls)
	}
	m.stub("sysctl", "exit 1")
	if calls, err := m.provision("ROLE=worker"); err == nil || strings.Contains(calls, "apt-get") {
		t.Errorf("after a failed step: %v, %s", err, calls)
	}
}

// TestShellcheck checks the script with shellcheck.
func TestShellcheck(t *testing.T) {
	bin, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck is not installed")
	}
	if out, err := exec.Command(bin, "provision.sh").CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
}

// TestVagrantfile checks that Vagrant accepts the file with every valid number of machines, and rejects numbers for which it
// has no addresses.
func TestVagrantfile(t *testing.T) {
	bin, err := exec.LookPath("vagrant")
	if err != nil {
		t.Skip("vagrant validate: vagrant is not installed")
	}
	// VirtualBox itself is not needed to check its section.
	m := &machine{t: t, root: t.TempDir(), bin: t.TempDir()}
	m.stub("VBoxManage", "echo 7.0.14r161095")
	for _, tc := range []struct{ env, want string }{
		{"NODES=9", "successfully"}, {"NODES=0", "use 1 to 9"}, {"NODES=10", "use 1 to 9"}, {"NODES=two", `"two"`},
	} {
		cmd := exec.Command(bin, "validate")
		cmd.Env = append(os.Environ(), "PATH="+m.bin+":"+os.Getenv("PATH"), "ROOT="+m.root, "VAGRANT_HOME="+m.root,
			"VAGRANT_DOTFILE_PATH="+m.root, "VAGRANT_DEFAULT_PROVIDER=virtualbox", "HOME="+m.root, tc.env)
		out, err := cmd.CombinedOutput()
		if (err == nil) != (tc.want == "successfully") || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: %v, want %s in\n%s", tc.env, err, tc.want, out)
		}
	}
}
