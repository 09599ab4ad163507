package policy

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sum16 returns the checksum of IPv4 and ICMP.
func sum16(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// ipPacket returns a packet of the family of its addresses.
func ipPacket(src, dst netip.Addr, protocol byte, payload []byte) []byte {
	if src.Is6() {
		b := make([]byte, 40, 40+len(payload))
		b[0], b[6], b[7] = 0x60, protocol, 64
		binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
		copy(b[8:], src.AsSlice())
		copy(b[24:], dst.AsSlice())
		return append(b, payload...)
	}
	b := make([]byte, 20, 20+len(payload))
	b[0], b[8], b[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(payload)))
	copy(b[12:], src.AsSlice())
	copy(b[16:], dst.AsSlice())
	binary.BigEndian.PutUint16(b[10:], sum16(b))
	return append(b, payload...)
}

// icmpError is an ICMP error that exists in both families.
type icmpError struct{ type4, code4, type6, code6 byte }

var (
	portUnreachable = icmpError{3, 3, 1, 4}
	tooBig          = icmpError{3, 4, 2, 0}
)

// packet returns the error from src to dst about a UDP packet.
func (e icmpError) packet(src, dst netip.Addr, from, to netip.AddrPort) []byte {
	udp := make([]byte, 16)
	binary.BigEndian.PutUint16(udp[0:], from.Port())
	binary.BigEndian.PutUint16(udp[2:], to.Port())
	binary.BigEndian.PutUint16(udp[4:], 16)
	icmp := append([]byte{e.type4, e.code4, 0, 0, 0, 0, 1400 >> 8, 1400 & 0xff}, ipPacket(from.Addr(), to.Addr(), unix.IPPROTO_UDP, udp)...)
	if src.Is4() {
		binary.BigEndian.PutUint16(icmp[2:], sum16(icmp))
		return ipPacket(src, dst, unix.IPPROTO_ICMP, icmp)
	}
	icmp[0], icmp[1] = e.type6, e.code6
	pseudo := append(append(src.AsSlice(), dst.AsSlice()...), 0, 0, 0, byte(len(icmp)), 0, 0, 0, unix.IPPROTO_ICMPV6)
	binary.BigEndian.PutUint16(icmp[2:], sum16(append(pseudo, icmp...)))
	return ipPacket(src, dst, unix.IPPROTO_ICMPV6, icmp)
}

