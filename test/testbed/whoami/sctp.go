package whoami

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/test/testbed/netns"
)

// SCTP by raw sockets, because not every kernel implements SCTP. A client sends INIT, the first packet of an association, and a server answers with
// INIT ACK, whose cookie contains the answer (RFC 9260, 3.3.2 and 3.3.3): connection tracking accepts INIT ACK as the answer. The association has no
// further packets.
const (
	protoSCTP                 = 132
	chunkInit, chunkInitAck   = 1, 2
	sctpHeader, chunkHeader   = 12, 4
	initFixed                 = 16 // of both chunks: tag, window, streams, first number
	paramCookie, paramHeaders = 7, 4
)

// sctpPacket is the packet with the first chunk of an association.
type sctpPacket struct {
	from, to uint16
	tag      uint32 // of the header: the tag of the receiver
	chunk    uint8
	own      uint32 // tag in the chunk: the tag of the sender
	cookie   []byte // of INIT ACK
}

func (p sctpPacket) bytes() []byte {
	b := binary.BigEndian.AppendUint16(nil, p.from)
	b = binary.BigEndian.AppendUint16(b, p.to)
	b = binary.BigEndian.AppendUint32(b, p.tag)
	b = append(b, 0, 0, 0, 0) // checksum
	size := chunkHeader + initFixed
	if len(p.cookie) > 0 {
		size += paramHeaders + len(p.cookie)
	}
	b = append(b, p.chunk, 0, byte(size>>8), byte(size))
	b = binary.BigEndian.AppendUint32(b, p.own)
	b = append(b, 0, 1, 0, 0, 0, 1, 0, 1) // window, streams
	b = binary.BigEndian.AppendUint32(b, 1)
	if len(p.cookie) > 0 {
		b = binary.BigEndian.AppendUint16(b, paramCookie)
		b = binary.BigEndian.AppendUint16(b, uint16(paramHeaders+len(p.cookie)))
		b = append(b, p.cookie...)
	}
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	binary.LittleEndian.PutUint32(b[8:], sctpSum(b))
	return b
}

// sctpSum returns the checksum of a packet, regardless of the value in its checksum field.
func sctpSum(b []byte) uint32 {
	b = slices.Clone(b)
	clear(b[8:12])
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}

// parseSCTP parses packets in the form that bytes returns; ok is false for all others, and if the checksum is wrong.
func parseSCTP(b []byte) (p sctpPacket, ok bool) {
	if len(b) < sctpHeader+chunkHeader+initFixed || binary.LittleEndian.Uint32(b[8:]) != sctpSum(b) {
		return p, false
	}
	p = sctpPacket{from: binary.BigEndian.Uint16(b), to: binary.BigEndian.Uint16(b[2:]), tag: binary.BigEndian.Uint32(b[4:]),
		chunk: b[sctpHeader], own: binary.BigEndian.Uint32(b[sctpHeader+chunkHeader:])}
	rest := b[sctpHeader+chunkHeader+initFixed:]
	if len(rest) >= paramHeaders && binary.BigEndian.Uint16(rest) == paramCookie {
		size := int(binary.BigEndian.Uint16(rest[2:]))
		if size < paramHeaders || size > len(rest) {
			return p, false
		}
		p.cookie = rest[paramHeaders:size]
	}
	return p, true
}

// ServeSCTP answers requests at ports of all addresses of a namespace by SCTP.
func ServeSCTP(ns *netns.Namespace, name string, ports ...uint16) (*Server, error) {
	s := &Server{Name: name, closers: map[interface{ Close() error }]struct{}{}}
	err := ns.Do(func() error {
		for _, network := range []string{"ip4", "ip6"} {
			conn, err := listenRaw(network)
			if err != nil {
				return err
			}
			s.keep(conn)
			s.work.Go(func() { s.answerSCTP(conn, ports) })
		}
		return nil
	})
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("serve SCTP in %s: %w", ns.Name, err)
	}
	return s, nil
}

func listenRaw(network string) (packets, error) {
	conn, err := net.ListenPacket(fmt.Sprintf("%s:%d", network, protoSCTP), "")
	if err != nil {
		return nil, err
	}
	if network == "ip4" {
		p := ipv4.NewPacketConn(conn)
		return packets4{p}, p.SetControlMessage(ipv4.FlagDst, true)
	}
	p := ipv6.NewPacketConn(conn)
	return packets6{p}, p.SetControlMessage(ipv6.FlagDst, true)
}

func (s *Server) answerSCTP(conn packets, ports []uint16) {
	buf := make([]byte, 2048)
	for {
		n, own, client, err := conn.receive(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		p, ok := parseSCTP(buf[:n])
		from, isIP := client.(*net.IPAddr)
		if err != nil || !ok || !isIP || p.chunk != chunkInit || !slices.Contains(ports, p.to) {
			continue
		}
		text := s.answer(&net.UDPAddr{IP: own, Port: int(p.to)}, &net.UDPAddr{IP: from.IP, Port: int(p.from)})
		answer := sctpPacket{from: p.to, to: p.from, tag: p.own, chunk: chunkInitAck, own: rand.Uint32() | 1, cookie: text}
		_ = conn.send(answer.bytes(), own, client) // the client may have ended
	}
}

// SCTP is a port of a client.
type SCTP struct {
	conn    *net.IPConn
	port    uint16
	to      netip.AddrPort
	timeout time.Duration
}

// DialSCTP chooses a random port. It sends nothing.
func DialSCTP(ctx context.Context, ns *netns.Namespace, to netip.AddrPort, timeout time.Duration) (*SCTP, error) {
	network := map[bool]string{true: "ip4", false: "ip6"}[to.Addr().Is4()]
	c := &SCTP{port: uint16(20000 + rand.IntN(40000)), to: to, timeout: timeout}
	var conn net.Conn
	err := ns.Do(func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, fmt.Sprintf("%s:%d", network, protoSCTP), to.Addr().String())
		return err
	})
	if raw, is := conn.(*net.IPConn); is {
		c.conn = raw
	} else if err == nil {
		err = errors.New("not a raw socket")
	}
	if err != nil {
		return nil, fmt.Errorf("SCTP %s from %s: %w", to, ns.Name, fate(err))
	}
	return c, nil
}

// Query starts an association, and waits for the server's answer.
func (c *SCTP) Query() (Answer, error) {
	if err := c.conn.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return Answer{}, err
	}
	own := rand.Uint32() | 1
	if _, err := c.conn.Write(sctpPacket{from: c.port, to: c.to.Port(), chunk: chunkInit, own: own}.bytes()); err != nil && !errors.Is(err, unix.EPERM) { // EPERM: as in Conn.Ask
		return Answer{}, fmt.Errorf("ask %s by SCTP: %w", c.to, fate(err))
	}
	for buf := make([]byte, 2048); ; {
		n, _, err := c.conn.ReadFromIP(buf) // without the IP header, which Read would include
		if err != nil {
			return Answer{}, fmt.Errorf("ask %s by SCTP: %w", c.to, fate(err))
		}
		p, ok := parseSCTP(buf[:n])
		if !ok || p.chunk != chunkInitAck || p.to != c.port || p.from != c.to.Port() || p.tag != own {
			continue // the packet belongs to another client
		}
		return parseAnswer(c.to.String(), string(bytes.TrimSpace(p.cookie)))
	}
}

// Close frees the port.
func (c *SCTP) Close() error { return c.conn.Close() }
