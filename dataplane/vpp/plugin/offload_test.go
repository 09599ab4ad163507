package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/af_packet"

	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/bulk"
	"contiv.dev/vswitch/test/testbed/forge"
	"contiv.dev/vswitch/test/testbed/netns"
)

const bulkPort = 5201

// TestSegmentation: pods leave segmentation and checksums to VPP, for each kind of other end: a TAP that accepts large packets, a TAP that
// does not, an AF_PACKET interface. Every byte arrives, in both families and directions. If the path has a smaller MTU, the sender gets an
// ICMP error. No buffer is lost.
func TestSegmentation(t *testing.T) {
	r := offloadRig(t, "")
	a := r.tap("a", "gso")
	for _, to := range []*port{r.tap("b", "gso"), r.tap("c", ""), r.veth("d")} {
		r.carry(a, to)
	}
	if segments := r.counter("contiv-offload-output", "segments"); segments == 0 {
		r.Error("nothing was cut into segments")
	}
	if large := r.counter("contiv-offload-output", "packets of several segments"); large == 0 {
		r.Error("nothing was left whole for a TAP")
	}
	if joined := r.counter("contiv-offload-output", "segments joined"); joined == 0 {
		r.Error("nothing was joined for a TAP")
	}
	r.noneRefused()
}

// carry transfers data from a to another pod and back.
func (r *rig) carry(a, to *port) {
	r.Helper()
	r.carryLoads(a, to, bulk.Load{Up: 1, Length: 16 << 20}, bulk.Load{Up: 3, Down: 3, Length: 4 << 20})
}

func (r *rig) carryLoads(a, to *port, loads ...bulk.Load) {
	r.Helper()
	s, err := bulk.Serve(to.Namespace, bulkPort)
	r.do(nil, err)
	defer s.Close()
	ctx, cancel := context.WithTimeout(r.Context(), 3*time.Minute)
	defer cancel()
	for _, ip := range []netip.Addr{to.v4, to.v6} {
		r.reach(a, ip)
		server := netip.AddrPortFrom(ip, bulkPort)
		for _, l := range loads {
			result, err := l.Run(ctx, a.Namespace, server)
			if err != nil {
				r.Errorf("%s\n%s", err, r.cli("show errors"))
				return
			}
			r.Logf("%s to %s, %d streams: %s", a.Name, server, l.Up+l.Down, result)
		}
		if err := bulk.Echo(ctx, a.Namespace, server, 1500, 20*time.Second); err != nil {
			r.Error(err)
		}
	}
}

// TestNarrow: the outgoing interface has a smaller MTU than the pod. The pod's kernel accepts the ICMP error, which VPP also creates for a
// packet of several segments.
func TestNarrow(t *testing.T) {
	r := offloadRig(t, "")
	a, b := r.tap("a", "gso"), r.veth("b")
	if _, err := b.Run(r.Context(), "ip", "link", "set", "eth0", "mtu", "1300"); err != nil {
		r.Fatal(err)
	}
	r.cli("set interface mtu packet 1300 %s", b.device)
	s, err := bulk.Serve(b.Namespace, bulkPort)
	r.do(nil, err)
	defer s.Close()
	ctx, cancel := context.WithTimeout(r.Context(), 3*time.Minute)
	defer cancel()
	for _, ip := range []netip.Addr{b.v4, b.v6} {
		r.reach(a, ip)
		result, err := bulk.Load{Up: 2, Down: 2, Length: 4 << 20}.Run(ctx, a.Namespace, netip.AddrPortFrom(ip, bulkPort))
		if err != nil {
			r.Errorf("%s\n%s", err, r.cli("show errors"))
		}
		r.Logf("%s: %s", ip, result)
		r.eventually("the sender knows the MTU of the path", func() bool {
			return errors.Is(bulk.Echo(ctx, a.Namespace, netip.AddrPortFrom(ip, bulkPort), 1301, time.Second), bulk.ErrTooLong)
		})
	}
	r.tooBig(a, b)
}

