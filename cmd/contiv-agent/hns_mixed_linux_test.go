package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
	"contiv.dev/vswitch/dataplane/windows/wiring"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/forge"
	"contiv.dev/vswitch/test/testbed/gobuild"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/netns"
)

// mixedCluster is a Linux node, whose agent is a process with the kernel's own dataplane in a network namespace, and two Windows nodes. The
// network between them is real: its bridge has the addresses of the Windows nodes, where this test simulates their virtual switches.
type mixedCluster struct {
	*windowsCluster
	ctx      context.Context
	bed      *testbed.Cluster
	linux    *testbed.Node
	linuxIP  netip.Addr
	one, two *windowsRig
	tunnels  map[string]net.PacketConn // the VXLAN sockets of Windows nodes, by name
}

// udpPort is the destination port of forged packets.
const udpPort = 9

func newMixedCluster(t *testing.T, transport string) *mixedCluster {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a Linux agent in a network namespace: needs root")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	routing := "nodeToNodeTransport: " + transport + "\nvxlanVNI: 4096\n"
	c := &mixedCluster{windowsCluster: newWindowsAPI(t, routing), ctx: ctx, tunnels: map[string]net.PacketConn{}}
	c.network = [3]byte{192, 168, 16}
	bin := filepath.Join(c.dir, "bin")
	c.must(os.Mkdir(bin, 0o755))
	c.must(gobuild.Commands(bin, "contiv.dev/vswitch/cmd/contiv-agent", "contiv.dev/vswitch/cmd/contiv-cni"))
	const apiAddress = "127.0.0.1:6443"
	kubeconfig := filepath.Join(c.dir, "kubeconfig-linux")
	c.must(os.WriteFile(kubeconfig, kubeapi.Kubeconfig(apiAddress), 0o600))
	name := fmt.Sprintf("cvw%d%c", os.Getpid()%10000, transport[0])
	bed, err := testbed.NewCluster(ctx, testbed.ClusterOptions{Name: name, Nodes: 1, Addressed: true, Unstarted: true,
		Node: testbed.NodeOptions{BinDir: bin, Dataplane: dataplaneLinux, AgentArgs: []string{"--kubeconfig=" + kubeconfig}},
		ConfigOf: func(int) string {
			return routing + "nodeConfig:\n- nodeName: " + testbed.NodeName(name, 0) + "\n  mainVPPInterface: {interfaceName: " + testbed.UplinkNIC + "}\n"
		}})
	c.must(err)
	t.Cleanup(func() {
		if err := bed.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	c.bed, c.linux = bed, bed.Nodes[0]
	v4, _ := testbed.UplinkAddress(0)
	c.linuxIP = netip.MustParseAddr(v4)
	c.etcd = "unix://" + filepath.Join(bed.EtcdDir(), "etcd.sock")
	c.must(c.linux.Do(func() error {
		l, err := net.Listen("tcp", apiAddress)
		if err == nil {
			c.api.Serve(l)
		}
		return err
	}))
	c.must(c.api.Put(kubeapi.Node(c.linux.Name, []netip.Addr{c.linuxIP})))
	c.must(c.linux.StartAgent(ctx))
	c.one, c.two = c.windowsNode(11), c.windowsNode(12)
	for _, r := range []*windowsRig{c.one, c.two} {
		c.run(bed.Underlay, "ip", "addr", "add", r.nics[0].String(), "dev", "uplink")
	}
	return c
}

func (c *mixedCluster) run(ns *netns.Namespace, name string, args ...string) string {
	c.t.Helper()
	out, err := ns.Run(c.ctx, name, args...)
	c.must(err)
	return out
}

// pod connects a pod of the Linux node by CNI, with labels in Kubernetes.
func (c *mixedCluster) pod(name string, labels map[string]string) *testbed.Pod {
	c.t.Helper()
	c.must(c.api.Put(kubeapi.Pod(c.linux.Name, name, nil)))
	p, err := c.linux.AddPod(c.ctx, name)
	c.must(err)
	c.t.Cleanup(func() { _ = c.linux.DeletePod(context.WithoutCancel(c.ctx), p) })
	c.label(c.linux.Name, name, p.IPs[0], labels)
	return p
}

// label sets a pod's address and its labels in Kubernetes.
func (c *mixedCluster) label(node, name string, addr netip.Addr, labels map[string]string) {
	c.t.Helper()
	pod := kubeapi.Pod(node, name, []netip.Addr{addr})
	pod.Labels = labels
	c.must(c.api.Put(pod))
}

// windowsPod connects a pod of a Windows node by CNI.
func (c *mixedCluster) windowsPod(r *windowsRig, name string, labels map[string]string) netip.Addr {
	c.t.Helper()
	addr, _ := r.add(name)
	c.label(r.name, name, addr, labels)
	return addr
}

// listen opens a UDP socket in a namespace.
func (c *mixedCluster) listen(ns *netns.Namespace, at string) net.PacketConn {
	c.t.Helper()
	var conn net.PacketConn
	c.must(ns.Do(func() (err error) {
		conn, err = net.ListenPacket("udp4", at)
		return err
	}))
	c.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// overlayOf returns the overlay of a Windows node in HNS: the MAC address of its router, and its remote subnets.
func (r *windowsRig) overlayOf() (mac string, to map[string]hcn.RemoteSubnetSettings) {
	n, ok := r.host.Network("contiv")
	if !ok {
		return "", nil
	}
	routers, err := hcn.SettingsOf[hcn.DrMacAddressSettings](n.Policies, hcn.TypeDrMacAddress)
	r.c.must(err)
	list, err := hcn.SettingsOf[hcn.RemoteSubnetSettings](n.Policies, hcn.TypeRemoteSubnet)
	r.c.must(err)
	to = map[string]hcn.RemoteSubnetSettings{}
	for _, s := range list {
		to[s.DestinationPrefix] = s
	}
	if len(routers) == 1 {
		mac = routers[0].Address
	}
	return mac, to
}

// wayTo returns the remote subnet that contains an address.
func (r *windowsRig) wayTo(a netip.Addr) (way hcn.RemoteSubnetSettings, ok bool) {
	_, to := r.overlayOf()
	for dst, s := range to {
		if p, err := netip.ParsePrefix(dst); err == nil && p.Contains(a) {
			return s, true
		}
	}
	return way, false
}

// TestWindowsAndLinux: pods of a Linux node and of two Windows nodes, each connected by its own agent and CNI ADD. The state of HNS is
// compared with the Linux node's device, pods and packets, in both directions: routes, services, policies.
func TestWindowsAndLinux(t *testing.T) {
	c := newMixedCluster(t, "vxlan")
	for _, r := range []*windowsRig{c.one, c.two} {
		c.tunnels[r.name] = c.listen(c.bed.Underlay, r.nics[0].Addr().String()+":4789")
	}
	a := c.windowsPod(c.one, "a", map[string]string{"role": "client", "os": "windows"})
	b := c.windowsPod(c.two, "b", map[string]string{"os": "windows"})
	l := c.pod("l", map[string]string{"role": "client", "os": "linux"})
	m := c.pod("m", map[string]string{"os": "linux"})
	addrL, addrM := l.IPs[0], m.IPs[0]

	c.sameTunnel(addrL)
	inL, inM := c.listen(l.Namespace, fmt.Sprintf(":%d", udpPort)), c.listen(m.Namespace, fmt.Sprintf(":%d", udpPort))
	for _, win := range []struct {
		r    *windowsRig
		addr netip.Addr
	}{{c.one, a}, {c.two, b}} {
		c.fromWindows(win.r, win.addr, addrL, inL)
		c.toWindows(l, addrL, win.r, win.addr)
	}
	c.policyOnLinux(a, b, addrL, inL)
	c.policyOnWindows(a, addrL, addrM)
	c.sameService(map[string]netip.Addr{c.one.name: a, c.two.name: b, c.linux.Name: addrM}, l, inM)
}

// sameTunnel checks that HNS of both Windows nodes reaches the Linux node by the VNI, port and MAC address of its kernel's device.
func (c *mixedCluster) sameTunnel(pod netip.Addr) {
	c.t.Helper()
	var links []struct {
		Address  string
		Linkinfo struct {
			Data struct {
				ID, Port int
			} `json:"info_data"`
		}
	}
	c.eventually("the Linux node's VXLAN device", func() error {
		out, err := c.linux.Run(c.ctx, "ip", "-d", "-j", "link", "show", "type", "vxlan")
		if err == nil {
			err = json.Unmarshal([]byte(out), &links)
		}
		if err == nil && len(links) != 1 {
			err = fmt.Errorf("devices %s", out)
		}
		return err
	})
	device := links[0]
	for _, r := range []*windowsRig{c.one, c.two} {
		c.eventually("way of "+r.name+" to "+pod.String(), func() error {
			way, ok := r.wayTo(pod)
			if mac := strings.ReplaceAll(strings.ToLower(way.DistributedRouterMacAddress), "-", ":"); !ok || way.ProviderAddress != c.linuxIP.String() ||
				int(way.IsolationID) != device.Linkinfo.Data.ID || mac != device.Address || device.Linkinfo.Data.Port != 4789 {
				return fmt.Errorf("HNS has %+v, the device of the Linux node is %+v", way, device)
			}
			return nil
		})
	}
}

// fromWindows sends a packet like a Windows node's virtual switch, with the settings in its HNS, and waits until a pod of the Linux node
// receives it.
func (c *mixedCluster) fromWindows(r *windowsRig, src, dst netip.Addr, at net.PacketConn) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("packet from %s to %s", src, dst), func() error {
		if err := c.inject(r, src, dst); err != nil {
			return err
		}
		got, err := receive(at, time.Second)
		if err == nil && got != src {
			err = fmt.Errorf("a packet of %s", got)
		}
		return err
	})
}

// inject sends one packet through the tunnel.
func (c *mixedCluster) inject(r *windowsRig, src, dst netip.Addr) error {
	own, _ := r.overlayOf()
	way, ok := r.wayTo(dst)
	if !ok {
		return fmt.Errorf("HNS of %s has no way to %s", r.name, dst)
	}
	from, err1 := net.ParseMAC(own)
	to, err2 := net.ParseMAC(way.DistributedRouterMacAddress)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	frame := forge.Path{From: from, To: to, Src: src, Dst: dst}.Frame(forge.Packet{Proto: 17, Payload: 4})
	header := []byte{8, 0, 0, 0, 0, byte(way.IsolationID >> 8), byte(way.IsolationID), 0}
	_, err := c.tunnels[r.name].WriteTo(append(header, frame...), &net.UDPAddr{IP: net.ParseIP(way.ProviderAddress), Port: 4789})
	return err
}

// receive returns the sender of the next packet.
func receive(at net.PacketConn, within time.Duration) (netip.Addr, error) {
	if err := at.SetReadDeadline(time.Now().Add(within)); err != nil {
		return netip.Addr{}, err
	}
	_, from, err := at.ReadFrom(make([]byte, 2000))
	if err != nil {
		return netip.Addr{}, err
	}
	return from.(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// tunnelled is a packet that has reached a Windows node.
type tunnelled struct {
	vni      int
	mac      string
	src, dst netip.Addr
	port     uint16
}

// arrived reads a packet from the tunnel of a Windows node.
func (c *mixedCluster) arrived(r *windowsRig, within time.Duration) (p tunnelled, err error) {
	at := c.tunnels[r.name]
	if err := at.SetReadDeadline(time.Now().Add(within)); err != nil {
		return p, err
	}
	data := make([]byte, 2000)
	n, _, err := at.ReadFrom(data)
	const headers = 8 + 14 + 20 + 8
	if err != nil {
		return p, err
	}
	if data = data[:n]; n < headers || data[20] != 8 || data[21] != 0 || data[31] != 17 {
		return p, fmt.Errorf("not UDP over IPv4: %x", data)
	}
	p = tunnelled{vni: int(data[4])<<16 | int(data[5])<<8 | int(data[6]), mac: strings.ToUpper(strings.ReplaceAll(net.HardwareAddr(data[8:14]).String(), ":", "-")),
		src: netip.AddrFrom4([4]byte(data[34:38])), dst: netip.AddrFrom4([4]byte(data[38:42])), port: uint16(data[44])<<8 | uint16(data[45])}
	return p, nil
}

// send sends one packet from a pod of the Linux node, from its own port.
func (c *mixedCluster) send(pod *testbed.Pod, dst netip.Addr, port uint16) error {
	return pod.Do(func() error {
		conn, err := net.Dial("udp4", netip.AddrPortFrom(dst, port).String())
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("hello"))
		return err
	})
}

// toWindows checks that packets from a pod of the Linux node reach the node of a Windows pod, with the MAC address of the router in its HNS,
// and that HNS allows them.
func (c *mixedCluster) toWindows(pod *testbed.Pod, src netip.Addr, r *windowsRig, dst netip.Addr) {
	c.t.Helper()
	own, _ := r.overlayOf()
	want := tunnelled{4096, own, src, dst, udpPort}
	c.eventually(fmt.Sprintf("packet from %s to %s", src, dst), func() error {
		if err := c.send(pod, dst, udpPort); err != nil {
			return err
		}
		got, err := c.arrived(r, time.Second)
		if err == nil && got != want {
			err = fmt.Errorf("%+v, want %+v", got, want)
		}
		return err
	})
	c.eventually(fmt.Sprintf("HNS lets %s pass to %s", src, dst), func() error { return r.allows(dst, src, true) })
}

// allows checks whether HNS's rules of a pod allow a packet.
func (r *windowsRig) allows(pod, from netip.Addr, want bool) error {
	p := hnsmem.Packet{Protocol: 17, Local: pod, Remote: from, LocalPort: udpPort, RemotePort: 40000}
	if got, err := r.host.Allowed(r.endpointOf(pod).ID, hns.In, p); err != nil || got != want {
		return fmt.Errorf("from %s to %s: allowed %v, %v", from, pod, got, err)
	}
	return nil
}

func fromClients(name, os string) *networkingv1.NetworkPolicy {
	clients := metav1.LabelSelector{MatchLabels: map[string]string{"role": "client"}}
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"os": os}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &clients}}}}}}
}

