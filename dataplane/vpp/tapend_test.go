package vpp

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"

	"contiv.dev/vswitch/dataplane/links"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// tapMaker records the calls of the Linux side.
type tapMaker struct {
	calls []string
	made  bool
	err   error
}

func (m *tapMaker) deps() Deps {
	return Deps{Interfaces: iface.Deps{
		MakeTap: func(netns, dev string, tun bool) (bool, error) {
			m.calls = append(m.calls, "make "+netns+" "+dev+map[bool]string{true: " tun"}[tun])
			return m.made, m.err
		},
		DropTap: func(netns, dev string) error {
			m.calls = append(m.calls, "drop "+netns+" "+dev)
			return nil
		},
	}}
}

func podTap(ns, dev string) *vpp_interfaces.Interface {
	return tap("pod", func(v *vpp_interfaces.Interface) {
		v.GetTap().ToMicroservice, v.GetTap().HostIfName = ns, dev
	})
}

// The Linux side makes the device before VPP attaches to it, and removes the device when VPP refuses.
func TestTapEndMadeAhead(t *testing.T) {
	f := vppfake.New(vppfake.Config{})
	t.Cleanup(func() { f.Close() })
	g := &target{fake: f, socket: filepath.Join(t.TempDir(), "api.sock")}
	if err := f.Listen(g.socket); err != nil {
		t.Fatal(err)
	}
	m := &tapMaker{made: true}
	a := newAgent(t, g, m.deps())
	expect := func(when string, want ...string) {
		t.Helper()
		if !slices.Equal(m.calls, want) {
			t.Errorf("%s: the Linux side was asked for %q, want %q", when, m.calls, want)
		}
		m.calls = nil
	}
	try := func(v *vpp_interfaces.Interface) error {
		_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.FullResync, Values: kvs(t, values{v}), NoRetry: true})
		return err
	}
	a.resync(podTap("/run/netns/pod", "eth0"))
	expect("made", "make pod eth0")
	a.mustNotWrite("again", values{podTap("/run/netns/pod", "eth0")})
	expect("nothing to do")
	a.resync(tap("host"))
	expect("a TAP in VPP's own namespace")

	refused := f.Faults.Add(vppfake.Fault{Message: "tap_create_v3", Retval: int32(api.SYSCALL_ERROR_2)})
	var failed *txn.Error
	if err := try(podTap("pod", "eth0")); !errors.As(err, &failed) || failed.Escalate() {
		t.Errorf("VPP rejects the device in the pod, which the pod can cause: %v, want an error of this pod only", err)
	}
	expect("refused", "make pod eth0", "drop pod eth0")
	m.made = false
	if try(podTap("pod", "eth1")) == nil {
		t.Error("VPP refused, and there is no error")
	}
	expect("refused what is not ours to remove", "make pod eth1")
	if err := try(tap("host")); !errors.As(err, &failed) || !failed.Escalate() {
		t.Errorf("VPP rejects a TAP of the node: %v", err)
	}
	expect("refused, of the node")
	refused.Remove()

	m.err = errors.New("no such namespace")
	if err := try(podTap("pod", "eth2")); !errors.Is(err, m.err) {
		t.Errorf("%v, want %v", err, m.err)
	}
	expect("failed", "make pod eth2")
	if refused.Hits() != 3 {
		t.Errorf("VPP was asked %d times", refused.Hits())
	}
}

// If VPP cannot make the TAP of a pod, the error is of this pod only for the return codes that the state of its namespace causes. All others make the
// node unready.
func TestTapThatVPPRejects(t *testing.T) {
	f := vppfake.New(vppfake.Config{})
	t.Cleanup(func() { f.Close() })
	g := &target{fake: f, socket: filepath.Join(t.TempDir(), "api.sock")}
	if err := f.Listen(g.socket); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, g, (&tapMaker{made: true}).deps())
	for code, podOnly := range map[api.VPPApiError]bool{
		api.SYSCALL_ERROR_2: true, api.SYSCALL_ERROR_3: true, api.NETLINK_ERROR: true,
		api.SYSCALL_ERROR_1: false, // /dev/vhost-net
		api.UNSUPPORTED:     false, // features of vhost-net
		api.INIT_FAILED:     false, // the rings
		api.UNSPECIFIED:     false, // too many TAPs
	} {
		refused := f.Faults.Add(vppfake.Fault{Message: "tap_create_v3", Retval: int32(code)})
		_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.FullResync, Values: kvs(t, values{podTap("pod", "eth0")}), NoRetry: true})
		var failed *txn.Error
		if !errors.As(err, &failed) || failed.Escalate() == podOnly || refused.Hits() != 1 {
			t.Errorf("%v: error %v, %d requests; of one pod only: want %t", code, err, refused.Hits(), podOnly)
		}
		refused.Remove()
	}
}

// With the real Linux side and the real VPP: the device carries packets without the kernel's queueing disciplines, and is
// deleted with the TAP.
func TestTapEndOnRealVPP(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{Vhostshim: true})
	ns := "cvtest-ahead"
	_ = exec.Command("ip", "netns", "del", ns).Run() // a leftover
	run(t, "ip netns add "+ns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	linux := links.NewBackend(links.Config{})
	t.Cleanup(linux.Close)
	deps := Deps{Interfaces: iface.Deps{
		MakeTap: func(netns, dev string, tun bool) (bool, error) {
			defer linux.Flush(t.Context())
			return linux.MakeTap(netns, dev, tun)
		},
		DropTap: linux.DropTap,
	}}
	g := &target{socket: v.Socket(), real: v}
	pod := podTap("/var/run/netns/"+ns, "eth0")
	pod.IpAddresses = []string{"10.1.0.1/24"}
	a := newAgent(t, g, deps)
	a.resync(pod)
	a.mustNotWrite("made", values{pod})
	if out := run(t, "ip -n "+ns+" link show eth0"); !strings.Contains(out, "qdisc noqueue") || !strings.Contains(out, ",UP") {
		t.Errorf("the device is not as it was made: %s", out)
	}
	run(t, "ip -n "+ns+" addr add 10.1.0.2/24 dev eth0 && ip netns exec "+ns+" ping -c 2 -W 2 10.1.0.1")
	a.commit(txn.Update, deletions(t, values{pod})...)
	if err := exec.Command("ip", "-n", ns, "link", "show", "eth0").Run(); err == nil {
		t.Error("the device is still there after the TAP was deleted")
	}
}
