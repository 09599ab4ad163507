package ipnet

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/nodesync"
)

const uplink = "nodeConfig:\n- nodeName: n1\n  mainVPPInterface: {interfaceName: host-eth1}\n" +
	"- nodeName: n2\n  mainVPPInterface: {interfaceName: host-eth1}\n"

// fakePeer returns a node as nodesync reports it, with the addresses that follow from its ID.
func fakePeer(id uint32, ips ...string) *nodesync.Node {
	n := &nodesync.Node{ID: id, Name: fmt.Sprintf("n%d", id)}
	if ips == nil {
		ips = []string{fmt.Sprintf("192.168.16.%d/24", id)}
	}
	for _, s := range ips {
		p := netip.MustParsePrefix(s)
		n.VppIPAddresses = append(n.VppIPAddresses, &contivconf.IPWithNetwork{
			Version: contivconf.VersionOf(p.Addr()), Address: p.Addr(), Network: p.Masked(),
		})
	}
	n.MgmtIPAddresses = []net.IP{net.IPv4(10, 99, 0, byte(id))}
	return n
}

// node informs the plugin about a change of a node; nil means that it does not exist.
func (w *node) node(name string, to *nodesync.Node) {
	w.t.Helper()
	ev := &nodesync.NodeUpdate{NodeName: name, PrevState: w.nodes.all[name], NewState: to}
	if to == nil {
		delete(w.nodes.all, name)
	} else {
		w.nodes.all[name] = to
	}
	if _, err := w.n.Update(ev, w.want); err != nil {
		w.t.Fatal(err)
	}
}

// resolved adds the neighbours that ARP and ND would find between NICs, which the fake does not do.
func (w *node) resolved(peer uint32) {
	nicMAC := func(id uint32) string { return net.HardwareAddr{2, 0, 0, 0, 0, byte(id)}.String() }
	nic := w.want[nb.VppInterfaceKey("host-eth1")].(*vpp_interfaces.Interface)
	nic.PhysAddress = nicMAC(w.nodes.id)
	for _, ip := range fakePeer(peer, fmt.Sprintf("192.168.16.%d/24", peer), fmt.Sprintf("fd00:192:168:16::%d/112", peer)).VppIPAddresses {
		arp := &vpp_l3.ARPEntry{Interface: nic.Name, IpAddress: ip.Address.String(), PhysAddress: nicMAC(peer), Static: true}
		key, err := nb.Key(arp)
		if err != nil {
			w.t.Fatal(err)
		}
		w.want[key] = arp
	}
}

// TestPacketsBetweenNodes checks that the VPPs of two nodes, connected by a wire, carry packets from pod to pod, to the other node's host
// and to its management address, and that packets for unused addresses are dropped.
func TestPacketsBetweenNodes(t *testing.T) {
	for _, transport := range []string{"vxlan", "nooverlay"} {
		t.Run(transport, func(t *testing.T) {
			config := dualTAP + "nodeToNodeTransport: " + transport + "\n" + uplink
			one, two := newNodeWithID(t, config, 1), newNodeWithID(t, config, 2)
			one.node("n2", fakePeer(2, "192.168.16.2/24", "fd00:192:168:16::2/112"))
			two.node("n1", fakePeer(1, "192.168.16.1/24", "fd00:192:168:16::1/112"))
			two.n.hostIPsDump = func() ([]net.IP, error) { return []net.IP{net.IPv4(10, 99, 0, 2)}, nil }
			two.resync()
			a, b := one.add("a"), two.add("b")
			one.resolved(2)
			two.resolved(1)
			fakeOne, fakeTwo := one.apply(), two.apply()
			vppfake.Wire(fakeOne, "cv:host-eth1", fakeTwo, "cv:host-eth1")
			podA, podB := one.n.pods[a.Attachment.ID], two.n.pods[b.Attachment.ID]
			inVPP, _ := two.n.settings.hostLinkNames()
			for i, family := range []string{"v4", "v6"} {
				cases := []struct {
					what string
					dst  netip.Addr
					out  string
					mac  net.HardwareAddr
				}{
					{"to the pod of the other node", b.IPs[i].Address.Addr(), podB.names.vpp, podB.mac},
					{"to the other node's host", two.n.settings.hostLinks[i].Host.Addr(), inVPP, nodeMAC(macHostLinkLinux, 2)},
					{"to a pod the other node does not have", b.IPs[i].Address.Addr().Next(), "", nil},
				}
				if i == 0 {
					cases = append(cases, cases[0])
					cases[3].what, cases[3].dst, cases[3].out = "to its management address", netip.MustParseAddr("10.99.0.2"), inVPP
					cases[3].mac = nodeMAC(macHostLinkLinux, 2)
				}
				for _, tc := range cases {
					p := vppfake.Packet{
						EthSrc: mac(t, podA.mac), EthDst: mac(t, podA.peerMAC), Src: a.IPs[i].Address.Addr(), Dst: tc.dst,
						Proto: vppfake.ProtoUDP, SrcPort: 1000, DstPort: 2000, Size: 100,
					}
					got, err := fakeOne.Send("cv:"+podA.names.vpp, p)
					if err != nil {
						t.Fatal(err)
					}
					check(t, family+" "+tc.what, got, tc.out, tc.mac)
				}
			}
		})
	}
}