// policyOnLinux checks that the Linux node allows packets of the Windows pod that its policy selects, and not those of the other one.
func (c *mixedCluster) policyOnLinux(client, other, dst netip.Addr, at net.PacketConn) {
	c.t.Helper()
	p := fromClients("linux", "linux")
	c.must(c.api.Put(p))
	c.eventually("the Linux node's policy", func() error {
		// The packets take the same path: those of the other pod would arrive first.
		for range 3 {
			if err := c.inject(c.two, other, dst); err != nil {
				return err
			}
		}
		if err := c.inject(c.one, client, dst); err != nil {
			return err
		}
		var before []netip.Addr
		for {
			from, err := receive(at, time.Second)
			switch {
			case err != nil:
				return err
			case from != client:
				before = append(before, from)
			case len(before) > 0:
				return fmt.Errorf("packets of %v were let in", before)
			default:
				return nil
			}
		}
	})
	c.must(c.api.Delete(p))
}

// policyOnWindows checks that HNS allows packets of the Linux node's pod that the policy selects, and not those of the other one.
func (c *mixedCluster) policyOnWindows(pod, client, other netip.Addr) {
	c.t.Helper()
	p := fromClients("windows", "windows")
	c.must(c.api.Put(p))
	c.eventually("the Windows node's policy", func() error {
		return errors.Join(c.one.allows(pod, client, true), c.one.allows(pod, other, false))
	})
	c.must(c.api.Delete(p))
	c.eventually("no policy any more", func() error { return c.one.allows(pod, other, true) })
}

