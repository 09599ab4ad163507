package plugin_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/test/testbed/forge"
	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestHostileOffload: pods and a neighbour on the uplink send frames of any length with random headers and random virtio headers, as far as
// their kernels allow: to each other, to pods of another node without an overlay, and into and out of VXLAN tunnels. The plugin is built
// with sanitizers. VPP does not crash, and all buffers are released. CONTIV_FUZZ is the number of frames that VPP must receive in each
// mode, in thousands; CONTIV_SANITIZE is as in TestMalformed.
func TestHostileOffload(t *testing.T) {
	thousands, _ := strconv.Atoi(os.Getenv("CONTIV_FUZZ"))
	for i, mode := range []string{"one node", "no overlay", "VXLAN over IPv4", "VXLAN over IPv6"} {
		t.Run(mode, func(t *testing.T) {
			matrix.Only(t)
			h := newHostile(t, mode, uint64(thousands)<<8|uint64(i))
			used := h.buffersAtRest(h.ends...)
			h.offloads(h.up(), "on") // so that its kernel does not segment
			h.throwAll(thousands)
			h.offloads(h.up(), "off")
			h.calm(used)
		})
	}
}

// hostile is a node whose pods, and whose neighbour on the uplink, send random frames.
type hostile struct {
	*rig
	rnd    *rand.Rand
	ends   []*port                // two pods and the neighbour
	paths  map[*port][]forge.Path // paths from each end, by family
	remote [2]netip.Addr          // a pod of the other node, behind the neighbour; invalid: none
	inside forge.Path             // path of the frames inside the tunnel; without addresses: no tunnel
	tunnel int                    // family of the tunnel: 0 is IPv4
}

func newHostile(t *testing.T, mode string, seed uint64) *hostile {
	t.Helper()
	r := offloadRig(t, sanitizers())
	h := &hostile{rig: r, rnd: rand.New(rand.NewPCG(1, seed)), paths: map[*port][]forge.Path{}}
	h.ends = []*port{r.tap("a", "gso"), r.tap("b", "gso"), r.veth("u")}
	r.endpoint(h.up(), contiv.CONTIV_ROLE_API_UPLINK)
	r.do(r.api.ContivConfigSet(r.Context(), &contiv.ContivConfigSet{TunnelPorts: []uint16{9, 4789, 0, 0}})) // forged datagrams are sent to port 9
	h.lead(mode)
	r.carrySome(h.ends[0], h.up())
	r.carrySome(h.ends[0], h.ends[1])
	for _, p := range h.ends { // determine the paths before random frames reach the neighbours
		h.paths[p] = []forge.Path{r.path(p, p.v4, r.gateway(p.v4)), r.path(p, p.v6, r.gateway(p.v6))}
	}
	return h
}

func (h *hostile) up() *port { return h.ends[2] }

// lead sets up the path to the pods of the other node.
func (h *hostile) lead(mode string) {
	h.Helper()
	if mode == "one node" {
		return
	}
	h.remote = [2]netip.Addr{netip.MustParseAddr("10.9.0.2"), netip.MustParseAddr("fd00:9::2")}
	next := [2]string{h.up().v4.String(), h.up().v6.String()}
	if own, over := h.gateway(h.up().v4), h.up().v4; mode != "no overlay" {
		if strings.Contains(mode, "IPv6") {
			h.tunnel, own, over = 1, h.gateway(h.up().v6), h.up().v6
		}
		h.inside.From, h.inside.To = net.HardwareAddr{2, 0, 0, 0, 0, 9}, net.HardwareAddr{2, 0, 0, 0, 0, 1}
		next = [2]string{"10.3.0.2", "fd00:3::2"}
		h.cli("create vxlan tunnel src %s dst %s vni 5", own, over)
		h.cli("create loopback interface mac %s", h.inside.To)
		for _, command := range []string{"l2 bridge loop0 1 bvi", "l2 bridge vxlan_tunnel0 1", "ip address loop0 10.3.0.1/24", "ip address loop0 fd00:3::1/64",
			"state loop0 up", "state vxlan_tunnel0 up"} {
			h.cli("set interface %s", command)
		}
		for _, addr := range next {
			h.cli("set ip neighbor static loop0 %s %s", addr, h.inside.From)
		}
	}
	h.cli("ip route add 10.9.0.0/16 via %s", next[0])
	h.cli("ip route add fd00:9::/32 via %s", next[1])
}

