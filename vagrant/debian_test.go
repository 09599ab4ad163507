package vagrant

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/imagepack"
)

// repositoryIP is the address of pkgs.k8s.io in the test.
const repositoryIP = "127.0.83.83"

// TestOnDebian runs the script in a new Debian 12 from mmdebstrap: apt, curl, containerd and ctr are the real ones. Of the
// network only pkgs.k8s.io is replaced, by a server with a certificate and a signed repository; of the machine, the commands
// that would change this machine are replaced: swap, modules, sysctl, services. It takes minutes and needs Debian's archive,
// so it runs only on request.
func TestOnDebian(t *testing.T) {
	if os.Getenv("CONTIV_PROVISION") == "" {
		t.Skip("provisioning a fresh Debian: set CONTIV_PROVISION=1 (root, mmdebstrap, gpg, network; about two minutes)")
	}
	d := newDebian(t)
	d.repository()
	d.provision("ROLE=control-plane", "DATAPLANE=vpp")
	m := &machine{t: t, root: d.root}
	m.has("keys", m.read("etc/apt/keyrings/kubernetes.asc"), "BEGIN PGP PUBLIC KEY BLOCK")
	m.has("kubelet's flags", m.read("etc/default/kubelet"), "--node-ip=127.0.0.1")
	m.has("calls", m.read("calls"), "modprobe vfio-pci", "swapoff -a", "sysctl -q --system", "systemctl restart containerd",
		"kubeadm init --apiserver-advertise-address=127.0.0.1", "kubectl apply -f /etc/contiv-vpp.yaml", "kubectl label node")
	// The configuration that containerd itself reports.
	m.has("containerd", m.read("var/tmp/containerd.dump"), "SystemdCgroup = true", `bin_dir = "/opt/cni/bin"`)
	m.has("images", m.read("var/tmp/images"), "docker.io/contiv/agent:")
	m.has("held packages", m.read("var/tmp/held"), "kubeadm", "kubectl", "kubelet")
	if config := m.read("etc/contiv-vpp.yaml"); !strings.Contains(config, "interfaceName: host-lo, ip: 127.0.0.101/24") {
		t.Errorf("the nodes' NICs are not in what is applied")
	}
	if again := d.provision("ROLE=control-plane", "DATAPLANE=vpp"); strings.Contains(again, "kubeadm init") {
		t.Errorf("a second cluster: %s", again)
	}
}

// debian is a root file system.
type debian struct {
	t    *testing.T
	root string
	work string
	key  *ecdsa.PrivateKey
	cert []byte
}

func newDebian(t *testing.T) *debian {
	t.Helper()
	d := &debian{t: t, root: filepath.Join(t.TempDir(), "root"), work: t.TempDir()}
	d.run("mmdebstrap", "--quiet", "--variant=minbase", "--include=iproute2", "bookworm", d.root, "http://deb.debian.org/debian")
	d.certificate()
	d.write("etc/hosts", "127.0.0.1 localhost\n"+repositoryIP+" pkgs.k8s.io\n", 0o644)
	resolv, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	d.write("etc/resolv.conf", string(resolv), 0o644)
	for _, name := range []string{"swapoff", "modprobe", "sysctl"} {
		d.write("usr/local/sbin/"+name, "#!/bin/sh\necho \""+name+" $*\" >>/calls\n", 0o755)
	}
	// systemd does not run here; this script does its work.
	d.write("usr/local/sbin/systemctl", `#!/bin/sh
echo "systemctl $*" >>/calls
[ "$*" = "restart containerd" ] || exit 1
containerd config dump >/var/tmp/containerd.dump || exit 1
containerd >/var/log/containerd.log 2>&1 &
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	! ctr version >/dev/null 2>&1 || exit 0
	sleep 1
done
cat /var/log/containerd.log >&2
exit 1
`, 0o755)
	d.write("contiv/provision.sh", string(d.read("provision.sh")), 0o755)
	d.write("contiv/k8s/contiv-vpp.yaml", string(d.read("../k8s/contiv-vpp.yaml")), 0o644)
	d.image()
	return d
}

// image provides an image of `make images`, if there is one, otherwise a minimal one.
func (d *debian) image() {
	d.t.Helper()
	if archive, err := os.ReadFile("../bin/images/agent.tar"); err == nil {
		d.write("contiv/bin/images/agent.tar", string(archive), 0o644)
		return
	}
	image := imagepack.Image{
		Tag: "docker.io/contiv/agent:test", Arch: runtime.GOARCH, Files: []imagepack.File{{Path: "tmp", Dir: true}},
	}
	var b bytes.Buffer
	if _, err := image.Write(&b); err != nil {
		d.t.Fatal(err)
	}
	d.write("contiv/bin/images/agent.tar", b.String(), 0o644)
}

