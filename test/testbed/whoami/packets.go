package whoami

import (
	"fmt"
	"net"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// packets is a UDP or raw socket that answers from the address to which the request was sent: a host has
// several addresses.
type packets interface {
	receive(buf []byte) (n int, own net.IP, client net.Addr, err error)
	send(data []byte, own net.IP, client net.Addr) error
	Close() error
}

func listenPackets(network string, port uint16) (packets, error) {
	conn, err := net.ListenPacket(network, fmt.Sprintf(":%d", port))
	if err != nil {
		return nil, err
	}
	if network == "udp4" {
		p := ipv4.NewPacketConn(conn)
		return packets4{p}, p.SetControlMessage(ipv4.FlagDst, true)
	}
	p := ipv6.NewPacketConn(conn)
	return packets6{p}, p.SetControlMessage(ipv6.FlagDst, true)
}

type packets4 struct{ *ipv4.PacketConn }

func (p packets4) receive(buf []byte) (int, net.IP, net.Addr, error) {
	n, cm, client, err := p.ReadFrom(buf)
	if err != nil || cm == nil {
		return n, nil, client, err
	}
	return n, cm.Dst, client, nil
}

func (p packets4) send(data []byte, own net.IP, client net.Addr) error {
	_, err := p.WriteTo(data, &ipv4.ControlMessage{Src: own}, client)
	return err
}

type packets6 struct{ *ipv6.PacketConn }

func (p packets6) receive(buf []byte) (int, net.IP, net.Addr, error) {
	n, cm, client, err := p.ReadFrom(buf)
	if err != nil || cm == nil {
		return n, nil, client, err
	}
	return n, cm.Dst, client, nil
}

func (p packets6) send(data []byte, own net.IP, client net.Addr) error {
	_, err := p.WriteTo(data, &ipv6.ControlMessage{Src: own}, client)
	return err
}
