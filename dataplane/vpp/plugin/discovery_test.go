package plugin_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	ipapi "go.fd.io/govpp/binapi/ip"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/test/testbed/forge"
)

// TestForgedNeighbours: a pod, and a machine on the uplink's network, claim addresses of VPP, of other machines and unused ones, by ARP and
// neighbour discovery, with their own hardware address, VPP's, and group addresses. VPP must not store its own addresses as neighbours, and
// for a pod only the pod's addresses. No packet may loop, and data transfers still work in both families.
func TestForgedNeighbours(t *testing.T) {
	r := offloadRig(t, "")
	w := &forgers{rig: r, pod: r.pod("a", "gso"), other: r.pod("b", "gso"), up: r.veth("u")}
	r.endpoint(w.up, contiv.CONTIV_ROLE_API_UPLINK)
	r.carrySome(w.pod, w.up)
	r.reach(w.other, w.pod.v4)
	w.find()
	for _, p := range []*port{w.pod, w.up} {
		used := r.buffersAtRest(w.pod, w.other, w.up)
		sent := w.claim(p)
		w.quiet(p, sent)
		w.forgotten(p)
		w.truth(p)
		for _, ends := range [][2]*port{{w.pod, w.up}, {w.pod, w.other}, {w.up, w.other}} {
			r.reach(ends[0], ends[1].v4)
			r.reach(ends[0], ends[1].v6)
		}
		r.carrySome(w.pod, w.up)
		if now := r.buffersAtRest(w.pod, w.other, w.up); now > used+768 {
			t.Errorf("%d buffers in use before, %d afterwards", used, now)
		}
	}
	for node, reason := range map[string]string{"contiv-discovery": "neighbour that VPP must not have", "contiv-ip6-input": "unicast packet in a group frame",
		"contiv-arp": "source that is not the pod", "contiv-ip6-multicast": "source that is not the pod"} {
		if r.counter(node, reason) == 0 {
			t.Errorf("%s: never counted: %s", node, reason)
		}
	}
	r.sound()
}

// forgers holds the ends that claim addresses.
type forgers struct {
	*rig
	pod, other, up *port
	vpp            map[*port]net.HardwareAddr // VPP's hardware address at each end
	own            map[netip.Addr]bool        // all addresses of VPP
	links          map[*port]netip.Addr       // VPP's link-local address at each end; at other ends it may be that of a neighbour
}

// find reads VPP's own addresses.
func (w *forgers) find() {
	w.Helper()
	w.vpp, w.own, w.links = map[*port]net.HardwareAddr{}, map[netip.Addr]bool{}, map[*port]netip.Addr{}
	for _, p := range []*port{w.pod, w.other, w.up} {
		w.vpp[p] = w.path(p, p.v4, p.v4).To
		reply := &ipapi.SwInterfaceIP6GetLinkLocalAddressReply{}
		w.do(nil, w.conn.Invoke(w.Context(), &ipapi.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: p.index}, reply))
		for _, a := range []netip.Addr{netip.AddrFrom16(reply.IP), w.gateway(p.v4), w.gateway(p.v6)} {
			w.own[a] = true
		}
		w.links[p] = netip.AddrFrom16(reply.IP)
	}
	for _, p := range []*port{w.pod, w.other} { // same as the agent
		for _, a := range []netip.Addr{p.v4, p.v6} {
			w.cli("set ip neighbor static %s %s %s", p.device, a, w.hardware(p))
		}
	}
}

// claim sends the messages from an end and returns their number.
func (w *forgers) claim(p *port) int {
	w.Helper()
	s, err := forge.Open(p.Namespace, "eth0", false, true)
	w.do(nil, err)
	defer s.Close()
	mine := w.hardware(p)
	machines := []net.HardwareAddr{mine, w.vpp[p], w.vpp[w.other], {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0x33, 0x33, 0, 0, 0, 1}}
	addrs := []netip.Addr{p.v4, p.v6, w.other.v4, w.other.v6, netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr("fd00:9::9")}
	for a := range w.own {
		addrs = append(addrs, a)
	}
	for i := range 8 {
		addrs = append(addrs, netip.MustParseAddr(fmt.Sprintf("fe80::7:%x", i)))
	}
	for _, from := range machines {
		for _, at := range machines {
			for _, to := range []net.HardwareAddr{w.vpp[p], machines[3]} {
				for _, src := range addrs {
					for _, target := range addrs {
						w.message(s, forge.Path{From: from, To: to, Src: src}, target, at)
					}
				}
			}
		}
	}
	if s.Sent < 10_000 {
		w.Errorf("the kernel of %s has refused all but %d frames: %v", p.Name, s.Sent, s.Why)
	}
	return s.Sent
}