// providers returns an error for each backend on another node that a Windows node does not reach by the address of that node.
func (c *mixedCluster) providers(r *windowsRig, pods map[string]netip.Addr) error {
	at := map[string]netip.Addr{c.one.name: c.one.nics[0].Addr(), c.two.name: c.two.nics[0].Addr(), c.linux.Name: c.linuxIP}
	list, err := r.host.V2().ListEndpoints()
	for node, pod := range pods {
		for _, e := range list {
			if e.Flags&hcn.FlagRemote == 0 || e.IPConfigurations[0].IPAddress != pod.String() {
				continue
			}
			has, readErr := hcn.SettingsOf[hcn.ProviderAddressSettings](e.Policies, hcn.TypeProviderAddr)
			if err = errors.Join(err, readErr); len(has) != 1 || has[0].ProviderAddress != at[node].String() {
				err = errors.Join(err, fmt.Errorf("backend %s on node %s has provider addresses %v, want %s", pod, node, has, at[node]))
			}
		}
	}
	return err
}

// sameService checks that HNS's load balancers have the same backends that the Linux node's packets to the service reach, also after one is
// removed.
func (c *mixedCluster) sameService(pods map[string]netip.Addr, client *testbed.Pod, local net.PacketConn) {
	c.t.Helper()
	const vip = "10.96.0.9"
	svc := kubeapi.Service("udp", []netip.Addr{netip.MustParseAddr(vip)}, kubeapi.Port(corev1.ProtocolUDP, 53))
	put := func() []string {
		var endpoints []discoveryv1.Endpoint
		var want []string
		for node, addr := range pods {
			endpoints = append(endpoints, kubeapi.Endpoint(node, addr))
			want = append(want, addr.String())
		}
		slices.Sort(want)
		c.must(c.api.Put(svc, kubeapi.Slice(svc, discoveryv1.AddressTypeIPv4, udpPort, endpoints...)))
		return want
	}
	for _, gone := range []string{"", c.two.name, c.linux.Name} {
		delete(pods, gone)
		want := put()
		for _, r := range []*windowsRig{c.one, c.two} {
			c.eventually("service on "+r.name, func() error {
				_, to, err := r.balancer(vip, 53)
				if err == nil && !slices.Equal(to, want) {
					err = fmt.Errorf("HNS leads to %v, want %v", to, want)
				}
				return errors.Join(err, c.providers(r, pods))
			})
		}
		c.eventually("service on the Linux node", func() error {
			reached := map[string]bool{}
			for range 40 {
				if err := c.send(client, netip.MustParseAddr(vip), 53); err != nil {
					return err
				}
			}
			for _, r := range []*windowsRig{c.one, c.two} {
				for p, err := c.arrived(r, 100*time.Millisecond); err == nil; p, err = c.arrived(r, 100*time.Millisecond) {
					if p.port == udpPort {
						reached[p.dst.String()] = true
					}
				}
			}
			for _, err := receive(local, 100*time.Millisecond); err == nil; _, err = receive(local, 100*time.Millisecond) {
				reached[local.LocalAddr().String()] = true
			}
			if n := len(reached); n != len(want) {
				return fmt.Errorf("packets reach %v, want %v", reached, want)
			}
			for _, addr := range want {
				if addr != pods[c.linux.Name].String() && !reached[addr] {
					return fmt.Errorf("packets reach %v, want %v", reached, want)
				}
			}
			return nil
		})
	}
	// HNS has no endpoint of a backend that no service has.
	for _, r := range []*windowsRig{c.one, c.two} {
		c.eventually("remote endpoints of "+r.name, func() error {
			list, err := r.host.V2().ListEndpoints()
			c.must(err)
			var remote []string
			for _, e := range list {
				if e.Flags&hcn.FlagRemote != 0 {
					remote = append(remote, e.IPConfigurations[0].IPAddress)
				}
			}
			var want []string
			if r != c.one { // the remaining pod is on the first node itself
				want = []string{pods[c.one.name].String()}
			}
			if !slices.Equal(remote, want) {
				return fmt.Errorf("%v, want %v", remote, want)
			}
			return nil
		})
	}
}

// TestWindowsAndLinuxBridge: without an overlay the Linux node's kernel sends to a Windows pod by its node's address, and the Windows node has
// the route back.
func TestWindowsAndLinuxBridge(t *testing.T) {
	c := newMixedCluster(t, "nooverlay")
	a := c.windowsPod(c.one, "a", nil)
	l := c.pod("l", nil)
	c.eventually("route of the Linux node", func() error {
		out, err := c.linux.Run(c.ctx, "ip", "route", "get", a.String())
		if want := "via " + c.one.nics[0].Addr().String() + " dev " + testbed.UplinkNIC; err == nil && !strings.Contains(out, want) {
			err = fmt.Errorf("%s lacks %q", out, want)
		}
		return err
	})
	c.eventually("route of the Windows node", func() error {
		list, err := c.one.routes.List()
		if !slices.ContainsFunc(list, func(r wiring.HostRoute) bool { return r.Destination.Contains(l.IPs[0]) && r.NextHop == c.linuxIP }) {
			err = errors.Join(err, fmt.Errorf("%v has no way to %s by %s", list, l.IPs[0], c.linuxIP))
		}
		return err
	})
}
