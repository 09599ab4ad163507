package vppfake

import (
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/tapv2"
)

// afPacket is VPP's record of an af_packet interface: the host device, and the maximum frame length of the rings shared with the kernel.
type afPacket struct {
	name   string
	rx, tx int
}

// Bytes that VPP and the kernel put before a frame, and VPP's own sizes.
const (
	txHeaderV2, txHeaderV3 = 32, 48
	rxHeaderV2, rxHeaderV3 = 66, 82
	frameOf64K             = 33 * 2048
	rxBlockV3              = 32 // frames of 2048 bytes, all of which one packet may use
)

func newAfPacket(q *af_packet.AfPacketCreateV3) *afPacket {
	or := func(n uint32, def int) int {
		if n == 0 {
			return def
		}
		return int(n)
	}
	a := &afPacket{name: q.HostIfName}
	if q.Flags&af_packet.AF_PACKET_API_FLAG_VERSION_2 != 0 {
		a.tx, a.rx = or(q.TxFrameSize, frameOf64K)-txHeaderV2, or(q.RxFrameSize, frameOf64K)-rxHeaderV2
		return a
	}
	a.tx = or(q.TxFrameSize, frameOf64K) - txHeaderV3
	a.rx = or(q.RxFrameSize, 2048)*or(q.RxFramesPerBlock, rxBlockV3) - rxHeaderV3
	return a
}

// taken reports whether VPP receives a frame, and cuts it to the part that VPP receives. If VPP has not enabled larger packets, the kernel of
// the sending host has segmented the packet: the walk continues with the first segment. A frame that is longer than the ring's frames is
// truncated and dropped.
func (w *walk) taken(i *iface, p *Packet) bool {
	if t, ok := i.hw.driver.detail.(*tap); !ok || t.flags&tapv2.TAP_API_FLAG_GSO == 0 {
		*p = p.segment()
	} else if p.GSO != 0 && w.cfg.Plugin {
		const segments = 128 // of one packet
		switch {
		case p.Proto != ProtoTCP:
			w.drop("%s: offload that does not fit", i.label())
			return false
		case p.Size > p.GSO*segments || p.segment().IPLen() > i.mtuFor(family(p.Dst)):
			w.drop("%s: segments of a forbidden size", i.label())
			return false
		}
	}
	if a, ok := i.hw.driver.detail.(*afPacket); ok && p.frameLen() > a.rx {
		w.drop("%s: partial packet: %d bytes in a frame for %d", i.label(), p.frameLen(), a.rx)
		return false
	}
	return true
}

// split returns the first of the packets into which our plugin splits a packet that represents several. A device that splits packets itself
// gets the packet unchanged.
func (w *walk) split(i *iface, p Packet) Packet {
	if t, ok := i.hw.driver.detail.(*tap); !w.cfg.Plugin || ok && t.flags&tapv2.TAP_API_FLAG_GSO != 0 {
		return p
	}
	return p.segment()
}

// given reports whether the driver sends a frame. VPP's af_packet copies it into the ring without checking that it fits: it overwrites the next
// frames, and then sends no more packets, or crashes. The fake always crashes.
func (w *walk) given(i *iface, p Packet) bool {
	switch device := i.hw.driver.detail.(type) {
	case *afPacket:
		if p.frameLen() > device.tx {
			w.crash("af_packet: %d bytes are copied into a frame of %s for %d", p.frameLen(), i.label(), device.tx)
			return false
		}
	case *tap:
		if !p.whole() && device.flags&tapv2.TAP_API_FLAG_GSO == 0 {
			w.drop("%s: gso disabled on itf", i.label())
			return false
		}
	}
	return true
}