// throwAll sends frames until VPP has received the given number of thousands. If no number is given, a slow machine sends fewer frames, but
// enough that some are rejected and some accepted.
func (h *hostile) throwAll(thousands int) {
	h.Helper()
	const least, few, usual = 4000, 3 * time.Second, 10
	sent, before, begin := 0, h.received(), time.Now()
	for got := 0; got < max(thousands, usual)*1000; got = min(sent, h.received()-before) { // answers of the kernels are counted as received, too
		if thousands == 0 && got > least && time.Since(begin) > few {
			break
		}
		sent += h.throwSome(h.ends[h.rnd.IntN(3)], 2000)
	}
	h.Logf("%d frames sent, %d received by VPP in %s\n%s", sent, h.received()-before, time.Since(begin).Round(time.Second), h.cli("show errors"))
	counters := map[string][]string{
		"contiv-uplink-input": {"offload that does not fit", "of several segments"}, "contiv-offload-input": {"offload that does not fit", "of several segments"},
	}
	if h.inside.From != nil {
		counters["contiv-uplink-input"] = append(counters["contiv-uplink-input"], "segments joined")
		counters[fmt.Sprintf("vxlan%d-input", 4+2*h.tunnel)] = []string{"decapsulated"}
	}
	for node, reasons := range counters {
		for _, reason := range reasons {
			if h.counter(node, reason) == 0 {
				h.Errorf("%s: never counted: %s", node, reason)
			}
		}
	}
}

var rxPackets = regexp.MustCompile(`rx packets +(\d+)`)

// received returns the number of frames that VPP has received.
func (r *rig) received() (sum int) {
	r.Helper()
	for _, m := range rxPackets.FindAllStringSubmatch(r.cli("show interface"), -1) {
		n, _ := strconv.Atoi(m[1])
		sum += n
	}
	return sum
}

// calm checks that data transfers still work, no buffer is lost, and the sanitizers report nothing.
func (h *hostile) calm(used int) {
	h.Helper()
	h.carrySome(h.ends[0], h.up())
	h.carrySome(h.ends[0], h.ends[1])
	if now := h.buffersAtRest(h.ends...); now > used+768 {
		h.Errorf("%d buffers in use before, %d afterwards", used, now)
	}
	h.sound()
}

// sound checks that the sanitizers report nothing.
func (r *rig) sound() {
	r.Helper()
	for line := range strings.Lines(r.vpp.Log()) {
		if strings.Contains(line, "runtime error") && !strings.Contains(line, "/include/") || strings.Contains(line, "AddressSanitizer") {
			r.Error(line)
		}
	}
}

// throwSome sends n random frames and returns how many the kernel accepted.
func (h *hostile) throwSome(from *port, n int) int {
	h.Helper()
	s, err := forge.Open(from.Namespace, "eth0", true, true)
	h.do(nil, err)
	defer s.Close()
	to, family := h.ends[h.rnd.IntN(3)], h.rnd.IntN(2)
	path := h.paths[from][family]
	path.Dst = [2]netip.Addr{to.v4, to.v6}[family]
	if h.remote[0].IsValid() && h.rnd.IntN(2) == 0 {
		if from == h.up() {
			path.Src = h.remote[family]
		} else {
			path.Dst = h.remote[family]
		}
	}
	for range n {
		if from == h.up() && h.inside.From != nil && h.rnd.IntN(2) == 0 {
			inner := path
			inner.From, inner.To = h.inside.From, h.inside.To
			s.Send(h.wrapped(inner))
			continue
		}
		frame, o := h.frame(path)
		s.Send(h.spoilt(frame, 90), o)
	}
	return s.Sent
}

// of returns one of the usual values, or a random value.
func (h *hostile) of(usual ...int) int {
	if h.rnd.IntN(4) == 0 {
		return h.rnd.IntN(65536)
	}
	return usual[h.rnd.IntN(len(usual))]
}

