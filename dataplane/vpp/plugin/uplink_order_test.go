package plugin_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/test/testbed/forge"
)

// TestUplinkOrder: large and short packets of one connection leave VPP in the order in which they arrived, from the uplink to a TAP, and
// from a TAP to the uplink. VPP is paused while they arrive, so that all of them wait in its rings.
func TestUplinkOrder(t *testing.T) {
	t.Run("in", func(t *testing.T) {
		r := offloadRig(t, "")
		up, b := r.veth("u"), r.tap("b", "gso")
		r.endpoint(up, contiv.CONTIV_ROLE_API_UPLINK)
		r.offloads(up, "on")
		for _, ip6 := range []bool{false, true} {
			r.inOrder(r, up, b, order{ip6: ip6})
		}
		if r.counter("contiv-uplink-input", "of several segments") == 0 {
			r.Error("no large packet came in")
		}
	})
	t.Run("out and in", func(t *testing.T) {
		one, two := uplinkRigs(t)
		a, b := one.tap("a", "gso"), two.tap("b", "gso")
		one.joinOver("plain", 1, 2)
		two.joinOver("plain", 2, 1)
		one.carrySome(a, b) // so that the neighbour is known to accept large packets
		for _, ip6 := range []bool{false, true} {
			one.inOrder(two, a, b, order{ip6: ip6})
		}
	})
}

const (
	pairs   = 60 // pairs of a large and a short packet: fewer than a TAP's ring has places
	between = 10000
)

// order describes the packets to send.
type order struct {
	ip6   bool
	vlans int
}

// inOrder sends large and short packets alternately while VPP is paused; other is the VPP that sends them on to the receiver.
func (r *rig) inOrder(other *rig, from, to *port, w order) {
	r.Helper()
	src, dst := from.v4, to.v4
	if w.ip6 {
		src, dst = from.v6, to.v6
	}
	r.reach(from, dst)
	path := r.path(from, src, r.gateway(src))
	path.Dst = dst
	heard := listen(r, to)
	s, err := forge.Open(from.Namespace, "eth0", true, false)
	r.do(nil, err)
	defer s.Close()
	r.do(nil, r.vpp.Freeze())
	for n := range 2 * pairs {
		q, o := forge.Packet{Proto: tcp, Payload: 100, VLANs: w.vlans}, forge.Offload{}
		if n%2 == 0 {
			q.Payload, o = 5000, largeTCP(w.ip6, 1200)
			o.HeaderLen += uint16(4 * w.vlans)
			o.ChecksumStart += uint16(4 * w.vlans)
		}
		frame := path.Frame(q)
		binary.BigEndian.PutUint32(frame[seqAt(w.ip6)+4*w.vlans:], uint32(n*between))
		s.Send(frame, o)
	}
	r.do(nil, r.vpp.Thaw())
	if s.Refused != 0 {
		r.Fatalf("the kernel has refused %d frames: %v", s.Refused, s.Why)
	}
	last, short := -1, 0
	for short < pairs {
		select {
		case n := <-heard:
			if n < last {
				r.Fatalf("%v: packet %d came after packet %d", dst, n/between, last/between)
			}
			last = n
			if n/between%2 == 1 {
				short++
			}
		case <-time.After(20 * time.Second):
			r.Fatalf("%v: %d of %d short packets came\n%s%s", dst, short, pairs, r.cli("show errors"), other.cli("show errors"))
		}
	}
}

// seqAt returns the offset of the sequence number in a TCP packet without options.
func seqAt(ip6 bool) int { return map[bool]int{false: 38, true: 58}[ip6] }

// listen reports the sequence numbers of the forged packets that a pod receives.
func listen(r *rig, p *port) <-chan int {
	r.Helper()
	var fd int
	r.do(nil, p.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_ALL)))
		if err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20); err != nil {
			return err
		}
		return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100000})
	}))
	heard, done := make(chan int, 10*pairs), make(chan struct{})
	r.Cleanup(func() { close(done) })
	go func() {
		defer unix.Close(fd)
		b := make([]byte, 1<<17)
		for {
			select {
			case <-done:
				return
			default:
			}
			n, from, err := unix.Recvfrom(fd, b, 0)
			if l, ok := from.(*unix.SockaddrLinklayer); err != nil || !ok || l.Pkttype == unix.PACKET_OUTGOING {
				continue
			}
			ip6 := n > 14 && b[14]>>4 == 6
			if at := seqAt(ip6); n > at+4 && fmt.Sprintf("%x", b[at-4:at]) == "9c400009" { // ports 40000 and 9
				select {
				case heard <- int(binary.BigEndian.Uint32(b[at:])):
				case <-done:
				}
			}
		}
	}()
	return heard
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }
