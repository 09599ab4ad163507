package ipnet

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/ipnet/nodeinfo"
	"contiv.dev/vswitch/plugins/nodesync"
)

const natConf = `
ipamConfig:
  podSubnetCIDR: 10.1.0.0/16,fd10:1::/48
  podSubnetOneNodePrefixLen: 24,64
nodeConfig:
- nodeName: n1
  mainVPPInterface: {interfaceName: host-eth1}
`

// addPeer makes another node known.
func (w *node) addPeer(id uint32, vpp, mgmt string) {
	w.t.Helper()
	p := netip.MustParsePrefix(vpp)
	w.nodes.all["peer"] = &nodesync.Node{
		ID: id, Name: "peer", MgmtIPAddresses: []net.IP{net.ParseIP(mgmt)},
		VppIPAddresses: contivconf.IPsWithNetworks{{Version: contivconf.IPv4, Address: p.Addr(), Network: p.Masked()}},
	}
	w.resync()
}

func TestNATNode(t *testing.T) {
	for _, c := range []struct {
		config  string
		outside bool
		uplink  string
	}{
		{natConf, true, "host-eth1"},
		{natConf + "natExternalTraffic: false\n", false, "host-eth1"},
		{natConf + "nodeToNodeTransport: nooverlay\n", true, "host-eth1"},
		{"", false, ""},
	} {
		w := newNode(t, c.config)
		n, ok := w.n.NATNode()
		if !ok || n.Outside != c.outside || n.Uplink != c.uplink || n.Address.String() != "192.168.16.1" ||
			n.Loopback.String() != "10.1.1.254" || n.HostLink.String() != "172.30.1.1" || n.LinuxIf == "" || len(n.Services) != 1 {
			t.Errorf("%s: %+v %v", c.config, n, ok)
		}
	}
	w := newNode(t, "ipamConfig:\n  podSubnetCIDR: fd10:1::/48\n  podSubnetOneNodePrefixLen: 64\n")
	if n, ok := w.n.NATNode(); ok {
		t.Errorf("NAT without IPv4: %+v", n)
	}
}

// TestNextHopTo: by which table VPP reaches an address, and whether the answer finds back.
func TestNextHopTo(t *testing.T) {
	pod, main, masquerade := nodeinfo.NextHop{VRF: 1}, nodeinfo.NextHop{}, nodeinfo.NextHop{Masquerade: true}
	for transport, ways := range map[string]map[string]nodeinfo.NextHop{
		"vxlan": {"10.1.1.7": pod, "10.1.2.7": pod, "172.30.2.2": pod, "172.30.1.2": masquerade, "192.0.2.10": masquerade,
			"192.0.2.20": pod, "192.168.16.2": masquerade, "8.8.8.8": masquerade},
		"nooverlay": {"10.1.1.7": pod, "10.1.2.7": main, "172.30.2.2": main, "172.30.1.2": masquerade, "192.0.2.10": masquerade,
			"192.0.2.20": masquerade, "8.8.8.8": masquerade},
	} {
		w := newNode(t, natConf+"nodeToNodeTransport: "+transport+"\n")
		w.addPeer(2, "192.168.16.2/24", "192.0.2.20")
		for addr, want := range ways {
			if got := w.n.NextHopTo(netip.MustParseAddr(addr)); got != want {
				t.Errorf("%s: %s: %+v, want %+v", transport, addr, got, want)
			}
		}
	}
}

// TestHostReachesServices: the host sends services, and what is on the network of the main interface, to VPP; but not what is on its own
// network.
func TestHostReachesServices(t *testing.T) {
	for _, c := range []struct {
		serves bool
		hostIP string
		want   string
	}{
		{false, "192.0.2.10", ""},
		{true, "192.0.2.10", "10.96.0.0/12 192.168.16.0/24"},
		{true, "192.168.16.77", "10.96.0.0/12 192.168.16.1/32"},
		{true, "192.168.16.1", "10.96.0.0/12"},
	} {
		w := newNode(t, natConf)
		w.n.ServesServices = c.serves
		w.n.hostIPsDump = func() ([]net.IP, error) { return []net.IP{net.ParseIP(c.hostIP)}, nil }
		w.resync()
		var got []string
		for _, dst := range []string{"10.96.0.0/12", "192.168.16.0/24", "192.168.16.1/32"} {
			if w.want[nb.LinuxRouteKey(dst, HostInterconnectTAPinLinuxLogicalName)] != nil ||
				w.want[nb.LinuxRouteKey(dst, hostVethInLinux)] != nil {
				got = append(got, dst)
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%v %s: %q, want %q", c.serves, c.hostIP, text, c.want)
		}
	}
}
