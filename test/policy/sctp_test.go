package policy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

// sctp sends the first packet of an association, and returns an error unless it arrives. It uses raw sockets, because not every
// kernel has SCTP sockets.
func sctp(from *netns.Namespace, to netip.Addr, at *netns.Namespace, port uint16) error {
	network := map[bool]string{true: "ip4:132", false: "ip6:132"}[to.Is4()]
	var in, out net.PacketConn
	listen := func(c *net.PacketConn) func() error {
		return func() (err error) {
			*c, err = net.ListenPacket(network, "")
			return err
		}
	}
	if err := at.Do(listen(&in)); err != nil {
		return err
	}
	defer in.Close()
	if err := from.Do(listen(&out)); err != nil {
		return err
	}
	defer out.Close()
	packet := sctpInit(port)
	if _, err := out.WriteTo(packet, &net.IPAddr{IP: to.AsSlice()}); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if err := in.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	buf := make([]byte, 1500)
	for {
		n, _, err := in.ReadFrom(buf)
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if bytes.Contains(buf[:n], packet[12:]) { // the ports and the checksum may have been translated
			return nil
		}
		if n == 0 {
			return errors.New("receive: an empty packet")
		}
	}
}

// sctpInit returns a packet with an INIT chunk (RFC 9260, 3.3.2) from a random port.
func sctpInit(port uint16) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(20000+rand.IntN(40000)))
	b = binary.BigEndian.AppendUint16(b, port)
	b = append(b, 0, 0, 0, 0 /* tag */, 0, 0, 0, 0 /* checksum */)
	b = append(b, 1, 0, 0, 20) // INIT, 20 bytes
	b = binary.BigEndian.AppendUint32(b, rand.Uint32()|1)
	b = append(b, 0, 1, 0, 0, 0, 1, 0, 1) // window, streams
	b = binary.BigEndian.AppendUint32(b, rand.Uint32())
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return b
}
