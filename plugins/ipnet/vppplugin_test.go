package ipnet

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
	"contiv.dev/vswitch/plugins/controller/api"
)

// fakePlugin is a VPP with or without the plugin.
type fakePlugin struct {
	present bool
	workers int
	changed func()
}

func (p *fakePlugin) Present() bool         { return p.present }
func (p *fakePlugin) Workers() int          { return p.workers }
func (p *fakePlugin) Watch(callback func()) { p.changed = callback }

// withPlugin gives the node a VPP with our plugin.
func (w *node) withPlugin() *node {
	w.t.Helper()
	w.n.VPPPlugin = &fakePlugin{present: true}
	w.resync()
	return w
}

// TestForgedSourcesAreDropped checks that packets of a pod with a forged source, or to the tunnels' ports, are dropped, and that valid ones
// are not.
func TestForgedSourcesAreDropped(t *testing.T) {
	for name, config := range map[string]string{"tap": dualTAP, "veth": dualVETH} {
		t.Run(name, func(t *testing.T) {
			one, two := newNodeWithID(t, config+uplink, 1).withPlugin(), newNodeWithID(t, config+uplink, 2).withPlugin()
			one.node("n2", fakePeer(2))
			two.node("n1", fakePeer(1))
			a, b, far := one.add("a"), one.add("b"), two.add("c")
			one.resolved(2)
			two.resolved(1)
			fake, other := one.apply(), two.apply()
			vppfake.Wire(fake, "cv:host-eth1", other, "cv:host-eth1")
			podA := one.n.pods[a.Attachment.ID]
			send := func(change func(p *vppfake.Packet)) vppfake.Result {
				t.Helper()
				p := vppfake.Packet{EthSrc: mac(t, podA.mac), EthDst: mac(t, podA.peerMAC), Proto: vppfake.ProtoUDP, SrcPort: 1000,
					DstPort: 2000, Size: 10}
				change(&p)
				r, err := fake.Send("cv:"+podA.names.vpp, p)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			for i := range 2 {
				own, neighbour, remote := a.IPs[i].Address.Addr(), b.IPs[i].Address.Addr(), far.IPs[i].Address.Addr()
				host := one.n.settings.hostLinks[i].Host.Addr()
				peer := netip.MustParseAddr("192.168.16.2")
				arrives := func(what string, want bool, change func(p *vppfake.Packet)) {
					t.Helper()
					if r := send(change); (len(r.Out) == 1 && len(r.Drops) == 0) != want {
						t.Errorf("IPv%d, %s: arrives %t\n%s", 4+2*i, what, !want, r)
					}
				}
				for _, dst := range []netip.Addr{neighbour, remote, host} {
					arrives("its own to "+dst.String(), true, func(p *vppfake.Packet) { p.Src, p.Dst = own, dst })
					for _, src := range []netip.Addr{neighbour, remote, host, outside(i)} {
						if src != dst {
							arrives(src.String()+" to "+dst.String(), false, func(p *vppfake.Packet) { p.Src, p.Dst = src, dst })
						}
					}
					arrives("tunnel packet to "+dst.String(), false,
						func(p *vppfake.Packet) { p.Src, p.Dst, p.DstPort = own, dst, 4789 })
					arrives("DHCP server to "+dst.String(), false,
						func(p *vppfake.Packet) { p.Src, p.Dst, p.SrcPort = own, dst, []uint16{67, 547}[i] })
				}
				if i == 0 {
					arrives("tunnel packet as the peer", false, func(p *vppfake.Packet) {
						p.Src, p.Dst, p.DstPort = peer, netip.MustParseAddr("192.168.16.1"), 4789
					})
				}
			}
			if r := send(func(p *vppfake.Packet) {
				p.ARP = &vppfake.ARP{SenderMAC: mac(t, podA.mac), SenderIP: b.IPs[0].Address.Addr(), TargetIP: one.n.settings.podSubnets[0].Gateway}
			}); len(r.Out) > 0 {
				t.Errorf("ARP as a neighbour\n%s", r)
			}
			if r := send(func(p *vppfake.Packet) {
				p.Src, p.Dst, p.Proto = a.IPs[1].Address.Addr(), netip.MustParseAddr("ff02::1"), vppfake.ProtoICMPv6
				p.ND = &vppfake.Discovery{Type: vppfake.NDRouterAdvertisement}
			}); len(r.Out) > 0 {
				t.Errorf("router advertisement\n%s", r)
			}
		})
	}
}

// TestPluginObjects checks the values for the plugin, and that there are none without the plugin.
func TestPluginObjects(t *testing.T) {
	w := newNode(t, dualTAP+uplink).withPlugin()
	w.node("n2", fakePeer(2))
	pod := w.n.pods[w.add("a").Attachment.ID].names.vpp
	roles := map[string]vpp_contiv.Endpoint_Role{}
	classes := map[string]vpp_contiv.Network_Class{}
	for _, v := range w.want {
		switch v := v.(type) {
		case *vpp_contiv.Endpoint:
			roles[v.Interface] = v.Role
		case *vpp_contiv.Network:
			classes[v.Prefix] = v.Class
		}
	}
	for ifName, role := range map[string]vpp_contiv.Endpoint_Role{
		pod: vpp_contiv.Endpoint_POD, HostInterconnectTAPinVPPLogicalName: vpp_contiv.Endpoint_HOST,
		"host-eth1": vpp_contiv.Endpoint_UPLINK, w.n.settings.transport.BVI(): vpp_contiv.Endpoint_OVERLAY,
	} {
		if roles[ifName] != role {
			t.Errorf("%s is %s, want %s", ifName, roles[ifName], role)
		}
	}
	if len(roles) != 4 {
		t.Errorf("endpoints %v", roles)
	}
	for prefix, class := range map[string]vpp_contiv.Network_Class{
		"10.1.0.0/16": vpp_contiv.Network_POD, "fd10:1::/48": vpp_contiv.Network_POD, "192.168.16.1/32": vpp_contiv.Network_NODE,
		"192.168.16.2/32": vpp_contiv.Network_NODE, "192.0.2.10/32": vpp_contiv.Network_NODE, "172.30.0.0/16": vpp_contiv.Network_NODE,
	} {
		if classes[prefix] != class {
			t.Errorf("%s is %s, want %s; all: %v", prefix, classes[prefix], class, classes)
		}
	}
	if ports := w.want[nb.ContivConfigKey].(*vpp_contiv.Config).TunnelPorts; len(ports) != 1 || ports[0] != 4789 {
		t.Errorf("tunnel ports %v", ports)
	}
	link := w.want[nb.VppInterfaceKey(pod)].(*vpp_interfaces.Interface)
	if len(link.UpAfter) != 1 || link.UpAfter[0] != nb.ContivEndpointKey(pod) {
		t.Errorf("the pod's link waits for %v", link.UpAfter)
	}
	w.n.VPPPlugin = &fakePlugin{}
	w.resync()
	for key, v := range w.want {
		if strings.Contains(key, "/contiv/") {
			t.Errorf("without the plugin: %s", key)
		}
		if i, ok := v.(*vpp_interfaces.Interface); ok && len(i.UpAfter) > 0 {
			t.Errorf("without the plugin: %s waits for %v", key, i.UpAfter)
		}
	}
	if len(w.n.pods) != 1 {
		t.Errorf("%d pods", len(w.n.pods))
	}
}

// TestAnswersByHost checks that all routes of the table for answers lead to the host, in both families, and that it is not one of the
// node's other tables.
func TestAnswersByHost(t *testing.T) {
	for config, vrf := range map[string]uint32{"": 2, "mainVRFID: 2\npodVRFID: 3\n": 4} {
		w := newNode(t, dualTAP+uplink+config).withPlugin()
		tables, routes := 0, 0
		for _, v := range w.want {
			switch v := v.(type) {
			case *vpp_l3.VrfTable:
				if v.Id == vrf {
					tables++
				}
			case *vpp_l3.Route:
				if v.VrfId != vrf {
					continue
				}
				if routes++; v.OutgoingInterface != HostInterconnectTAPinVPPLogicalName || !strings.HasSuffix(v.DstNetwork, "/0") {
					t.Errorf("%q: the table has %v", config, v)
				}
			case *vpp_contiv.Endpoint:
				if (v.AnswerVrf != 0) != (v.Role == vpp_contiv.Endpoint_HOST) || v.AnswerVrf != 0 && v.AnswerVrf != vrf {
					t.Errorf("%q: %v answers by %d, want %d", config, v.Role, v.AnswerVrf, vrf)
				}
			}
		}
		if tables != 2 || routes != 2 {
			t.Errorf("%q: %d tables and %d routes, want one of each family", config, tables, routes)
		}
	}
}

// TestQueuesOfWorkers checks that TAPs, the host's link and a shared NIC have a receive queue for each of several workers, and that a pod's
// VETH has one queue.
func TestQueuesOfWorkers(t *testing.T) {
	for _, c := range []struct {
		config       string
		workers      int
		several, one int // interfaces
	}{{dualTAP, 0, 0, 3}, {dualTAP, 1, 0, 3}, {dualTAP, 3, 3, 0}, {dualVETH, 3, 2, 1}} {
		w := newNodeWithID(t, c.config+uplink, 1)
		w.n.VPPPlugin = &fakePlugin{present: true, workers: c.workers}
		w.resync()
		w.add("a")
		several, one := 0, 0
		for key, v := range w.want {
			i, ok := v.(*vpp_interfaces.Interface)
			if !ok || i.Type != vpp_interfaces.Interface_TAP && i.Type != vpp_interfaces.Interface_AF_PACKET {
				continue
			}
			if len(i.RxPlacements) == 0 {
				one++
				continue
			}
			several++
			for n, p := range i.RxPlacements {
				if len(i.RxPlacements) != c.workers || p.Queue != uint32(n) || p.Worker != uint32(n) || p.MainThread {
					t.Errorf("%d workers: %s: %v", c.workers, key, i.RxPlacements)
				}
			}
		}
		if several != c.several || one != c.one {
			t.Errorf("%d workers: %d interfaces with several queues and %d with one, want %d and %d", c.workers, several, one, c.several, c.one)
		}
	}
}

// TestSegmentation checks that TAPs leave segmentation to a VPP that has our plugin, unless contiv.conf sets otherwise, and that it is an
// error to require this from another VPP.
func TestSegmentation(t *testing.T) {
	for _, c := range []struct {
		conf   string
		plugin bool
		want   bool
		fails  bool
	}{
		{"useTAPInterfaces: true\n", true, true, false}, {"useTAPInterfaces: true\n", false, false, false},
		{"useTAPInterfaces: true\nenableGSO: true\n", true, true, false}, {"useTAPInterfaces: true\nenableGSO: true\n", false, false, true},
		{"useTAPInterfaces: true\ntcpChecksumOffloadDisabled: false\n", false, false, true},
		{"useTAPInterfaces: true\nenableGSO: false\n", true, false, false},
		{"useTAPInterfaces: true\ntcpChecksumOffloadDisabled: true\n", true, false, false},
		{"useTAPInterfaces: false\n", true, false, false},
	} {
		w := newNode(t, "useTAPInterfaces: true\n"+uplink)
		conf, err := conffile.Load([]byte(c.conf+uplink), contivconf.Env{NodeName: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		w.n.ContivConf, w.n.VPPPlugin = conf, &fakePlugin{present: c.plugin}
		s, err := w.n.gather()
		if c.fails {
			if !errors.Is(err, errNoSegmentation) {
				t.Errorf("%q, plugin %t: %v", c.conf, c.plugin, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if link := s.tapLink("x"); link.EnableGso != c.want {
			t.Errorf("%q, plugin %t: GSO %t", c.conf, c.plugin, link.EnableGso)
		}
	}
}

// TestNoPlugin checks that a VPP without the plugin is reported once, and that a VPP that is started with it is detected.
func TestNoPlugin(t *testing.T) {
	w := newNode(t, dualTAP+uplink)
	var log bytes.Buffer
	w.n.Log = slog.New(slog.NewTextHandler(&log, nil))
	p := &fakePlugin{}
	w.n.VPPPlugin = p
	loop := &countingLoop{}
	w.n.EventLoop = loop
	w.n.watchPlugin()
	for range 3 {
		w.resync()
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "not checked") {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	if w.n.SourcesChecked() == nil {
		t.Error("no word of it for the node's condition")
	}
	p.present = true
	p.changed()
	p.changed()
	if len(loop.pushed) != 1 || loop.pushed[0].Method() != api.UpstreamResync {
		t.Errorf("events %v", loop.pushed)
	}
	w.resync()
	if err := w.n.SourcesChecked(); err != nil || !w.n.HasPlugin() {
		t.Errorf("with the plugin: %v", err)
	}
}

// TestOwnAddressesOfManyInterfaces tests that the node's own links are not left out, however many other addresses the host has.
func TestOwnAddressesOfManyInterfaces(t *testing.T) {
	w := newNode(t, dualTAP+uplink).withPlugin()
	w.n.hostIPsDump = func() (ips []net.IP, err error) {
		for i := range 100 {
			ips = append(ips, net.IPv4(10, 0, 0, byte(i)), net.IPv4(203, 0, 113, byte(i)))
		}
		return ips, nil
	}
	w.resync()
	got := w.n.OwnAddresses()
	if len(got) != maxOwnAddresses {
		t.Errorf("%d addresses, want %d", len(got), maxOwnAddresses)
	}
	s := w.n.settings
	for _, l := range s.hostLinks {
		for _, want := range []string{l.VPP.Addr().String(), l.Host.Addr().String()} {
			if !slices.Contains(got, want) {
				t.Errorf("%s of the link to the host is left out of %q", want, got)
			}
		}
	}
	for _, p := range s.nodeIPs {
		if !slices.Contains(got, p.Addr().String()) {
			t.Errorf("the node's address %s is left out of %q", p.Addr(), got)
		}
	}
}
