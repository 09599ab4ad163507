package netlink

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Attrs encodes attributes one after the other, each padded to four bytes. The zero Attrs is empty.
type Attrs struct{ B []byte }

// head starts an attribute; size is its length without padding.
func (a *Attrs) head(typ uint16, size int) {
	a.B = binary.NativeEndian.AppendUint16(a.B, uint16(unix.SizeofRtAttr+size))
	a.B = binary.NativeEndian.AppendUint16(a.B, typ)
}

func (a *Attrs) pad() {
	for len(a.B)%unix.NLMSG_ALIGNTO != 0 {
		a.B = append(a.B, 0)
	}
}

// Attr adds an attribute.
func (a *Attrs) Attr(typ uint16, value []byte) {
	a.head(typ, len(value))
	a.B = append(a.B, value...)
	a.pad()
}

// Uint8 adds an attribute.
func (a *Attrs) Uint8(typ uint16, v uint8) {
	a.head(typ, 1)
	a.B = append(a.B, v, 0, 0, 0)
}

// Uint32 adds an attribute in the machine's byte order.
func (a *Attrs) Uint32(typ uint16, v uint32) {
	a.head(typ, 4)
	a.B = binary.NativeEndian.AppendUint32(a.B, v)
}

// Net16 adds an attribute in network byte order.
func (a *Attrs) Net16(typ uint16, v uint16) {
	a.head(typ, 2)
	a.B = append(binary.BigEndian.AppendUint16(a.B, v), 0, 0)
}

// Net32 adds an attribute in network byte order.
func (a *Attrs) Net32(typ uint16, v uint32) {
	a.head(typ, 4)
	a.B = binary.BigEndian.AppendUint32(a.B, v)
}

// Text adds an attribute that ends with a zero byte.
func (a *Attrs) Text(typ uint16, s string) {
	a.head(typ, len(s)+1)
	a.B = append(append(a.B, s...), 0)
	a.pad()
}

// Addr adds an attribute of 4 or 16 bytes.
func (a *Attrs) Addr(typ uint16, ip netip.Addr) {
	if ip.Is4() {
		raw := ip.As4()
		a.Attr(typ, raw[:])
		return
	}
	raw := ip.As16()
	a.Attr(typ, raw[:])
}

// Nest adds an attribute that contains the attributes added by add.
func (a *Attrs) Nest(typ uint16, add func()) {
	at := a.OpenNest(typ)
	add()
	a.CloseNest(at)
}

// OpenNest starts an attribute that contains the attributes which follow, until CloseNest with the same at.
func (a *Attrs) OpenNest(typ uint16) (at int) {
	at = len(a.B)
	a.head(typ, 0)
	return at
}

// CloseNest ends the attribute that OpenNest started.
func (a *Attrs) CloseNest(at int) { binary.NativeEndian.PutUint16(a.B[at:], uint16(len(a.B)-at)) }

// OpenMessage starts a message with a type, flags (NLM_F_REQUEST is added), a sequence number and the fixed header of the type. The message's
// attributes follow, until CloseMessage with the same at.
func (a *Attrs) OpenMessage(typ, flags uint16, seq uint32, header ...byte) (at int) {
	at = len(a.B)
	a.B = binary.NativeEndian.AppendUint32(a.B, 0) // the length: see CloseMessage
	a.B = binary.NativeEndian.AppendUint16(a.B, typ)
	a.B = binary.NativeEndian.AppendUint16(a.B, flags|unix.NLM_F_REQUEST)
	a.B = binary.NativeEndian.AppendUint32(a.B, seq)
	a.B = append(a.B, 0, 0, 0, 0) // port: that of the kernel
	a.B = append(a.B, header...)
	a.pad()
	return at
}

// CloseMessage ends the message that OpenMessage started.
func (a *Attrs) CloseMessage(at int) { binary.NativeEndian.PutUint32(a.B[at:], uint32(len(a.B)-at)) }

// AddFlags adds flags to the message that OpenMessage started.
func (a *Attrs) AddFlags(at int, flags uint16) {
	now := a.B[at+6:]
	binary.NativeEndian.PutUint16(now, binary.NativeEndian.Uint16(now)|flags)
}
