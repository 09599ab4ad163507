package intdataplane

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/nsdo"
	"contiv.dev/vswitch/test/testbed/forge"
)

// toHost is the configuration of the agent: pods can reach their node.
var toHost = Config{RulesConfig: rules.Config{EndpointToHostAction: "ACCEPT", VXLANEnabled: true}}

// advertise sends a router advertisement to all nodes of a namespace's eth0.
func advertise(t *testing.T, ns *nsdo.Namespace) {
	t.Helper()
	advertisement := make([]byte, 16)
	advertisement[0] = 134
	advertisement[4] = 64                                 // hop limit
	binary.BigEndian.PutUint16(advertisement[6:], 1800)   // lifetime as a default router
	binary.BigEndian.PutUint32(advertisement[8:], 30_000) // reachable time
	if err := ns.Do(func() error {
		link, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 255); err != nil {
			return err
		}
		to := &unix.SockaddrInet6{ZoneId: uint32(link.Index), Addr: netip.MustParseAddr("ff02::1").As16()}
		return unix.Sendto(fd, advertisement, 0, to)
	}); err != nil {
		t.Fatal(err)
	}
}

// learned returns the routes that the host has accepted from routers.
func (n *node) learned() string { return n.run("ip", "-6", "route", "show", "proto", "ra") }

// TestKernelRouterAdvertisement: a pod is not accepted as a router of its node: the rules prevent it and, without the rules, the
// interface's parameters.
func TestKernelRouterAdvertisement(t *testing.T) {
	onBothBackends(t, toHost, func(t *testing.T, n *node) {
		n.set("net/ipv6/conf/default/accept_ra", "2")
		n.set("net/ipv6/conf/"+n.Outside.Iface+"/accept_ra", "2")
		n.set("net/ipv6/conf/"+n.Pods[0].Iface+"/accept_ra", "2")
		n.apply(n.open()...)
		n.up("pod1", "pod2", "pod3")
		eventually(t, "what a router outside advertises is learned", func() bool {
			advertise(t, n.Outside.NS)
			return strings.Contains(n.learned(), "dev "+n.Outside.Iface)
		})
		nothing := func(why string) {
			t.Helper()
			for range 3 {
				advertise(t, n.Pods[0].NS)
				time.Sleep(50 * time.Millisecond)
			}
			if routes := n.learned(); strings.Contains(routes, n.Pods[0].Iface) {
				t.Errorf("%s: the node has a route to the pod: %s", why, routes)
			}
		}
		nothing("rules and parameters")
		n.stop()
		if n.config.RulesConfig.Backend == rules.BackendNFT {
			n.run("nft", "flush", "ruleset")
		} else {
			for _, l := range []string{"raw", "mangle", "nat", "filter"} {
				n.run("ip6tables", "-t", l, "-F")
			}
		}
		nothing("parameters only")
		n.set("net/ipv6/conf/"+n.Pods[0].Iface+"/accept_ra", "2")
		n.start()
		// The parameters are set when the interface is announced; change them without informing the driver.
		n.apply(n.open()...)
		n.up("pod1")
		n.set("net/ipv6/conf/"+n.Pods[0].Iface+"/accept_ra", "2")
		nothing("rules only")
		n.stop()
		n.empty("filter") // where the check of the pod's source drops it too
		nothing("layer raw only")
	})
}

// TestKernelTunnelPacketsOfWorkloads: a pod's packets to the tunnel's port arrive nowhere, even with the address of another node and
// without the kernel's reverse path filter.
func TestKernelTunnelPacketsOfWorkloads(t *testing.T) {
	onBothBackends(t, toHost, func(t *testing.T, n *node) {
		peer := map[table.Family]netip.Addr{4: n.Outside.Addr(4), 6: n.Outside.Addr(6)}
		n.apply(append(n.open(), &proto.HostMetadataUpdate{Hostname: "node2", Ipv4Addr: peer[4].String(),
			Ipv6Addr: peer[6].String()})...)
		n.up("pod1", "pod2", "pod3")
		n.set("net/ipv4/conf/"+n.Pods[0].Iface+"/rp_filter", "0")
		bothFamilies(func(f table.Family) {
			n.Expect(t,
				tabletest.Case{Want: tabletest.Pass, Probe: n.Outside.UDP(n.Host.Addr(f), 4789), Why: "another node"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.Host.Addr(f), 4789).FromAddr(peer[f]),
					Why: "as another node, to its own"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.Host.Addr(f), 4789), Why: "to its own node"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(peer[f], 4789), Why: "to another node"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.Host.Addr(f), 80).FromAddr(peer[f]),
					Why: "no reverse path"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Host.UDP(peer[f], 4789), Why: "a process's, to another node"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Host.UDP(n.Host.Addr(f), 4789), Why: "a process's, to its own node"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Host.UDP(peer[f], 4790), Why: "another port"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.Host.Addr(f), 68).FromPort(dhcpServer(f)),
					Why: "a DHCP server"})
		})
		// Two services that translate to the tunnel's port.
		n.run("nft", "add table inet svc; add chain inet svc pre { type nat hook prerouting priority -100 ; }; "+
			"add chain inet svc out { type nat hook output priority -100 ; }; "+
			"add chain inet svc post { type nat hook postrouting priority 100 ; }; "+
			"add rule inet svc pre udp dport 1111 dnat ip to "+peer[4].String()+":4789; "+
			"add rule inet svc out udp dport 1111 dnat ip to "+peer[4].String()+":4789; "+
			"add rule inet svc pre udp dport 1112 dnat ip to "+n.Host.Addr(4).String()+":4789; "+
			"add rule inet svc post udp dport 4789 masquerade")
		service := netip.MustParseAddr("198.51.100.7")
		n.Expect(t,
			tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(service, 1111).ArrivesAt(peer[4], 4789), Why: "service"},
			tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(service, 1112).ArrivesAt(n.Host.Addr(4), 4789),
				Why: "service on its own node"},
			tabletest.Case{Want: tabletest.Drop, Probe: n.Outside.UDP(n.Host.Addr(4), 1111).ArrivesAt(peer[4], 4789),
				Why: "node port, from outside"},
			tabletest.Case{Want: tabletest.Drop, Probe: n.Host.UDP(service, 1111).ArrivesAt(peer[4], 4789),
				Why: "service, by a process"})
	})
}

