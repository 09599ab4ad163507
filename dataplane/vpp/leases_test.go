package vpp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/test/testbed/poll"
)

// leaseWatch records an agent's leases.
type leaseWatch struct {
	*iface.Leases
	t    *testing.T
	seen chan string
	stop func()
}

func watchLeases(t *testing.T, a *agent, ifName string) *leaseWatch {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	w := &leaseWatch{Leases: iface.NewLeases(a.conn, a.idx, log), t: t, seen: make(chan string, 100)}
	w.Every = 50 * time.Millisecond
	jobs := lifecycle.NewGroup(context.Background(), log)
	jobs.Go("leases", w.Run)
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(w.stop)
	err := w.WatchDHCPLeases(ifName, func(ip net.IP, network *net.IPNet, gateway net.IP) {
		w.seen <- fmt.Sprintf("%s %s %v", ip, network, gateway)
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *leaseWatch) expect(want string) {
	w.t.Helper()
	select {
	case got := <-w.seen:
		if got != want {
			w.t.Fatalf("lease %q, want %q", got, want)
		}
	case <-time.After(20 * time.Second):
		w.t.Fatalf("no lease, want %q", want)
	}
}

func (w *leaseWatch) expectNone(ifName string) {
	w.t.Helper()
	poll.Await(w.t, "loss of the lease", 20*time.Second, func() bool {
		_, ok := w.Lease(ifName)
		return !ok
	})
}

// onDHCP runs a test against the fake and against the real VPP: nic is an interface behind which give acts as the DHCP
// server.
func onDHCP(t *testing.T, run func(t *testing.T, g *target, nic *vpp_interfaces.Interface,
	give func(address, gateway string))) {
	t.Run("fake", func(t *testing.T) {
		f := vppfake.New(vppfake.Config{Seed: 1})
		t.Cleanup(func() { f.Close() })
		g := &target{socket: filepath.Join(t.TempDir(), "api.sock"), fake: f}
		if err := f.Listen(g.socket); err != nil {
			t.Fatal(err)
		}
		run(t, g, loop("nic", ""), func(address, gateway string) {
			p, gw := parseLease(address, gateway)
			if err := f.Lease("cv:nic", p, gw); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("real", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("DHCP on a real VPP takes root")
		}
		ns := fmt.Sprintf("cvdhcp-%d", os.Getpid())
		shell(t, "ip netns add "+ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		shell(t, "ip -n "+ns+" link add vpp0 type veth peer name srv0 && ip -n "+ns+" link set vpp0 up && ip -n "+ns+
			" link set srv0 up && ip -n "+ns+" addr add 10.77.0.1/24 dev srv0 && ip netns exec "+ns+" ethtool -K srv0 tx off")
		v := vpptest.Start(t, vpptest.Options{Netns: ns})
		server := startDHCP(t, ns, "srv0", "10.77.0.1")
		run(t, &target{socket: v.Socket(), real: v}, afPacket("nic", "vpp0"), func(address, gateway string) {
			p, gw := parseLease(address, gateway)
			server.lease(p, gw, 2*time.Second) // VPP renews the lease after half of this time
		})
	})
}

func shell(t *testing.T, command string) { t.Helper(); run(t, command) }

func parseLease(address, gateway string) (p netip.Prefix, gw netip.Addr) {
	if address != "" {
		p = netip.MustParsePrefix(address)
	}
	if gateway != "" {
		gw = netip.MustParseAddr(gateway)
	}
	return p, gw
}

// A lease is reported when it is obtained, when it changes and when the agent is restarted. Resyncs do not change its
// address and default route; they are removed with the client.
func TestDHCPLeases(t *testing.T) {
	onDHCP(t, func(t *testing.T, g *target, nic *vpp_interfaces.Interface, give func(address, gateway string)) {
		nic.Enabled, nic.SetDhcpClient = true, true
		config := values{nic}
		a := newAgent(t, g, Deps{})
		a.resync()
		before := vppState(t, a)
		a.resync(config...)
		w := watchLeases(t, a, "nic")
		give("10.77.0.50/24", "10.77.0.1")
		w.expect("10.77.0.50 10.77.0.0/24 10.77.0.1")
		a.mustNotWrite("leased", config)
		if d := due(t, a, config); d != "" {
			t.Errorf("looked at alone, due is\n%s", d)
		}
		hasRoutes(t, a, "10.77.0.50/32", "0.0.0.0/0")

		w.stop()
		a.stop()
		a = newAgent(t, g, Deps{})
		w = watchLeases(t, a, "nic")
		a.mustNotWrite("restarted agent", config)
		w.expect("10.77.0.50 10.77.0.0/24 10.77.0.1")
		if l, ok := w.Lease("nic"); !ok || l.Gateway != netip.MustParseAddr("10.77.0.1") {
			t.Errorf("%v %v", l, ok)
		}

		give("10.77.0.60/25", "10.77.0.1")
		w.expect("10.77.0.60 10.77.0.0/25 10.77.0.1")
		a.mustNotWrite("changed", config)

		give("", "")
		w.expectNone("nic")
		a.mustNotWrite("lost", config)
		lacksRoutes(t, a, "10.77.0.60/32")
		give("10.77.0.60/24", "")
		w.expect("10.77.0.60 10.77.0.0/24 <nil>")

		a.commit(txn.Update, deletions(t, config)...)
		if after := vppState(t, a); after != before {
			t.Errorf("VPP is not as before:\n%s", diffText(before, after))
		}
	})
}

// The interface changes from a static address to DHCP and back.
func TestDHCPInsteadOfAddress(t *testing.T) {
	onDHCP(t, func(t *testing.T, g *target, nic *vpp_interfaces.Interface, give func(address, gateway string)) {
		nic.Enabled = true
		static := proto.Clone(nic).(*vpp_interfaces.Interface)
		static.IpAddresses = []string{"10.77.0.50/24", "fd00::50/64"}
		nic.SetDhcpClient, nic.IpAddresses = true, []string{"fd00::50/64"}
		a := newAgent(t, g, Deps{})
		w := watchLeases(t, a, "nic")
		a.resync(static)
		a.commit(txn.Update, kvs(t, values{nic})...)
		lacksRoutes(t, a, "10.77.0.50/32")
		give("10.77.0.50/24", "")
		w.expect("10.77.0.50 10.77.0.0/24 <nil>")
		a.mustNotWrite("leased", values{nic})
		w.stop()
		a.stop()
		a = newAgent(t, g, Deps{}) // this agent's configuration has the address as a static one
		a.resync(static)
		hasRoutes(t, a, "10.77.0.50/32")
		a.mustNotWrite("static again", values{static})
		a.commit(txn.Update, kvs(t, values{nic})...)
		a.resync(nic)
		a.resync()
	})
}

func hasRoutes(t *testing.T, a *agent, prefixes ...string) {
	t.Helper()
	state := vppState(t, a)
	for _, p := range prefixes {
		if !strings.Contains(state, "route 0 "+p+" ") {
			t.Errorf("no route to %s in\n%s", p, state)
		}
	}
}

func lacksRoutes(t *testing.T, a *agent, prefixes ...string) {
	t.Helper()
	state := vppState(t, a)
	for _, p := range prefixes {
		if strings.Contains(state, "route 0 "+p+" ") {
			t.Errorf("a route to %s in\n%s", p, state)
		}
	}
}

func TestWatchLeasesArguments(t *testing.T) {
	l := iface.NewLeases(nil, iface.NewIndex(), slog.New(slog.DiscardHandler))
	if l.WatchDHCPLeases("", func(net.IP, *net.IPNet, net.IP) {}) == nil || l.WatchDHCPLeases("nic", nil) == nil {
		t.Error("taken")
	}
	if _, ok := l.Lease("nic"); ok {
		t.Error("a lease of nothing")
	}
}