// tooBig sends packets whose segments are larger than the MTU.
func (r *rig) tooBig(a, b *port) {
	r.Helper()
	for _, ends := range [][2]netip.Addr{{a.v4, b.v4}, {a.v6, b.v6}} {
		// The forged IPv4 packet does not have the flag "do not fragment".
		counter := map[bool][2]string{false: {"ip4-frag", "fragments"}, true: {"ip6-icmp-error", "too big"}}[ends[0].Is6()]
		before := r.counter(counter[0], counter[1])
		path := r.path(a, ends[0], ends[1])
		s, err := forge.Open(a.Namespace, "eth0", true, true)
		r.do(nil, err)
		s.Send(path.Frame(forge.Packet{Proto: tcp, Payload: 20000}), largeTCP(ends[0].Is6(), 1400))
		s.Close()
		r.eventually("an ICMP error or fragments for "+ends[1].String(), func() bool { return r.counter(counter[0], counter[1]) > before })
	}
}

// TestForgedOffload: a pod forges virtio headers. VPP does not crash, other data arrive unchanged, and all buffers are released.
func TestForgedOffload(t *testing.T) {
	r := offloadRig(t, "")
	a, b, c := r.tap("a", "gso"), r.tap("b", "gso"), r.veth("c")
	r.carry(a, b)
	r.carry(a, c)
	used := r.buffersAtRest(a, b, c)
	sent := 0
	for _, to := range []*port{b, c, b, c} {
		for _, ends := range [][2]netip.Addr{{a.v4, to.v4}, {a.v6, to.v6}, {a.v4, r.gateway(a.v4)}, {a.v6, r.gateway(a.v6)}} {
			sent += r.throw(a, r.path(a, ends[0], ends[1]))
		}
	}
	r.Logf("%d frames sent\n%s", sent, r.cli("show errors"))
	if sent < 500 {
		r.Errorf("the pod's kernel has refused all but %d frames", sent)
	}
	r.carry(a, b)
	r.carry(a, c)
	// The number of packets in the rings of TAPs varies, and threads have caches.
	if now := r.buffersAtRest(a, b, c); now > used+512 {
		r.Errorf("%d buffers in use before, %d afterwards", used, now)
	}
	for _, reason := range []string{"offload that does not fit", "segments of a forbidden size"} {
		if r.counter("contiv-offload-input", reason) == 0 {
			r.Errorf("never counted: %s", reason)
		}
	}
}

// buffersAtRest returns the number of buffers in use when no packets are in flight. Rings release buffers when they get the next packet.
func (r *rig) buffersAtRest(pods ...*port) int {
	r.Helper()
	for range 3 {
		for _, from := range pods {
			for _, to := range pods {
				r.reach(from, to.v4)
				r.reach(from, to.v6)
			}
		}
	}
	return r.buffersUsed()
}

// throw sends packets of all lengths with all kinds of virtio headers. It returns how many the kernel accepted.
func (r *rig) throw(a *port, path forge.Path) int {
	r.Helper()
	s, err := forge.Open(a.Namespace, "eth0", true, true)
	r.do(nil, err)
	defer s.Close()
	ip6 := path.Dst.Is6()
	types := []uint8{0, forge.GSOTCPv4, forge.GSOTCPv6, forge.GSOUDP, forge.GSOUDPL4, forge.GSOTCPv4 | forge.GSOECN}
	for _, kind := range types {
		for _, size := range []uint16{0, 1, 7, 536, 1398, 1460, 9000, 65535} {
			for _, offset := range []uint16{16, 6, 400} {
				o := largeTCP(ip6, size)
				o.GSOType, o.ChecksumOffset = kind, offset
				for _, payload := range []int{0, 1, 1402, 5000, 30001, 65000} {
					if size < 100 && payload > 5000 {
						continue // this would keep the pod's kernel busy
					}
					for _, q := range []forge.Packet{{}, {DataOffset: 15}, {DataOffset: 1}, {Length: 100}, {VLANs: 1}} {
						q.Payload = payload
						for _, q.Proto = range []uint8{tcp, 17, 4} {
							s.Send(path.Frame(q), o)
						}
					}
				}
			}
		}
	}
	return s.Sent
}