// sendRaw sends a packet with its IP header.
func (w *world) sendRaw(from string, dst netip.Addr, packet []byte) {
	w.t.Helper()
	if dst.Is4() {
		s := w.rawSocket(w.spaces[from], unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
		w.must(unix.Sendto(s, packet, 0, &unix.SockaddrInet4{Addr: dst.As4()}))
		return
	}
	s := w.rawSocket(w.spaces[from], unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW)
	w.must(unix.Sendto(s, packet, 0, &unix.SockaddrInet6{Addr: dst.As16()}))
}

// connectUDP makes a UDP flow from a port of a pod to an address. query sends a request and waits for the answer; call it again to refresh the
// flow, which expires after half a minute.
func (w *world) connectUDP(from string, port uint16, to netip.AddrPort) (query func()) {
	w.t.Helper()
	var c *net.UDPConn
	w.must(w.spaces[from].Do(func() (err error) {
		c, err = net.DialUDP("udp", &net.UDPAddr{Port: int(port)}, net.UDPAddrFromAddrPort(to))
		return err
	}))
	w.t.Cleanup(func() { _ = c.Close() })
	return func() {
		w.t.Helper()
		w.within("udp to "+to.String(), 5*time.Second, func() error {
			_, _ = c.Write([]byte("who"))
			_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			_, err := c.Read(make([]byte, 1000))
			return err
		})
	}
}

// refused sends to a port that is not served, and expects that the ICMP error arrives.
func (w *world) refused(from string, to netip.AddrPort) {
	w.t.Helper()
	w.within("an error of "+to.String()+" to "+from, time.Minute, func() error {
		return w.spaces[from].Do(func() error {
			c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
			if err != nil {
				return err
			}
			defer c.Close()
			_, _ = c.Write([]byte("x"))
			_ = c.SetReadDeadline(time.Now().Add(timeout))
			if _, err := c.Read(make([]byte, 10)); !errors.Is(err, unix.ECONNREFUSED) {
				return orNone(err)
			}
			return nil
		})
	})
}

// TestForgedErrors checks that ICMP errors that a denied pod sends about connections of others, or about none, do not arrive. Errors about a
// pod's own connections arrive, direct and by a service, and so do those of a machine between the nodes.
func TestForgedErrors(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		vips := w.service()
		w.policy("web", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: cli}}}], ports: [{protocol: UDP}]}]}`)
		w.expect("- oth1 web1 udp 8080\n+ cli1 web1 udp 8080")
		for f, family := range []string{"IPv4", "IPv6"} {
			t.Run(family, func(t *testing.T) {
				w.t = t
				defer func() { w.t = t }()
				port := uint16(5000 + 100*f) // the ports of IPv4 may still be in use
				at := func(name string, port uint16) netip.AddrPort { return netip.AddrPortFrom(w.addrs[name][f], port) }
				vip := netip.AddrPortFrom(vips[f], 80)
				w.refused("cli1", at("web1", 9))
				w.refused("cli2", at("web1", 9))
				flows := []func(){
					w.connectUDP("cli1", port, at("web1", httpPort)), w.connectUDP("cli1", port+1, at("web2", httpPort)),
					w.connectUDP("cli1", port+2, vip), w.connectUDP("cli2", port+3, vip), w.connectUDP("cli2", port+4, at("web1", httpPort)),
				}
				for _, e := range []struct {
					name string
					icmpError
				}{{"port unreachable", portUnreachable}, {"too big", tooBig}} {
					for _, query := range flows {
						query()
					}
					for _, test := range []struct {
						name     string
						from     string
						src, dst netip.AddrPort // of the inner packet
						to       netip.Addr
						at       string // the pod at which it arrives, if it does
						arrives  bool
					}{
						{"of the sender's connection", "cli1", at("web1", httpPort), at("cli1", port), at("web1", 0).Addr(), "web1", true},
						{"of the server's connection", "web1", at("cli1", port), at("web1", httpPort), at("cli1", 0).Addr(), "cli1", true},
						{"of the connection by a service", "cli1", vip, at("cli1", port+2), vip.Addr(), "web1", true},
						{"of the server's connection by a service", "web1", at("cli1", port+2), at("web1", httpPort), at("cli1", 0).Addr(), "cli1", true},
						{"of the server's connection between nodes", "web1", at("cli2", port+3), at("web1", httpPort), at("cli2", 0).Addr(), "cli2", true},
						{"of a router", "out", at("web1", httpPort), at("cli2", port+4), at("web1", 0).Addr(), "web1", true},
						{"of the receiver's connection", "oth1", at("web1", httpPort), at("cli1", port), at("web1", 0).Addr(), "web1", false},
						{"of the receiver's connection by a service", "oth1", at("web1", httpPort), at("cli1", port+2), at("web1", 0).Addr(), "web1", false},
						{"of the receiver's connection, to the service", "oth1", vip, at("cli1", port+2), vip.Addr(), "web1", false},
						{"of the client's connection by a service", "oth1", at("cli1", port+2), vip, at("cli1", 0).Addr(), "cli1", false},
						{"of the receiver's connection between nodes", "oth1", at("web1", httpPort), at("cli2", port+4), at("web1", 0).Addr(), "web1", false},
						{"of its other direction", "oth1", at("cli1", port), at("web1", httpPort), at("web1", 0).Addr(), "web1", false},
						{"of a connection of others", "oth1", at("web2", httpPort), at("cli1", port+1), at("web1", 0).Addr(), "web1", false},
						{"of none", "oth1", at("web1", 77), at("oth1", 78), at("web1", 0).Addr(), "web1", false},
					} {
						in := w.packetSocket(test.at, test.to)
						w.sendRaw(test.from, test.to, e.packet(w.addrs[test.from][f], test.to, test.src, test.dst))
						if e.arrives(in, test.src.Port(), test.dst.Port()) != test.arrives {
							t.Errorf("an error %s %s from %s: arrives is not %v", e.name, test.name, test.from, test.arrives)
						}
					}
				}
			})
		}
	}, onVPP)
}

// packetSocket returns a socket that receives the packets that arrive at a pod, in the family of an address.
func (w *world) packetSocket(at string, family netip.Addr) (fd int) {
	w.t.Helper()
	protocol := unix.ETH_P_IP
	if family.Is6() {
		protocol = unix.ETH_P_IPV6
	}
	fd = w.rawSocket(w.spaces[at], unix.AF_PACKET, unix.SOCK_DGRAM, protocol>>8|protocol&0xff<<8)
	w.must(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 300_000}))
	return fd
}

// arrives reports whether the error about a packet arrives within the socket's time limit. The packet has one of the ports; servers' ports do
// not count, because a service translates them.
func (e icmpError) arrives(socket int, ports ...uint16) bool {
	for buf := make([]byte, 2000); ; {
		n, _, err := unix.Recvfrom(socket, buf, 0)
		if err != nil {
			return false
		}
		header, protocol, kind := 20, buf[9], [2]byte{e.type4, e.code4}
		if buf[0]>>4 == 6 {
			header, protocol, kind = 40, buf[6], [2]byte{e.type6, e.code6}
		}
		inside := header + 8 + header
		if n < inside+4 || protocol != unix.IPPROTO_ICMP && protocol != unix.IPPROTO_ICMPV6 || [2]byte(buf[header:]) != kind {
			continue
		}
		for _, at := range []int{inside, inside + 2} {
			port := binary.BigEndian.Uint16(buf[at:])
			if port != httpPort && port != 80 && slices.Contains(ports, port) {
				return true
			}
		}
	}
}
