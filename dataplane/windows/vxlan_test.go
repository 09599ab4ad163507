package windataplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

func remote(dst, node string) *proto.RouteUpdate {
	return &proto.RouteUpdate{Types: proto.RouteUpdate_TYPES_REMOTE_WORKLOAD, IpPoolType: proto.IPPoolType_VXLAN, Dst: dst,
		DstNodeName: node, DstNodeIp: "192.0.2.2"}
}

func vtep(node, parent string) *proto.VXLANTunnelEndpointUpdate {
	return &proto.VXLANTunnelEndpointUpdate{Node: node, Mac: "66:00:00:00:00:0a", Ipv4Addr: "10.66.0.0", ParentDeviceIp: parent}
}

// subnets returns the remote subnets of the overlay, as "prefix address".
func (b *bench) subnets() []string {
	b.t.Helper()
	n, _ := b.host.Network("contiv")
	list, err := hcn.SettingsOf[hcn.RemoteSubnetSettings](n.Policies, hcn.TypeRemoteSubnet)
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, s := range list {
		if s.IsolationID != uint16(b.d.config.VXLANID) || s.DistributedRouterMacAddress != "66-00-00-00-00-0A" {
			b.t.Errorf("%+v", s)
		}
		out = append(out, s.DestinationPrefix+" "+s.ProviderAddress)
	}
	slices.Sort(out)
	return out
}

