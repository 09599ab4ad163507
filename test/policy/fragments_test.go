package policy

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	allowedPort  = 53
	attackPolicy = `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: cli}}}], ports: [{protocol: UDP, port: 53}]}]}`
	clientPort   = 4000 // also the datagram's id, which identifies a datagram that the node has reassembled
)

// fragment is a piece of a UDP datagram of 32 bytes, with zeros after the header.
type fragment struct {
	id      uint16
	at      uint16 // in units of 8 bytes
	more    bool
	port    uint16
	size    int  // without the headers of IP and, in IPv6, of fragments
	options bool // IPv6: the datagram follows 8 bytes of destination options
}

// packet returns the fragment as a packet; the kernel fills in the checksum of IPv4's header.
func (f fragment) packet(src, dst netip.Addr) []byte {
	udp := make([]byte, 32)
	binary.BigEndian.PutUint16(udp[0:], clientPort+f.id)
	binary.BigEndian.PutUint16(udp[2:], f.port)
	binary.BigEndian.PutUint16(udp[4:], 32)
	next := byte(unix.IPPROTO_UDP)
	if src.Is6() { // IPv6 requires a checksum
		pseudo := append(append(src.AsSlice(), dst.AsSlice()...), 0, 0, 0, 32, 0, 0, 0, next)
		binary.BigEndian.PutUint16(udp[6:], sum16(append(pseudo, udp...)))
	}
	if f.options {
		udp = append([]byte{next, 0, 1, 4, 0, 0, 0, 0}, udp...) // one padding option
		next = unix.IPPROTO_DSTOPTS
	}
	piece := make([]byte, f.size)
	copy(piece, udp[min(len(udp), int(f.at)*8):])
	if src.Is6() {
		header := []byte{next, 0, 0, 0, 0, 0, byte(f.id >> 8), byte(f.id)}
		binary.BigEndian.PutUint16(header[2:], f.at<<3)
		if f.more {
			header[3] |= 1
		}
		return ipPacket(src, dst, unix.IPPROTO_FRAGMENT, append(header, piece...))
	}
	b := ipPacket(src, dst, next, piece)
	binary.BigEndian.PutUint16(b[4:], f.id)
	flags := f.at
	if f.more {
		flags |= 0x2000
	}
	binary.BigEndian.PutUint16(b[6:], flags)
	return b
}

// datagram returns the UDP header of a packet from src to dst, if it has one.
func datagram(b []byte, src, dst netip.Addr) (udp []byte, ok bool) {
	if src.Is4() {
		if len(b) < 28 || b[9] != unix.IPPROTO_UDP || netip.AddrFrom4([4]byte(b[12:])) != src || netip.AddrFrom4([4]byte(b[16:])) != dst {
			return nil, false
		}
		return b[20:], binary.BigEndian.Uint16(b[6:])&0x1fff == 0
	}
	if len(b) < 40 || netip.AddrFrom16([16]byte(b[8:])) != src || netip.AddrFrom16([16]byte(b[24:])) != dst {
		return nil, false
	}
	next, b := b[6], b[40:]
	for len(b) >= 8 {
		switch next {
		case unix.IPPROTO_UDP:
			return b, true
		case unix.IPPROTO_FRAGMENT:
			if binary.BigEndian.Uint16(b[2:])>>3 != 0 {
				return nil, false
			}
			next, b = b[0], b[8:]
		case unix.IPPROTO_DSTOPTS:
			next, b = b[0], b[min(len(b), 8+8*int(b[1])):]
		default:
			return nil, false
		}
	}
	return nil, false
}

// TestFragments checks that fragments do not carry a datagram past a policy, in any order, size and overlap: no header with a denied port
// arrives. Allowed datagrams arrive in fragments.
func TestFragments(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		w.policy("web", attackPolicy)
		w.expect("+ h1 web1 tcp 8080\n- cli1 web1 tcp 8080\n- cli1 web1 udp 8080")
		for _, from := range []string{"cli1", "cli2"} {
			for f := range w.addrs[from] {
				w.fragments(from, f)
			}
		}
	}, onVPP)
}

func (w *world) fragments(from string, family int) {
	w.t.Helper()
	src, dst := w.addrs[from][family], w.addrs["web1"][family]
	in := w.packetSocket("web1", dst)
	whole := func(id, port uint16) []fragment {
		return []fragment{{id: id, more: true, port: port, size: 24}, {id: id, at: 3, size: 8}}
	}
	a, d := whole(2, deniedPort), whole(6, deniedPort)
	attacks := []fragment{
		a[0], a[1], // in order
		d[1], d[0], // the last one first
		{id: 3, at: 3, size: 8},                                                  // no first one
		{id: 4, more: true, port: deniedPort, size: 8}, {id: 4, at: 1, size: 24}, // tiny
		{id: 5, more: true, port: allowedPort, size: 24}, {id: 5, more: true, port: deniedPort, size: 24}, {id: 5, at: 3, size: 8}, // two first
		{id: 7, more: true, port: allowedPort, size: 8}, {id: 7, more: true, port: deniedPort, size: 16}, {id: 7, at: 2, size: 16},
		{id: 8, port: deniedPort, size: 32}, // not fragmented
	}
	if src.Is6() {
		attacks = append(attacks,
			fragment{id: 9, more: true, port: deniedPort, size: 24, options: true}, fragment{id: 9, at: 3, port: deniedPort, size: 16, options: true},
			// The first fragment has no header of UDP (RFC 7112).
			fragment{id: 10, more: true, port: deniedPort, size: 8, options: true}, fragment{id: 10, at: 1, port: deniedPort, size: 32, options: true})
	}
	attacks = append(attacks, whole(1, allowedPort)...)
	for _, f := range attacks {
		w.sendRaw(from, dst, f.packet(src, dst))
	}
	allowed := 0
	for buf := make([]byte, 2000); ; {
		n, _, err := unix.Recvfrom(in, buf, 0)
		if err != nil {
			break // no more packets arrive
		}
		udp, first := datagram(buf[:n], src, dst)
		if !first {
			continue
		}
		id, port := binary.BigEndian.Uint16(udp)-clientPort, binary.BigEndian.Uint16(udp[2:])
		switch {
		case port == deniedPort:
			w.t.Errorf("%s to %s: the header of a datagram to port %d arrived (id %d)", from, dst, port, id)
		case port == allowedPort && id != 5 && id != 7:
			allowed++
		}
	}
	if allowed == 0 {
		w.t.Errorf("%s to %s: a datagram in fragments that is allowed did not arrive", from, dst)
	}
}
