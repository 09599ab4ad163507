package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestDHCP checks that nodes whose main interfaces get their addresses from a DHCP server publish them to each other; in make
// test-all, the network is then renumbered, and they must reach each other again.
func TestDHCP(t *testing.T) {
	if _, err := exec.LookPath("dnsmasq"); err != nil {
		t.Skip("there is no DHCP server here: install dnsmasq-base")
	}
	w := newWorld(t, mode{dataplane: "vpp", transport: "vxlan", dhcp: true}, 2)
	stop := w.serveDHCP("172.20.0")
	w.within(60*time.Second, "both nodes have a lease", func() error { return w.leasedFrom("172.20.0.") })
	pods := w.podPerNode()
	w.mesh(pods)
	defer func() { stop() }()
	if !matrix.All() {
		return // a lease lasts at least two minutes; dataplane/vpp tests a change of address with shorter ones
	}
	stop()
	stop = w.serveDHCP("172.21.0")
	w.within(150*time.Second, "both nodes have a new lease", func() error { return w.leasedFrom("172.21.0.") })
	w.mesh(pods)
}

// serveDHCP leases addresses of a /24 on the network that connects nodes, for two minutes each, which is the minimum that dnsmasq
// supports; clients renew after half of it.
func (w *world) serveDHCP(network string) (stop func()) {
	w.t.Helper()
	_, err := w.Underlay.Run(w.ctx, "ip", "addr", "add", network+".1/24", "dev", "uplink")
	w.must(err)
	ctx, cancel := context.WithCancel(w.ctx)
	cmd := w.Underlay.Command(ctx, "dnsmasq", "--no-daemon", "--port=0", "--conf-file=/dev/null", "--interface=uplink", "--dhcp-authoritative",
		"--dhcp-range="+network+".10,"+network+".50,2m", "--dhcp-leasefile="+filepath.Join(w.t.TempDir(), "leases"))
	w.must(cmd.Start())
	return func() {
		cancel()
		_ = cmd.Wait() // returns an error because the process was killed
		_, _ = w.Underlay.Run(w.ctx, "ip", "addr", "del", network+".1/24", "dev", "uplink")
	}
}

// leasedFrom returns an error that names a node without an address that begins with prefix.
func (w *world) leasedFrom(prefix string) error {
	for _, n := range w.Nodes {
		var report struct{ NodeIP string }
		if err := n.GetJSON(w.ctx, "/contiv/v1/ipam", &report); err != nil {
			return err
		}
		if !strings.HasPrefix(report.NodeIP, prefix) {
			return fmt.Errorf("%s has %q", n.Name, report.NodeIP)
		}
	}
	return nil
}