func dhcpServer(f table.Family) uint16 {
	if f == table.IPv6 {
		return 547
	}
	return 67
}

// TestKernelParametersAreRepaired: parameters changed by an administrator or another program are restored at the next comparison; if all
// are as desired, the comparison writes nothing.
func TestKernelParametersAreRepaired(t *testing.T) {
	config := toHost
	config.RouteRefreshInterval = 200 * time.Millisecond
	onBothBackends(t, config, func(t *testing.T, n *node) {
		n.apply(n.open()...)
		n.up("pod1", "pod2", "pod3")
		conf := "net/ipv%d/conf/" + n.Pods[0].Iface + "/%s"
		changed := map[string][2]string{ // our value, the other program's value
			"net/ipv4/ip_forward":                    {"1", "0"},
			"net/ipv6/conf/all/forwarding":           {"1", "0"},
			fmt.Sprintf(conf, 4, "rp_filter"):        {"1", "0"},
			fmt.Sprintf(conf, 4, "route_localnet"):   {"0", "1"},
			fmt.Sprintf(conf, 4, "accept_redirects"): {"0", "1"},
			fmt.Sprintf(conf, 4, "proxy_arp"):        {"1", "0"},
			fmt.Sprintf(conf, 6, "accept_ra"):        {"0", "2"},
			fmt.Sprintf(conf, 6, "autoconf"):         {"0", "1"},
			fmt.Sprintf(conf, 6, "accept_redirects"): {"0", "1"},
		}
		for path, values := range changed {
			if got := n.get(path); got != values[0] {
				t.Errorf("%s is %s, want %s", path, got, values[0])
			}
			n.set(path, values[1])
		}
		for path, values := range changed {
			eventually(t, path+" is put back", func() bool { return n.get(path) == values[0] })
		}
		before, err := n.d.Dump()
		time.Sleep(600 * time.Millisecond)
		after, err2 := n.d.Dump()
		if err != nil || err2 != nil || before.Writes != after.Writes {
			t.Errorf("comparisons without a difference wrote: %d, %d (%v, %v)", before.Writes, after.Writes, err, err2)
		}
	})
}

// TestKernelProcessesStayOutOfTheTunnel: a process of a node cannot send a tunnel packet with a pod's source address, but can reach remote
// pods through the tunnel.
func TestKernelProcessesStayOutOfTheTunnel(t *testing.T) {
	for _, backend := range []string{rules.BackendNFT, rules.BackendIptables} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			nodes, pods := twoNodes(t)
			for i := range nodes {
				report(t, startNode(t, nodes[i], i, backend), nodeMessages(i)...)
			}
			eventually(t, "a pod of the other node answers", func() bool {
				return pods[0].Do(func() error { return exec.Command("ping", "-n", "-c", "1", "-W", "1", "10.65.1.2").Run() }) == nil
			})
			heard := listenUDP(t, pods[1], "10.65.1.2:7777")
			send := func(what string, uid uint32, to string, data []byte) {
				t.Helper()
				if err := asUser(nodes[0], uid, to, data); err != nil && !strings.Contains(err.Error(), "not permitted") {
					t.Fatalf("%s: %v", what, err)
				}
			}
			forged := vxlanFrame(t, "66:00:00:00:00:02", "10.65.0.1:5000", "10.65.1.2:7777", "forged")
			for range 5 {
				send("forged", 65534, "192.0.2.2:4789", forged)
				send("forged by root", 0, "192.0.2.2:4789", forged)
			}
			eventually(t, "what a process sends through the tunnel arrives", func() bool {
				send("honest", 65534, "10.65.1.2:7777", []byte("honest"))
				select {
				case got := <-heard:
					if got != "honest" {
						t.Errorf("the pod heard %q", got)
					}
					return got == "honest"
				case <-time.After(200 * time.Millisecond):
					return false
				}
			})
		})
	}
}