// TestPeersInAnyOrder checks that updates of nodes in any order give the same result as a resync.
func TestPeersInAnyOrder(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		config := dualTAP + uplink
		if seed%2 == 1 {
			config += "nodeToNodeTransport: nooverlay\n"
		}
		w := newNodeWithID(t, config, 1)
		w.add("a")
		for range 60 {
			id := uint32(2 + rnd.IntN(12))
			name := fmt.Sprintf("n%d", id)
			switch rnd.IntN(4) {
			case 0:
				if w.nodes.all[name] != nil {
					w.node(name, nil)
				}
			case 1:
				w.node(name, fakePeer(id, fmt.Sprintf("192.168.16.%d/24", 100+rnd.IntN(100))))
			case 2:
				n := fakePeer(id)
				n.VppIPAddresses = nil // it has not published its address yet
				w.node(name, n)
			default:
				w.node(name, fakePeer(id))
			}
		}
		updated := texts(w.want)
		w.resync()
		if got := texts(w.want); !slices.Equal(got, updated) {
			t.Fatalf("seed %d: a resync gives\n%s\nupdates gave\n%s", seed, strings.Join(got, "\n"), strings.Join(updated, "\n"))
		}
	}
}

// TestPeerWithoutCommonFamily checks that a node that has no address family in common with this one is reported once, until that changes.
func TestPeerWithoutCommonFamily(t *testing.T) {
	w := newNodeWithID(t, dualTAP+uplink, 1)
	four := slices.DeleteFunc(slices.Clone(w.n.settings.nodeIPs), func(p netip.Prefix) bool { return !p.Addr().Is4() })
	w.n.settings.nodeIPs, w.n.settings.local.IPs = four, four
	var log bytes.Buffer
	w.n.Log = slog.New(slog.NewTextHandler(&log, nil))
	six, both := fakePeer(2, "fd00:16::2/64"), fakePeer(2, "fd00:16::2/64", "192.168.16.2/24")
	for i, step := range []struct {
		node *nodesync.Node
		logs int
	}{{six, 1}, {six, 1}, {both, 1}, {six, 2}, {nil, 2}, {six, 3}} {
		w.node("n2", step.node)
		if n := strings.Count(log.String(), "no address family in common"); n != step.logs {
			t.Errorf("step %d: reported %d times, want %d:\n%s", i, n, step.logs, &log)
		}
	}
}

// TestNodeWithOurID checks that a node that claims our ID is not connected, and disconnects no other node.
func TestNodeWithOurID(t *testing.T) {
	w := newNodeWithID(t, dualTAP+uplink, 1)
	twin := fakePeer(1, "192.168.16.77/24")
	twin.Name = "twin"
	w.nodes.all["twin"], w.nodes.all["n2"] = twin, fakePeer(2)
	var logs strings.Builder
	w.n.Log = slog.New(slog.NewTextHandler(&logs, nil))
	err := w.n.Resync(w.event(), nil, 2, w.want)
	if err != nil || !strings.Contains(logs.String(), "twin claims the ID 1 of this node") {
		t.Errorf("error %v, log %s", err, logs.String())
	}
	if w.n.peers.byName["n2"] == nil || w.n.peers.byName["twin"] != nil {
		t.Errorf("peers %v", w.n.peers)
	}
}

// TestIDChangesHands checks that the node that takes over the ID of a leaving node is connected, in whatever order the two events arrive.
func TestIDChangesHands(t *testing.T) {
	for _, leavesFirst := range []bool{true, false} {
		w := newNodeWithID(t, dualTAP+uplink, 1)
		w.node("n2", fakePeer(2))
		heir := fakePeer(2, "192.168.16.99/24")
		heir.Name = "heir"
		if leavesFirst {
			w.node("n2", nil)
			w.node("heir", heir)
		} else {
			w.node("heir", heir)
			w.node("n2", nil)
		}
		updated := texts(w.want)
		w.resync()
		if got := texts(w.want); !slices.Equal(got, updated) {
			t.Errorf("leaves first: %t: a resync gives\n%s\nupdates gave\n%s", leavesFirst, strings.Join(got, "\n"), strings.Join(updated, "\n"))
		}
	}
}

