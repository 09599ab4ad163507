package policy

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sum16 is the checksum of IPv4 and ICMP.
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

// portUnreachable is an ICMP error of IPv4 from src to dst about a UDP packet.
func portUnreachable(src, dst netip.Addr, from, to netip.AddrPort) []byte {
	inner := make([]byte, 36)
	inner[0], inner[8], inner[9] = 0x45, 63, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(inner[2:], 36)
	copy(inner[12:], from.Addr().AsSlice())
	copy(inner[16:], to.Addr().AsSlice())
	binary.BigEndian.PutUint16(inner[10:], sum16(inner[:20]))
	binary.BigEndian.PutUint16(inner[20:], from.Port())
	binary.BigEndian.PutUint16(inner[22:], to.Port())
	binary.BigEndian.PutUint16(inner[24:], 16)
	icmp := append([]byte{3, 3, 0, 0, 0, 0, 0, 0}, inner...)
	binary.BigEndian.PutUint16(icmp[2:], sum16(icmp))
	b := make([]byte, 20, 20+len(icmp))
	b[0], b[8], b[9] = 0x45, 64, unix.IPPROTO_ICMP
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(icmp)))
	copy(b[12:], src.AsSlice())
	copy(b[16:], dst.AsSlice())
	return append(b, icmp...)
}

// connectUDP makes a flow from a port of a pod to a server, which answers.
func (w *world) connectUDP(from string, port int, to string) {
	w.t.Helper()
	w.must(w.spaces[from].Do(func() error {
		c, err := net.DialUDP("udp4", &net.UDPAddr{Port: port}, net.UDPAddrFromAddrPort(netip.AddrPortFrom(w.addrs[to][0], httpPort)))
		if err != nil {
			return err
		}
		w.t.Cleanup(func() { _ = c.Close() })
		w.within("udp", 5*time.Second, func() error {
			_, _ = c.Write([]byte("who"))
			_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			_, err := c.Read(make([]byte, 1000))
			return err
		})
		return nil
	}))
}

// TestForgedErrors: a pod that is denied sends ICMP errors about connections of others, and about none. On Linux conntrack lets pass those about a
// connection of the receiver, from any sender: plugins/policy/README.md says so.
func TestForgedErrors(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		w.policy("web", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: cli}}}]}]}`)
		w.expect("- oth1 web1 udp 8080\n+ cli1 web1 udp 8080")
		w.connectUDP("cli1", 5000, "web1")
		w.connectUDP("cli1", 5001, "web2")
		at := func(name string, port uint16) netip.AddrPort { return netip.AddrPortFrom(w.addrs[name][0], port) }
		in := w.rawSocket(w.spaces["web1"], unix.AF_PACKET, unix.SOCK_DGRAM, unix.ETH_P_IP>>8)
		w.must(unix.SetsockoptTimeval(in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 300_000}))
		for _, test := range []struct {
			name     string
			from     string
			src, dst netip.AddrPort
			arrives  bool
		}{
			{"of the sender's connection", "cli1", at("web1", httpPort), at("cli1", 5000), true},
			{"of the receiver's connection", "oth1", at("web1", httpPort), at("cli1", 5000), !w.onVPP},
			{"of its other direction", "oth1", at("cli1", 5000), at("web1", httpPort), false},
			{"of a connection of others", "oth1", at("web2", httpPort), at("cli1", 5001), false},
			{"of none", "oth1", at("web1", 77), at("oth1", 78), false},
		} {
			out := w.rawSocket(w.spaces[test.from], unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
			src, dst := w.addrs[test.from][0], w.addrs["web1"][0]
			w.must(unix.Sendto(out, portUnreachable(src, dst, test.src, test.dst), 0, &unix.SockaddrInet4{Addr: dst.As4()}))
			if n := icmpFrom(in, src); (n > 0) != test.arrives {
				t.Errorf("an error %s from %s: %d arrived", test.name, test.from, n)
			}
		}
	})
}

// icmpFrom counts the ICMP packets of a sender until none comes any more.
func icmpFrom(socket int, src netip.Addr) (n int) {
	for buf := make([]byte, 2000); ; {
		size, _, err := unix.Recvfrom(socket, buf, 0)
		if err != nil {
			return n
		}
		if size > 28 && buf[9] == unix.IPPROTO_ICMP && netip.AddrFrom4([4]byte(buf[12:16])) == src {
			n++
		}
	}
}