// listenUDP returns a channel of the datagrams that arrive at an address.
func listenUDP(t *testing.T, ns *nsdo.Namespace, at string) <-chan string {
	t.Helper()
	var conn net.PacketConn
	if err := ns.Do(func() (err error) {
		conn, err = net.ListenPacket("udp", at)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 100)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 2000)
		for {
			size, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			heard <- string(buf[:size])
		}
	}()
	return heard
}

// asUser sends a datagram as a user without root's capabilities, unless uid is root.
func asUser(ns *nsdo.Namespace, uid uint32, to string, data []byte) error {
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return err
	}
	return ns.Do(func() error {
		script := "exec 3<>/dev/udp/" + host + "/" + port + "; cat >&3"
		cmd := exec.Command("bash", "-c", script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		cmd.Stdin = strings.NewReader(string(data))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// vxlanFrame returns the payload of a VXLAN packet (VNI 10) with a datagram of a pod.
func vxlanFrame(t *testing.T, mac, src, dst, text string) []byte {
	t.Helper()
	to, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	from, at := netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst)
	udp := binary.BigEndian.AppendUint16(nil, from.Port())
	udp = binary.BigEndian.AppendUint16(udp, at.Port())
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(text)))
	udp = append(append(udp, 0, 0), text...) // no checksum
	ip := []byte{0x45, 0, 0, byte(20 + len(udp)), 0, 1, 0, 0, 64, 17, 0, 0}
	ip = append(append(ip, from.Addr().AsSlice()...), at.Addr().AsSlice()...)
	sum := uint32(0)
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	frame := append([]byte{8, 0, 0, 0, 0, 0, 10, 0}, to...)
	frame = append(frame, 0x66, 0, 0, 0, 0, 1, 8, 0)
	return append(append(frame, ip...), udp...)
}

// TestKernelForgedNeighbours: regardless of the neighbours and addresses that a pod forges, the node's only neighbour at the pod's
// interface is the pod itself: its tables have 1,024 entries for all namespaces. For ARP, rp_filter ensures this. The node and other pods
// remain reachable.
func TestKernelForgedNeighbours(t *testing.T) {
	onBothBackends(t, toHost, func(t *testing.T, n *node) {
		n.apply(n.open()...)
		n.up("pod1", "pod2", "pod3")
		n.forgeNeighbours(n.Pods[0])
		for line := range strings.Lines(n.run("ip", "neigh", "show", "dev", n.Pods[0].Iface)) {
			if a, err := netip.ParseAddr(strings.Fields(line)[0]); err != nil || a != n.addr(1, 4) && a != n.addr(1, 6) {
				t.Errorf("the node remembers a neighbour that the pod has forged: %s (%v)", line, err)
			}
		}
		bothFamilies(func(f table.Family) {
			n.Expect(t,
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(n.Host.Addr(f), 80), Why: "the pod reaches its node"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[1].UDP(n.addr(3, f), 80), Why: "other pods"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Outside.UDP(n.addr(1, f), 80), Why: "the pod is reached"})
		})
	})
}

// forgeNeighbours sends solicitations, advertisements and ARP messages by which a pod claims addresses of all kinds, and echo requests from
// these addresses.
func (n *node) forgeNeighbours(pod *tabletest.Node) {
	n.t.Helper()
	s, err := forge.Open(pod.NS, "eth0", false, true)
	if err != nil {
		n.t.Fatal(err)
	}
	defer s.Close()
	own, _ := net.ParseMAC(pod.MAC)
	host := net.HardwareAddr{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}
	for i := range 300 {
		invented := netip.MustParseAddr(fmt.Sprintf("fe80::7:%x", i))
		for _, src := range []netip.Addr{invented, n.addr(2, 6), n.Outside.Addr(6), n.Host.Addr(6)} {
			for _, dst := range []netip.Addr{n.Host.Addr(6), netip.MustParseAddr("ff02::1"), netip.MustParseAddr("ff02::2")} {
				path := forge.Path{From: own, To: host, Src: src, Dst: dst}
				s.Send(path.Discovery(forge.NeighborSolicitation, n.Host.Addr(6), own), forge.Offload{})
				s.Send(path.Discovery(forge.NeighborAdvertisement, invented, own), forge.Offload{})
				s.Send(path.Discovery(forge.RouterSolicitation, netip.Addr{}, own), forge.Offload{})
				s.Send(path.Frame(forge.Packet{Proto: unix.IPPROTO_UDP, Payload: 8}), forge.Offload{}) // a reply to it would need the neighbour
			}
		}
		for _, src := range []netip.Addr{netip.AddrFrom4([4]byte{169, 254, 7, byte(i)}), n.addr(2, 4), n.Outside.Addr(4), n.Host.Addr(4)} {
			path := forge.Path{From: own, To: host, Src: src, Dst: n.Host.Addr(4)}
			s.Send(path.ARP(forge.ARPRequest, n.Host.Addr(4), own), forge.Offload{})
			s.Send(path.ARP(forge.ARPReply, n.Host.Addr(4), own), forge.Offload{})
		}
	}
	if s.Sent < 3000 {
		n.t.Errorf("the pod's kernel has refused all but %d frames: %v", s.Sent, s.Why)
	}
}