// truth announces the correct owner of an end's addresses, since an end may claim its own addresses with a wrong hardware address. It
// repeats this until VPP has stored it, because VPP limits the number of claims that it stores per second, and the forged claims may have
// used up that limit.
func (w *forgers) truth(p *port) {
	w.Helper()
	s, err := forge.Open(p.Namespace, "eth0", false, true)
	w.do(nil, err)
	defer s.Close()
	mine := w.hardware(p)
	w.eventually("VPP has the truth about "+p.Name, func() bool {
		w.message(s, forge.Path{From: mine, To: w.vpp[p], Src: p.v4}, w.gateway(p.v4), mine)
		w.message(s, forge.Path{From: mine, To: w.vpp[p], Src: p.v6}, p.v6, mine)
		return w.knows(p.v4, mine) && w.knows(p.v6, mine)
	})
}

// knows reports whether VPP has stored a neighbour with a hardware address.
func (w *forgers) knows(addr netip.Addr, at net.HardwareAddr) bool {
	w.Helper()
	for line := range strings.Lines(w.cli("show ip neighbors")) {
		if f := strings.Fields(line); len(f) >= 5 && f[1] == addr.String() {
			return f[len(f)-2] == at.String()
		}
	}
	return false
}

// message sends the claims of an address for itself or for another address.
func (w *forgers) message(s *forge.Socket, path forge.Path, target netip.Addr, at net.HardwareAddr) {
	if path.Src.Is4() != target.Is4() {
		return
	}
	if path.Src.Is4() {
		for _, operation := range []uint16{forge.ARPRequest, forge.ARPReply} {
			s.Send(path.ARP(operation, target, at), forge.Offload{})
		}
		return
	}
	b := target.As16()
	copy(b[:13], netip.MustParseAddr("ff02::1:ff00:0").AsSlice()) // solicited-node address
	for _, kind := range []uint8{forge.NeighborSolicitation, forge.NeighborAdvertisement} {
		for _, dst := range []netip.Addr{target, netip.AddrFrom16(b)} {
			path.Dst = dst
			s.Send(path.Discovery(kind, target, at), forge.Offload{})
		}
	}
}

// quiet waits until VPP has no more work. VPP must not receive many more packets than were sent.
func (w *forgers) quiet(p *port, sent int) {
	w.Helper()
	last, since := 0, time.Now()
	w.eventually("VPP is quiet", func() bool {
		if now := w.received(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
	w.Logf("%s: %d frames sent; VPP has received %d in all\n%s\n%s", p.Name, sent, last, w.cli("show errors"), w.cli("show ip neighbors"))
}

// forgotten checks that VPP's neighbours do not include VPP's own addresses or group addresses, nor, at a pod, addresses other than the
// pod's.
func (w *forgers) forgotten(p *port) {
	w.Helper()
	seen := 0
	for line := range strings.Lines(w.cli("show ip neighbors")) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		addr, err := netip.ParseAddr(f[1])
		at, err2 := net.ParseMAC(f[len(f)-2])
		if err != nil || err2 != nil {
			continue
		}
		seen++
		own := w.own[addr]
		if addr.IsLinkLocalUnicast() {
			own = addr == w.links[p]
		}
		if strange := addr != w.pod.v4 && addr != w.pod.v6; own || at[0]&1 != 0 || f[len(f)-1] == w.pod.device && strange {
			w.Errorf("after claims of %s VPP remembers: %s", p.Name, line)
		}
	}
	if seen < 4 {
		w.Errorf("only %d neighbours are shown", seen)
	}
}
