package cluster

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/plugins/ipnet/transport/vxlan"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
)

// The ports of the test.
const (
	hostilePort = 7777
	tunnelPort  = 4789
)

// hostileModes are the modes in which pods' sources are checked.
var hostileModes = []mode{
	{dataplane: "vpp", transport: "vxlan", plugin: true}, {dataplane: "vpp", transport: "vxlan", veth: true, plugin: true},
	{dataplane: "vpp", transport: "nooverlay", plugin: true}, {dataplane: "linux", transport: "vxlan"},
}

// heard counts the datagrams that have arrived, by their text.
type heard struct {
	mu  sync.Mutex
	all map[string]int // guarded by mu
}

func (h *heard) count(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[text]
}

// listen records the datagrams that arrive at the port in a namespace.
func (w *world) listen(ns *netns.Namespace, h *heard) {
	w.t.Helper()
	var conn net.PacketConn
	w.must(ns.Do(func() (err error) {
		conn, err = net.ListenPacket("udp", fmt.Sprintf(":%d", hostilePort))
		return err
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			h.mu.Lock()
			h.all[string(buf[:n])]++
			h.mu.Unlock()
		}
	}()
	w.t.Cleanup(func() { conn.Close(); <-done })
}

// hostile is a pod that sends self-made frames.
type hostile struct {
	*testbed.Pod
	w       *world
	fd      int
	mac, gw net.HardwareAddr
	ifIndex int
}

func (w *world) hostile(p *testbed.Pod) *hostile {
	w.t.Helper()
	h := &hostile{Pod: p, w: w}
	w.must(p.Namespace.Do(func() error {
		link, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		h.mac, h.ifIndex = link.HardwareAddr, link.Index
		h.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		return err
	}))
	w.t.Cleanup(func() { unix.Close(h.fd) })
	out, err := p.Namespace.Run(w.ctx, "ip", "neigh", "show", "dev", "eth0")
	w.must(err)
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "lladdr" {
			h.gw, err = net.ParseMAC(f[2])
			w.must(err)
		}
	}
	if h.gw == nil {
		w.t.Fatalf("no gateway in %q", out)
	}
	return h
}

func (h *hostile) frame(b []byte) {
	h.w.t.Helper()
	h.w.must(unix.Sendto(h.fd, b, 0, &unix.SockaddrLinklayer{Ifindex: h.ifIndex, Halen: 6}))
}

// udp sends a datagram three times: the first could be lost for other reasons.
func (h *hostile) udp(src, dst netip.AddrPort, payload []byte) {
	h.w.t.Helper()
	for range 3 {
		h.frame(ethernet(h.gw, h.mac, datagram(src, dst, payload)))
	}
}

func ethernet(dst, src net.HardwareAddr, packet []byte) []byte {
	b := append(append([]byte{}, dst...), src...)
	if packet[0]>>4 == 4 {
		return append(append(b, 8, 0), packet...)
	}
	return append(append(b, 0x86, 0xdd), packet...)
}

// datagram returns an IP packet with valid checksums.
func datagram(src, dst netip.AddrPort, payload []byte) []byte {
	be := binary.BigEndian
	u := be.AppendUint16(be.AppendUint16(nil, src.Port()), dst.Port())
	u = append(be.AppendUint16(u, uint16(8+len(payload))), 0, 0)
	u = append(u, payload...)
	pseudo := append(append(append([]byte{}, src.Addr().AsSlice()...), dst.Addr().AsSlice()...), 0, 17)
	be.PutUint16(u[6:], onesComplement(append(be.AppendUint16(pseudo, uint16(len(u))), u...)))
	if dst.Addr().Is6() {
		b := append([]byte{0x60, 0, 0, 0}, byte(len(u)>>8), byte(len(u)), 17, 64)
		return append(append(append(b, src.Addr().AsSlice()...), dst.Addr().AsSlice()...), u...)
	}
	b := append([]byte{0x45, 0, byte((20 + len(u)) >> 8), byte(20 + len(u)), 0, 0, 0, 0, 64, 17, 0, 0}, src.Addr().AsSlice()...)
	b = append(b, dst.Addr().AsSlice()...)
	be.PutUint16(b[10:], onesComplement(b))
	return append(b, u...)
}