// frame returns a random packet, and the work that its sender leaves to the device.
func (h *hostile) frame(path forge.Path) ([]byte, forge.Offload) {
	q := forge.Packet{Proto: []uint8{tcp, udp, udp, 4, 41, icmp4}[h.rnd.IntN(6)], Payload: h.of(0, 1, 700, 1402, 3000, 3000), VLANs: h.rnd.IntN(8) / 7}
	q.Payload = min(q.Payload, 65300)
	switch h.rnd.IntN(6) {
	case 0:
		q.Length = uint16(h.of(20, 1500, 65535))
	case 1:
		q.DataOffset = uint8(h.rnd.IntN(16))
	case 2:
		q.HeaderWords = uint8(5 + h.rnd.IntN(11))
	}
	o := largeTCP(path.Dst.Is6(), uint16(h.of(0, 1, 100, 536, 700, 1398, 1460)))
	o.GSOType = []uint8{0, forge.GSOTCPv4, forge.GSOTCPv6, forge.GSOUDP, forge.GSOUDPL4, forge.GSOTCPv4 | forge.GSOECN}[h.rnd.IntN(6)]
	if q.Proto == udp && h.rnd.IntN(4) > 0 {
		o.GSOType, o.ChecksumOffset = forge.GSOUDPL4, 6
	}
	return path.Frame(q), h.spoiltOffload(o)
}

func (h *hostile) spoiltOffload(o forge.Offload) forge.Offload {
	switch h.rnd.IntN(8) {
	case 0:
		o.ChecksumStart = uint16(h.of(0, 14, 34, 54, 1400))
	case 1:
		o.ChecksumOffset = uint16(h.of(0, 6, 16))
	case 2:
		o.HeaderLen = uint16(h.of(0, 14, 2000))
	case 3:
		o.Flags = uint8(h.rnd.IntN(4))
	}
	return o
}

// spoilt flips some bits of the first n bytes, or none.
func (h *hostile) spoilt(frame []byte, n int) []byte {
	for range h.rnd.IntN(8) / 5 {
		frame[h.rnd.IntN(min(len(frame), n))] ^= 1 << h.rnd.IntN(8)
	}
	return frame
}

// wrapped returns a frame of the tunnel with a random packet, a large TCP packet, or a train of segments.
func (h *hostile) wrapped(inner forge.Path) ([]byte, forge.Offload) {
	outer := h.paths[h.up()][h.tunnel]
	l4 := 34 + 20*h.tunnel
	start := l4 + 16 // offset of the inner frame
	var frame []byte
	var o forge.Offload
	switch h.rnd.IntN(3) {
	case 0:
		one, _ := h.frame(inner)
		frame = vxlan(outer, one)
	case 1:
		o = largeTCP(inner.Dst.Is6(), uint16(h.of(100, 700, 1398)))
		o.ChecksumStart, o.HeaderLen = o.ChecksumStart+uint16(start), o.HeaderLen+uint16(start)
		frame = vxlan(outer, inner.Frame(forge.Packet{Proto: tcp, Payload: h.of(3000, 10000, 60000) * 9 / 10}))
	default:
		size := h.of(100, 700, 1300) % 1300
		segments := make([][]byte, 1+h.rnd.IntN(8))
		for i := range segments {
			segments[i] = sealed(inner.Frame(forge.Packet{Proto: tcp, Payload: size}), uint32(i*size))
		}
		o = forge.Offload{Flags: forge.NeedsChecksum, GSOType: forge.GSOUDPL4, HeaderLen: uint16(l4 + 8), GSOSize: uint16(8 + len(segments[0])),
			ChecksumStart: uint16(l4), ChecksumOffset: 6}
		frame = vxlan(outer, segments...)
	}
	return h.spoilt(frame, start+60), h.spoiltOffload(o)
}

// vxlan returns a datagram to VPP's end of the tunnel that contains frames, each after a VXLAN header.
func vxlan(outer forge.Path, frames ...[]byte) []byte {
	var payload []byte
	for _, f := range frames {
		payload = append(append(payload, 8, 0, 0, 0, 0, 0, 5, 0), f...)
	}
	b := outer.Frame(forge.Packet{Proto: udp, Payload: len(payload)})
	at := len(b) - len(payload)
	binary.BigEndian.PutUint16(b[at-6:], 4789)
	copy(b[at:], payload)
	return b
}

// sealed returns a TCP segment with a sequence number and a correct checksum.
func sealed(frame []byte, seq uint32) []byte {
	l4, addrs := 34, frame[26:34]
	if frame[14]>>4 == 6 {
		l4, addrs = 54, frame[22:54]
	}
	segment := frame[l4:]
	binary.BigEndian.PutUint32(segment[4:], seq)
	sum := uint32(tcp) + uint32(len(segment))
	for _, b := range [][]byte{addrs, segment} {
		for i := range b {
			sum += uint32(b[i]) << (8 * (1 - i%2))
		}
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(segment[16:], ^uint16(sum))
	return frame
}
