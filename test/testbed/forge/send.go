package forge

import (
	"encoding/binary"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// Offload is a virtio header: the work that the sender leaves to the device.
type Offload struct {
	Flags, GSOType                uint8
	HeaderLen, GSOSize            uint16
	ChecksumStart, ChecksumOffset uint16
}

// Flags and types of virtio headers.
const (
	NeedsChecksum = 1
	GSOTCPv4      = 1
	GSOUDP        = 3
	GSOTCPv6      = 4
	GSOUDPL4      = 5
	GSOECN        = 0x80
)

func (o Offload) marshal() []byte {
	b := []byte{o.Flags, o.GSOType}
	for _, v := range []uint16{o.HeaderLen, o.GSOSize, o.ChecksumStart, o.ChecksumOffset} {
		b = binary.NativeEndian.AppendUint16(b, v)
	}
	return b
}

// Socket sends frames by a device of a namespace.
type Socket struct {
	fd   int
	vnet bool
	// Sent and Refused count frames; the pod's own kernel rejects some.
	Sent, Refused int
	Why           error // error of the last rejected frame
}

// Namespace runs a function in a network namespace.
type Namespace interface{ Do(f func() error) error }

// Open returns a socket; with vnet, every frame has a virtio header. With bypass, frames skip the queueing discipline.
func Open(ns Namespace, dev string, vnet, bypass bool) (*Socket, error) {
	s := &Socket{fd: -1, vnet: vnet}
	err := ns.Do(func() (err error) {
		link, err := net.InterfaceByName(dev)
		if err != nil {
			return err
		}
		if s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		options := map[int]bool{unix.PACKET_VNET_HDR: vnet, unix.PACKET_QDISC_BYPASS: bypass}
		for option, on := range options {
			if !on {
				continue
			}
			if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, option, 1); err != nil {
				return err
			}
		}
		return unix.Bind(s.fd, &unix.SockaddrLinklayer{Ifindex: link.Index})
	})
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("packet socket on %s: %w", dev, err)
	}
	return s, nil
}

// Send sends a frame. Frames that the kernel rejects are counted: a hostile pod tries everything.
func (s *Socket) Send(frame []byte, o Offload) {
	if s.vnet {
		frame = append(o.marshal(), frame...)
	}
	if _, err := unix.Write(s.fd, frame); err != nil {
		s.Refused, s.Why = s.Refused+1, err
		return
	}
	s.Sent++
}

// Close closes the socket.
func (s *Socket) Close() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}