func largeTCP(ip6 bool, size uint16) forge.Offload {
	l4 := uint16(34)
	if ip6 {
		l4 = 54
	}
	return forge.Offload{Flags: forge.NeedsChecksum, GSOType: map[bool]uint8{false: forge.GSOTCPv4, true: forge.GSOTCPv6}[ip6], GSOSize: size,
		HeaderLen: l4 + 20, ChecksumStart: l4, ChecksumOffset: 16}
}

// ---- the rig ----

func offloadRig(t *testing.T, sanitize string) *rig {
	t.Helper()
	ns, err := netns.New(t.Context(), fmt.Sprintf("cvvpp-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Delete(context.Background()) })
	r := newRig(t, vpptest.Options{Vhostshim: true, Netns: ns.Name, Sanitize: sanitize, Buffers: 16384, FewPlugins: []string{"af_packet", "vxlan"}})
	r.netns = ns
	return r
}

// veth attaches a namespace by a VETH and an AF_PACKET interface, like the agent attaches uplinks.
func (r *rig) veth(name string) *port {
	r.Helper()
	p := r.attach(name)
	device := "v" + name
	for _, args := range [][]string{
		{"ip", "link", "add", device, "up", "type", "veth", "peer", "name", "eth0", "netns", p.Name},
		{"ethtool", "-K", device, "gro", "off"},
	} {
		if _, err := r.netns.Run(r.Context(), args[0], args[1:]...); err != nil {
			r.Fatal(err)
		}
	}
	n := r.pods
	for _, command := range []string{
		"ethtool -K eth0 tx off", fmt.Sprintf("ip addr add %s/24 dev eth0", p.v4), fmt.Sprintf("ip addr add %s/64 dev eth0", p.v6), "ip link set eth0 up",
		fmt.Sprintf("ip route add default via 10.1.%d.1", n), fmt.Sprintf("ip -6 route add default via fd00:1:%d::1", n),
	} {
		words := strings.Fields(command)
		if _, err := p.Run(r.Context(), words[0], words[1:]...); err != nil {
			r.Fatal(err)
		}
	}
	reply := &af_packet.AfPacketCreateV3Reply{}
	r.do(nil, r.conn.Invoke(r.Context(), iface.AfPacketRequest(device, 1500, iface.DefaultAfPacketRings()), reply))
	r.cli("set interface mtu 1500 host-%s", device)
	r.up(p, "host-"+device)
	return p
}

// reach waits until a ping is answered.
func (r *rig) reach(from *port, to netip.Addr) {
	r.Helper()
	r.eventually(fmt.Sprintf("%s reaches %s", from.Name, to), func() bool {
		return from.PingOnce(r.Context(), to.String(), 56) == nil
	})
}

func (r *rig) gateway(of netip.Addr) netip.Addr {
	b := of.AsSlice()
	b[len(b)-1] = 1
	a, _ := netip.AddrFromSlice(b)
	return a
}

// path returns the path from a pod, which must have reached another address before, to its gateway.
func (r *rig) path(a *port, src, dst netip.Addr) forge.Path {
	r.Helper()
	neighbour, err := a.Run(r.Context(), "ip", "neigh", "show", r.gateway(src).String(), "dev", "eth0")
	r.do(nil, err)
	_, gateway, _ := strings.Cut(neighbour, "lladdr ")
	gateway, _, _ = strings.Cut(gateway, " ")
	to, err := net.ParseMAC(strings.TrimSpace(gateway))
	r.do(nil, err)
	return forge.Path{From: r.hardware(a), To: to, Src: src, Dst: dst}
}

// noneRefused checks that the offload nodes dropped no packet.
func (r *rig) noneRefused() {
	r.Helper()
	for _, node := range []string{"contiv-offload-input", "contiv-offload-output"} {
		for _, reason := range []string{"offload that does not fit", "segments of a forbidden size", "no buffers"} {
			if n := r.counter(node, reason); n != 0 {
				r.Errorf("%s: %s: %d", node, reason, n)
			}
		}
	}
}