func (b *bench) expectSubnets(what string, want ...string) {
	b.t.Helper()
	if got := b.subnets(); !slices.Equal(got, want) {
		b.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestOverlayOfAnotherProgram: remote subnets are those of the configured network, in whichever order HNS lists the overlays.
func TestOverlayOfAnotherProgram(t *testing.T) {
	host := newHost(t, hcn.Overlay)
	contiv, _ := host.Network("contiv")
	if _, err := host.V2().CreateNetwork(hcn.Network{Name: "alien", Type: hcn.Overlay, IPAMs: contiv.IPAMs}); err != nil {
		t.Fatal(err)
	}
	host.Disorder(rand.New(rand.NewPCG(1, 7)))
	b := newBenchOn(t, Config{VXLANEnabled: true}, host)
	b.must(vtep("node2", "192.0.2.2"))
	var want []string
	for i := range 8 {
		dst := fmt.Sprintf("10.66.%d.0/26", i)
		b.must(remote(dst, "node2"))
		want = append(want, dst+" 192.0.2.2")
	}
	b.expectSubnets("two overlays", want...)
	if n, _ := host.Network("alien"); len(n.Policies) > 0 {
		t.Errorf("the overlay of another program has %v", n.Policies)
	}
	// A full comparison finds all of them, in any order.
	b.writes()
	for range 3 {
		b.d.resync()
		b.must()
	}
	if w := b.writes(); len(w) > 0 {
		t.Errorf("looks with nothing changed write %v", w)
	}
}

func TestRemoteSubnets(t *testing.T) {
	b := overlayBench(t, nil)
	b.must(remote("10.66.1.0/26", "node2"))
	b.expectSubnets("route without an end")
	b.must(vtep("node2", "192.0.2.2"), vtep("node1", "192.0.2.1"), remote("10.66.0.0/26", "node1"))
	b.expectSubnets("own routes do not count", "10.66.1.0/26 192.0.2.2")
	b.must(remote("10.66.2.0/26", "node2"))
	b.expectSubnets("second", "10.66.1.0/26 192.0.2.2", "10.66.2.0/26 192.0.2.2")
	b.writes()
	b.must(vtep("node2", "192.0.2.3"))
	b.expectSubnets("the node has moved", "10.66.1.0/26 192.0.2.3", "10.66.2.0/26 192.0.2.3")
	var ops []string
	for _, c := range b.writes() {
		ops = append(ops, c.Op)
	}
	if want := []string{"RemoveNetworkPolicies", "RemoveNetworkPolicies", "AddNetworkPolicies", "AddNetworkPolicies"}; !slices.Equal(ops, want) {
		t.Errorf("%v, want removals before additions", ops)
	}
	b.must(vtep("node2", "192.0.2.3"))
	if w := b.writes(); len(w) > 0 {
		t.Errorf("nothing changed: %v", w)
	}
	b.must(&proto.RouteRemove{Dst: "10.66.2.0/26"}, &proto.RouteUpdate{Types: proto.RouteUpdate_TYPES_REMOTE_WORKLOAD,
		IpPoolType: proto.IPPoolType_NO_ENCAP, Dst: "10.66.1.0/26", DstNodeName: "node2"})
	b.expectSubnets("removed, and of another pool")
	b.must(remote("10.66.1.0/26", "node2"), &proto.VXLANTunnelEndpointRemove{Node: "node2"})
	b.expectSubnets("the node has gone")
	b.must(&proto.RouteUpdate{Type: proto.RouteType_REMOTE_WORKLOAD, IpPoolType: proto.IPPoolType_VXLAN, Dst: "10.66.1.0/26",
		DstNodeName: "node2"}, vtep("node2", "192.0.2.2"))
	b.expectSubnets("kind of a route as the seed's time has it", "10.66.1.0/26 192.0.2.2")
	b.writes()
	again := newBenchOn(t, Config{VXLANEnabled: true}, b.host)
	again.must(remote("10.66.1.0/26", "node2"), vtep("node2", "192.0.2.2"))
	if w := again.writes(); len(w) > 0 {
		t.Errorf("a restart wrote %v", w)
	}
	again = newBenchOn(t, Config{VXLANEnabled: true}, b.host)
	again.must()
	again.expectSubnets("a restart without the node")
}

// TestUpdatesFailed: one subnet that HNS rejects is named, is retried, and does not block the others.
func TestUpdatesFailed(t *testing.T) {
	b := overlayBench(t, nil)
	fail := true
	b.host.Hook(func(c hnsmem.Call) error {
		if c.Op == "AddNetworkPolicies" && fail {
			fail = false
			return errors.New("no luck")
		}
		return nil
	})
	err := b.step(vtep("node2", "192.0.2.2"), remote("10.66.1.0/26", "node2"), remote("10.66.2.0/26", "node2"))
	if !errors.Is(err, ErrUpdatesFailed) || !strings.Contains(err.Error(), "10.66.1.0/26") {
		t.Errorf("%v, want ErrUpdatesFailed that names the subnet", err)
	}
	b.expectSubnets("the other one", "10.66.2.0/26 192.0.2.2")
	b.must()
	b.expectSubnets("tried again", "10.66.1.0/26 192.0.2.2", "10.66.2.0/26 192.0.2.2")
	if err := b.step(remote("nonsense", "node2"), remote("10.66.3.0/26", "node2")); !errors.Is(err, ErrUpdatesFailed) {
		t.Errorf("a route that makes no sense: %v", err)
	}
	b.expectSubnets("beside nonsense", "10.66.1.0/26 192.0.2.2", "10.66.2.0/26 192.0.2.2", "10.66.3.0/26 192.0.2.2")
}

// TestOverlayIsAsConfigured: a network with another VNI or port would send tunnel packets to ports where no node listens, so it is rejected.
func TestOverlayIsAsConfigured(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"VXLANID":   func(c *Config) { c.VXLANID = 5000 },
		"VXLANPort": func(c *Config) { c.VXLANPort = 8472 },
	} {
		b := overlayBench(t, change)
		err := b.step(vtep("node2", "192.0.2.2"), remote("10.66.1.0/26", "node2"))
		if !errors.Is(err, ErrUpdatesFailed) || !strings.Contains(err.Error(), name) || len(b.subnets()) > 0 {
			t.Errorf("%s: %v, subnets %v", name, err, b.subnets())
		}
	}
	port, err := hcn.NewPolicy(hcn.TypeVxlanPort, hcn.VxlanPortSettings{Port: 8472})
	if err != nil {
		t.Fatal(err)
	}
	b := overlayBench(t, func(c *Config) { c.VXLANPort = 8472 }, port)
	b.must(vtep("node2", "192.0.2.2"), remote("10.66.1.0/26", "node2"))
	b.expectSubnets("port", "10.66.1.0/26 192.0.2.2")
	b = newBench(t, Config{VXLANEnabled: true})
	if err := b.step(vtep("node2", "192.0.2.2"), remote("10.66.1.0/26", "node2")); !errors.Is(err, ErrUpdatesFailed) {
		t.Errorf("no overlay network: %v", err)
	}
}
