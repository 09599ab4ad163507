package hostports

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	"contiv.dev/vswitch/dataplane/txn"
)

// TestSCTP tests that the kernel sends the first packet of an association with an SCTP node port at the host's own address to VPP, under the
// host's address on the link. A packet to another port stays in the host.
func TestSCTP(t *testing.T) {
	k := newKernel(t, "nft")
	k.must("ip link set lo up && ip addr add 198.51.100.9/32 dev lo && ip link add vpp1 type veth peer name vpp1p address 02:00:00:00:00:01 && ip link set vpp1p up && " +
		"ip addr add 172.30.1.2/24 dev vpp1 && ip link set vpp1 up && ip neigh add 172.30.1.1 lladdr 02:00:00:00:00:01 dev vpp1")
	a := newAgent(t, func(ctx context.Context, script string, args ...string) (string, error) {
		cmd := k.Command(ctx, "nft", args...)
		cmd.Stdin = strings.NewReader(script)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return string(out), nil
	})
	a.must(a.commit(txn.FullResync, &linux_nodeports.NodePorts{
		Ports:     []*linux_nodeports.NodePorts_Port{{Protocol: linux_nodeports.NodePorts_SCTP, Port: 30003}},
		Addresses: []string{"198.51.100.9"}, To: "172.30.1.1", Device: "vpp1",
	}))
	var wire int
	a.must(k.Do(func() (err error) {
		peer, err := net.InterfaceByName("vpp1p")
		if err != nil {
			return err
		}
		if wire, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		timeout := unix.NsecToTimeval((5 * time.Second).Nanoseconds())
		if err := unix.SetsockoptTimeval(wire, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
			return err
		}
		return unix.Bind(wire, &unix.SockaddrLinklayer{Protocol: 0x0008, Ifindex: peer.Index}) // IPv4, as on the wire
	}))
	defer unix.Close(wire)
	for _, port := range []uint16{30004, 30003} {
		a.must(k.Do(func() error {
			c, err := net.ListenPacket("ip4:132", "")
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.WriteTo(sctpInit(port), &net.IPAddr{IP: net.ParseIP("198.51.100.9")})
			return err
		}))
	}
	for buf := make([]byte, 1500); ; {
		n, _, err := unix.Recvfrom(wire, buf, 0)
		if err != nil {
			t.Fatalf("VPP gets nothing: %v", err)
		}
		if n < 24 || buf[9] != unix.IPPROTO_SCTP {
			continue
		}
		src, dst := netip.AddrFrom4([4]byte(buf[12:16])), netip.AddrFrom4([4]byte(buf[16:20]))
		if port := binary.BigEndian.Uint16(buf[22:]); src.String() != "172.30.1.2" || dst.String() != "172.30.1.1" || port != 30003 {
			t.Errorf("VPP gets %s to %s:%d", src, dst, port)
		}
		return
	}
}

// sctpInit returns a packet with an INIT chunk (RFC 9260, 3.3.2). The kernel verifies the checksum only of packets from other machines.
func sctpInit(port uint16) []byte {
	b := make([]byte, 32)
	binary.BigEndian.PutUint16(b, 20000)
	binary.BigEndian.PutUint16(b[2:], port)
	b[12], b[15] = 1, 20 // INIT, and its length
	binary.BigEndian.PutUint32(b[16:], 1)
	binary.BigEndian.PutUint32(b[20:], 65536)
	b[25], b[27] = 1, 1 // streams
	return b
}