func (d *debian) read(path string) []byte {
	d.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	return data
}

func (d *debian) write(path, text string, mode os.FileMode) {
	d.t.Helper()
	path = filepath.Join(d.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		d.t.Fatal(err)
	}
}

func (d *debian) run(name string, args ...string) []byte {
	d.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "GNUPGHOME="+d.work)
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// provision runs the script in the root, with its own processes and mounts, and returns its calls of replaced commands.
func (d *debian) provision(env ...string) (calls string) {
	d.t.Helper()
	_ = os.Remove(filepath.Join(d.root, "calls"))
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", `
mount --make-rprivate /
mount --rbind /dev "$0/dev"
mount -t proc proc "$0/proc"
mount --rbind /sys "$0/sys"
mount -t tmpfs tmpfs "$0/run"
chroot "$0" sh -euc '/contiv/provision.sh; ctr -n k8s.io images list -q >/var/tmp/images; apt-mark showhold >/var/tmp/held'
`, d.root)
	cmd.Env = append([]string{
		"PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "CONTIV=/contiv",
		"NODE_IP=127.0.0.1", "CONTROL_PLANE_IP=127.0.0.1", "NODE_NAMES=node-1",
	}, env...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%v: %v\n%s", env, err, out)
	}
	d.t.Logf("%v: %s", env, time.Since(start).Round(time.Second))
	return string(d.read(filepath.Join(d.root, "calls")))
}

// certificate makes a certificate for pkgs.k8s.io, which the root trusts as soon as it has ca-certificates.
func (d *debian) certificate() {
	d.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		d.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pkgs.k8s.io"}, DNSNames: []string{"pkgs.k8s.io"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if d.cert, err = x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key); err != nil {
		d.t.Fatal(err)
	}
	d.key = key
	d.write("usr/local/share/ca-certificates/test.crt",
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.cert})), 0o644)
}

// repository serves pkgs.k8s.io: a signed repository with packages whose programs record their calls.
func (d *debian) repository() {
	d.t.Helper()
	files := map[string][]byte{}
	packages := ""
	for name, body := range map[string]string{
		"kubelet": "", "kubectl": "", "kubeadm": "mkdir -p /etc/kubernetes\necho x >/etc/kubernetes/admin.conf\n",
	} {
		deb := d.packed(name, "#!/bin/sh\necho \""+name+" $*\" >>/calls\n"+body)
		files[name+".deb"] = deb
		packages += fmt.Sprintf("Package: %s\nVersion: 1.34.0-1\nArchitecture: all\nMaintainer: test\nFilename: %s.deb\nSize: %d\n"+
			"SHA256: %x\nDescription: stand-in\n\n", name, name, len(deb), sha256.Sum256(deb))
	}
	files["Packages"] = []byte(packages)
	release := fmt.Sprintf("Origin: test\nSuite: test\nDate: %s\nSHA256:\n %x %d Packages\n",
		time.Now().UTC().Format(time.RFC1123), sha256.Sum256(files["Packages"]), len(packages))
	plain := filepath.Join(d.work, "Release")
	if err := os.WriteFile(plain, []byte(release), 0o644); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { d.run("gpgconf", "--kill", "gpg-agent") })
	d.run("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "test")
	files["Release.key"] = d.run("gpg", "--batch", "--armor", "--export")
	d.run("gpg", "--batch", "--quiet", "--clearsign", plain)
	files["InRelease"] = d.read(plain + ".asc")

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[strings.TrimPrefix(r.URL.Path, "/core:/stable:/v1.34/deb/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}))
	listener, err := net.Listen("tcp", repositoryIP+":443")
	if err != nil {
		d.t.Fatal(err)
	}
	server.Listener = listener
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{d.cert}, PrivateKey: d.key}}}
	server.StartTLS()
	d.t.Cleanup(server.Close)
}

// packed returns a Debian package with one program.
func (d *debian) packed(name, program string) []byte {
	d.t.Helper()
	dir := filepath.Join(d.work, name)
	for path, text := range map[string]string{
		"DEBIAN/control":  "Package: " + name + "\nVersion: 1.34.0-1\nArchitecture: all\nMaintainer: test\nDescription: stand-in\n",
		"usr/bin/" + name: program,
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			d.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			d.t.Fatal(err)
		}
	}
	d.run("dpkg-deb", "--root-owner-group", "--build", dir, dir+".deb")
	return d.read(dir + ".deb")
}