// TestIDComesBack: a node that took over an ID is deleted, releases the ID, or loses its address, while the previous owner is still listed.
// The previous owner is then connected as before.
func TestIDComesBack(t *testing.T) {
	for _, transport := range []string{"vxlan", "nooverlay"} {
		for _, then := range []string{"leaves", "gets another ID", "has no address", "the former one leaves, too"} {
			w := newNodeWithID(t, dualTAP+uplink+"nodeToNodeTransport: "+transport+"\n", 1)
			w.node("n2", fakePeer(2))
			before := texts(w.want)
			heir := func(id uint32, ips ...string) *nodesync.Node {
				n := fakePeer(id, ips...)
				n.Name = "heir"
				return n
			}
			w.node("heir", heir(2, "192.168.16.99/24"))
			switch then {
			case "leaves":
				w.node("heir", nil)
			case "gets another ID":
				w.node("heir", heir(3))
				w.node("heir", nil)
			case "has no address":
				gone := heir(2)
				gone.VppIPAddresses = nil
				w.node("heir", gone)
			default:
				w.node("heir", nil)
				w.node("n2", nil)
				w.node("n2", fakePeer(2))
			}
			updated := texts(w.want)
			if !slices.Equal(before, updated) && then != "has no address" { // its management addresses stay
				t.Errorf("%s, %s: now\n%s\nbefore\n%s", transport, then, strings.Join(updated, "\n"), strings.Join(before, "\n"))
			}
			w.resync()
			if got := texts(w.want); !slices.Equal(got, updated) {
				t.Errorf("%s, %s: a resync gives\n%s\nupdates gave\n%s", transport, then, strings.Join(got, "\n"), strings.Join(updated, "\n"))
			}
		}
	}
}

// TestSharedManagementAddress: two nodes have the same management address by mistake. One of them is reached at it as long as one of them
// exists, the same one in any order of arrival.
func TestSharedManagementAddress(t *testing.T) {
	shared := func(id uint32, name string) *nodesync.Node {
		n := fakePeer(id)
		n.Name, n.MgmtIPAddresses = name, []net.IP{net.ParseIP("198.51.100.7")}
		return n
	}
	for _, order := range []string{"ab-b", "ba-b", "ab-a", "ba-a", "ab", "ba", "ab-a-b"} {
		w := newNodeWithID(t, dualTAP+uplink, 1)
		leaves := false
		for _, c := range order {
			name := string(c)
			switch {
			case c == '-':
				leaves = true
			case leaves:
				w.node(name, nil)
			default:
				w.node(name, shared(map[string]uint32{"a": 2, "b": 3}[name], name))
			}
		}
		updated := texts(w.want)
		w.resync()
		if got := texts(w.want); !slices.Equal(got, updated) {
			t.Errorf("%s: a resync gives\n%s\nupdates gave\n%s", order, strings.Join(got, "\n"), strings.Join(updated, "\n"))
		}
	}
}

// onInterfaces is a MgmtPublisher that returns the addresses on a node's interfaces.
type onInterfaces []net.IP

func (onInterfaces) PublishMgmtIPs([]netip.Addr) error { return nil }
func (o onInterfaces) HostIPs(*nodesync.Node) []net.IP { return o }

// TestAddressesOfGateways checks that an address that only Kubernetes has for a node, which may belong to a gateway in front of it, is not
// routed to the node.
func TestAddressesOfGateways(t *testing.T) {
	w := newNode(t, dualTAP+uplink)
	n := fakePeer(2, "192.168.16.2/24")
	own := slices.Clone(n.MgmtIPAddresses)
	n.MgmtIPAddresses = append(n.MgmtIPAddresses, net.ParseIP("203.0.113.2"))
	for _, tc := range []struct {
		publisher MgmtPublisher
		want      int
	}{{nil, 2}, {onInterfaces(own), 1}} {
		w.n.MgmtIPs = tc.publisher
		got, err := w.n.transportNode(w.n.settings, n, nil)
		if err != nil || len(got.MgmtIPs) != tc.want || got.MgmtIPs[0] != netip.MustParseAddr("10.99.0.2") {
			t.Errorf("with %v: %v, %v, want %d addresses", tc.publisher, got.MgmtIPs, err, tc.want)
		}
	}
}
