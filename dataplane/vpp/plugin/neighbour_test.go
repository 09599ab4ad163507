package plugin_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/test/testbed/forge"
)

// Messages between plugins on an uplink: uplink_peers.c.
const (
	peerType         = 0x88b5
	peerQuery, reply = 1, 2
)

// peerMessage returns a frame from one plugin to another.
func peerMessage(from, to net.HardwareAddr, kind byte, token uint64) []byte {
	b := binary.BigEndian.AppendUint16(append(append([]byte{}, to...), from...), peerType)
	b = append(append(b, "contiv"...), 2, kind)
	return append(binary.NativeEndian.AppendUint64(b, token), make([]byte, 30)...)
}

// neighbour is a machine on the uplink's network. It receives the messages between plugins, and sends arbitrary answers to queries.
type neighbour struct {
	fd        int
	done      sync.WaitGroup
	requested atomic.Int64
	answered  atomic.Int64 // answers that VPP has sent
	answer    atomic.Pointer[func(own, vpp net.HardwareAddr, token uint64) []byte]
}

func newNeighbour(r *rig, p *port) *neighbour {
	r.Helper()
	n := &neighbour{}
	r.do(nil, p.Do(func() (err error) {
		link, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		protocol := uint16(peerType>>8 | peerType&0xff<<8)
		if n.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(protocol)); err != nil {
			return err
		}
		if err := unix.SetsockoptTimeval(n.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
			return err
		}
		return unix.Bind(n.fd, &unix.SockaddrLinklayer{Ifindex: link.Index, Protocol: protocol})
	}))
	var over atomic.Bool
	n.done.Go(func() {
		for b := make([]byte, 2048); !over.Load(); {
			if size, _, err := unix.Recvfrom(n.fd, b, 0); err == nil && size >= 30 {
				n.hear(b[:size])
			}
		}
	})
	r.Cleanup(func() {
		over.Store(true)
		n.done.Wait()
		_ = unix.Close(n.fd)
	})
	return n
}

func (n *neighbour) hear(b []byte) {
	switch b[21] {
	case peerQuery:
		n.requested.Add(1)
		if answer := n.answer.Load(); answer != nil {
			_, _ = unix.Write(n.fd, (*answer)(net.HardwareAddr(b[:6]), net.HardwareAddr(b[6:12]), binary.NativeEndian.Uint64(b[22:])))
		}
	case reply:
		n.answered.Add(1)
	}
}

// TestHostileNeighbour: a machine on the uplink's network forges messages between plugins, floods VPP with them, and makes VPP send large
// packets to more neighbours than its table can hold. Only neighbours that answered VPP's own query get large packets. VPP does not crash,
// and data transfers still work.
func TestHostileNeighbour(t *testing.T) {
	r := offloadRig(t, "address,undefined")
	a, up := r.tap("a", "gso"), r.veth("u")
	r.endpoint(up, contiv.CONTIV_ROLE_API_UPLINK)
	r.carrySome(a, up)
	used := r.buffersAtRest(a, up)
	n, path := newNeighbour(r, up), r.path(up, up.v4, r.gateway(up.v4))
	large := func() int { return r.counter("contiv-offload-output", "that the kernel may cut") }

	forged := func(own, vpp net.HardwareAddr, token uint64) []byte { return peerMessage(own, vpp, reply, token^1) }
	n.answer.Store(&forged)
	r.eventually("VPP asks the neighbour", func() bool {
		r.carrySome(a, up)
		return n.requested.Load() > 2
	})
	if sent := large(); sent != 0 {
		t.Errorf("after forged answers VPP has sent %d large packets to a neighbour", sent)
	}
	honest := func(own, vpp net.HardwareAddr, token uint64) []byte { return peerMessage(own, vpp, reply, token) }
	n.answer.Store(&honest)
	r.eventually("a neighbour that answers gets large packets", func() bool {
		r.carrySome(a, up)
		return large() > 0
	})

	begin, sent := time.Now(), r.flood(up, path)
	if answers, most := n.answered.Load(), int64(256*(time.Since(begin).Seconds()+2)); answers == 0 || answers > most {
		t.Errorf("%d questions have %d answers, want 1 to %d", sent, answers, most)
	}
	r.crowd(a, up)
	t.Logf("%d questions, %d answers\n%s", sent, n.answered.Load(), r.cli("show errors"))
	r.carrySome(a, up)
	if now := r.buffersAtRest(a, up); now > used+768 {
		t.Errorf("%d buffers in use before, %d afterwards", used, now)
	}
	r.sound()
}