func onesComplement(b []byte) uint16 {
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// inTunnel returns a frame for a pod of another node in the form in which the overlay carries it.
func inTunnel(src, dst netip.AddrPort, node uint32, text string) []byte {
	inner := ethernet(vxlan.MAC(node), vxlan.MAC(1), datagram(src, dst, []byte(text)))
	return append([]byte{8, 0, 0, 0, 0, 0, vxlan.VNI, 0}, inner...)
}

// TestForgedSourcesAreDropped checks that packets of a pod with another source, and packets to the tunnels' ports, arrive nowhere,
// in both families, to its own node and to others; packets with its own source arrive.
func TestForgedSourcesAreDropped(t *testing.T) {
	t.Parallel()
	for _, m := range hostileModes {
		t.Run(m.String(), func(t *testing.T) {
			matrix.Only(t, "vpp-vxlan-plugin", "linux-vxlan")
			w := newWorld(t, m, 2)
			pods := w.podPerNode()
			near := w.pod(w.Nodes[0], "b")
			w.mesh(append(pods, near))
			h, bad := &heard{all: map[string]int{}}, w.hostile(pods[0])
			for _, ns := range []*netns.Namespace{near.Namespace, pods[1].Namespace, w.Nodes[0].Namespace, w.Nodes[1].Namespace} {
				w.listen(ns, h)
			}
			refused := w.forge(bad, near, pods[1], h)
			w.within(time.Minute, "a last datagram under its own name arrives", func() error {
				for _, to := range append(append([]netip.Addr{}, near.IPs...), pods[1].IPs...) {
					text := "own to " + to.String()
					bad.udp(netip.AddrPortFrom(sameFamily(bad.IPs, to), 1000), netip.AddrPortFrom(to, hostilePort), []byte(text))
					time.Sleep(50 * time.Millisecond)
					if h.count(text) == 0 {
						return fmt.Errorf("%s has not arrived", text)
					}
				}
				return nil
			})
			for _, text := range refused {
				if n := h.count(text); n > 0 {
					t.Errorf("%s: arrived %d times", text, n)
				}
			}
			w.mesh(append(pods, near))
		})
	}
}

// forge sends packets that must not arrive, and returns their texts.
func (w *world) forge(bad *hostile, near, far *testbed.Pod, h *heard) (texts []string) {
	w.t.Helper()
	node1, node2 := netip.MustParseAddr(testbed.MgmtAddress(0)), netip.MustParseAddr(testbed.MgmtAddress(1))
	send := func(src, to netip.Addr) {
		text := fmt.Sprintf("%s as %s to %s", bad.IPs[0], src, to)
		texts = append(texts, text)
		bad.udp(netip.AddrPortFrom(src, 1000), netip.AddrPortFrom(to, hostilePort), []byte(text))
	}
	for i := range near.IPs {
		victims := []netip.Addr{near.IPs[i], far.IPs[i]}
		names := append([]netip.Addr{}, victims...)
		if near.IPs[i].Is4() {
			victims = append(victims, node1, node2)
			names = append(names, node1, node2, netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("172.30.1.1"))
		} else {
			names = append(names, netip.MustParseAddr("2001:db8::8"))
		}
		for _, src := range names {
			for _, to := range victims {
				if src != to {
					send(src, to)
				}
			}
		}
	}
	if w.mode.transport == "vxlan" {
		texts = append(texts, w.inject(bad, near, far)...)
	}
	return texts
}

// inject sends frames for the overlay, with the source of the pod, the node and the peer, to the other node and to its own.
func (w *world) inject(bad *hostile, near, far *testbed.Pod) (texts []string) {
	w.t.Helper()
	var ends []netip.Addr
	for _, n := range w.Nodes {
		ends = append(ends, w.nodeAddress(n))
	}
	for _, src := range []netip.Addr{bad.IPs[0], ends[0], ends[1]} {
		for node, dst := range ends {
			to := []*testbed.Pod{near, far}[node].IPs[0]
			text := fmt.Sprintf("injected as %s to %s", src, dst)
			texts = append(texts, text)
			bad.udp(netip.AddrPortFrom(src, 50000), netip.AddrPortFrom(dst, tunnelPort),
				inTunnel(netip.AddrPortFrom(far.IPs[0].Next(), 1), netip.AddrPortFrom(to, hostilePort), uint32(node+1), text))
		}
	}
	return texts
}

func sameFamily(list []netip.Addr, as netip.Addr) netip.Addr {
	for _, a := range list {
		if a.Is4() == as.Is4() {
			return a
		}
	}
	return netip.Addr{}
}
