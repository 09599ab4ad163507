package forge

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func path(src, dst string) Path {
	return Path{net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}, netip.MustParseAddr(src), netip.MustParseAddr(dst)}
}

func TestFrame4(t *testing.T) {
	f := path("10.0.0.1", "10.0.0.2").Frame(Packet{Proto: unix.IPPROTO_UDP, Payload: 100, VLANs: 1})
	ip := f[18:]
	if len(ip) != 128 || binary.BigEndian.Uint16(f[12:]) != 0x8100 || binary.BigEndian.Uint16(f[16:]) != 0x800 {
		t.Fatalf("% x", f)
	}
	if binary.BigEndian.Uint16(ip[2:]) != 128 || checksum(ip[:20]) != 0 || binary.BigEndian.Uint16(ip[24:]) != 108 {
		t.Errorf("% x", ip[:28])
	}
	lie := path("10.0.0.1", "10.0.0.2").Frame(Packet{Proto: unix.IPPROTO_TCP, Payload: 100, Length: 60, HeaderWords: 15, DataOffset: 15})
	if len(lie) != 14+140 || lie[14] != 0x4f || lie[17] != 60 || lie[14+20+12] != 15<<4 {
		t.Errorf("% x", lie)
	}
}

func TestFrame6(t *testing.T) {
	f := path("fd00::1", "fd00::2").Frame(Packet{Proto: unix.IPPROTO_TCP, Payload: 10, Extensions: []uint8{0, 60}, Fragment: 1})
	ip := f[14:]
	if len(ip) != 40+3*8+20+10 || binary.BigEndian.Uint16(ip[4:]) != uint16(len(ip)-40) {
		t.Fatalf("% x", ip)
	}
	if got := []byte{ip[6], ip[40], ip[48], ip[56]}; got[0] != 0 || got[1] != 60 || got[2] != 44 || got[3] != 6 {
		t.Errorf("chain of headers: %v", got)
	}
}

func TestDiscovery(t *testing.T) {
	at := net.HardwareAddr{2, 0, 0, 0, 0, 9}
	f := path("fe80::1", "ff02::1").Discovery(NeighborAdvertisement, netip.MustParseAddr("fd00::9"), at)
	ip := f[14:]
	if len(ip) != 40+32 || ip[7] != 255 || ip[40] != 136 || ip[64] != 2 || net.HardwareAddr(ip[66:72]).String() != at.String() {
		t.Fatalf("% x", ip)
	}
	pseudo := append(append([]byte{}, ip[8:40]...), 0, 0, 0, 32, 0, 0, 0, 58)
	if checksum(append(pseudo, ip[40:]...)) != 0 {
		t.Errorf("wrong checksum: % x", ip)
	}
}

func TestARP(t *testing.T) {
	f := path("10.0.0.1", "10.0.0.2").ARP(ARPReply, netip.MustParseAddr("10.0.0.2"), net.HardwareAddr{2, 0, 0, 0, 0, 9})
	if len(f) != 42 || f[21] != 2 || f[27] != 9 || f[31] != 1 || f[41] != 2 {
		t.Errorf("% x", f)
	}
}