// flood sends queries from many machines, and then malformed messages. It returns the number of queries.
func (r *rig) flood(up *port, path forge.Path) int {
	r.Helper()
	s, err := forge.Open(up.Namespace, "eth0", true, true)
	r.do(nil, err)
	defer s.Close()
	rnd := rand.New(rand.NewPCG(1, 1))
	machine := func() net.HardwareAddr {
		return net.HardwareAddr{2, 1, byte(rnd.Uint32()), byte(rnd.Uint32()), byte(rnd.Uint32()), byte(rnd.Uint32())}
	}
	for range 20_000 {
		s.Send(peerMessage(machine(), path.To, peerQuery, rnd.Uint64()), forge.Offload{})
	}
	questions := s.Sent
	for range 20_000 {
		frame := append(peerMessage(machine(), path.To, byte(rnd.IntN(4)), rnd.Uint64()), make([]byte, rnd.IntN(1400))...)
		frame = frame[:max(14, min(len(frame), rnd.IntN(1600)))]
		if rnd.IntN(4) == 0 {
			frame = append(append(append([]byte{}, frame[:12]...), 0x81, 0, 0, 1), frame[12:]...)
		}
		for range rnd.IntN(3) {
			frame[rnd.IntN(min(len(frame), 40))] ^= 1 << rnd.IntN(8)
		}
		o := forge.Offload{Flags: uint8(rnd.IntN(2)), GSOType: []uint8{0, 0, forge.GSOTCPv4, forge.GSOUDPL4}[rnd.IntN(4)], GSOSize: uint16(rnd.IntN(1500)),
			HeaderLen: uint16(rnd.IntN(100)), ChecksumStart: uint16(rnd.IntN(100)), ChecksumOffset: uint16(rnd.IntN(20))}
		s.Send(frame, o)
	}
	return questions
}

// crowd makes VPP send large packets to twice as many neighbours as its table can hold.
func (r *rig) crowd(a, up *port) {
	r.Helper()
	path := r.path(a, a.v6, r.gateway(a.v6))
	s, err := forge.Open(a.Namespace, "eth0", true, true)
	r.do(nil, err)
	defer s.Close()
	prefix := netip.PrefixFrom(up.v6, 112).Masked().Addr().As16()
	for i := range 512 {
		addr := prefix
		binary.BigEndian.PutUint16(addr[14:], uint16(0x1000+i))
		path.Dst = netip.AddrFrom16(addr)
		r.cli("set ip neighbor static %s %s %s", up.device, path.Dst, net.HardwareAddr{2, 2, 0, 0, byte(i >> 8), byte(i)})
	}
	before := r.counter("contiv-offload-output", "cut into segments")
	for range 3 {
		for i := range 512 {
			addr := prefix
			binary.BigEndian.PutUint16(addr[14:], uint16(0x1000+i))
			path.Dst = netip.AddrFrom16(addr)
			s.Send(path.Frame(forge.Packet{Proto: tcp, Payload: 5000}), largeTCP(true, 1400))
		}
	}
	r.eventually("VPP cuts packets to unknown neighbours", func() bool { return r.counter("contiv-offload-output", "cut into segments") > before })
	if s.Sent < 1500 {
		r.Error(fmt.Errorf("the pod's kernel has refused all but %d packets: %w", s.Sent, s.Why))
	}
}
