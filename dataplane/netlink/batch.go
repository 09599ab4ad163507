package netlink

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Batch is a list of requests, encoded one after the other. The zero Batch is empty; a Batch that is Reset is used again
// without allocating.
type Batch struct {
	buf  []byte
	offs []int // where each request begins
}

// Reset empties the batch.
func (b *Batch) Reset() { b.buf, b.offs = b.buf[:0], b.offs[:0] }

// Len is the number of requests.
func (b *Batch) Len() int { return len(b.offs) }

// Bytes are the encoded requests.
func (b *Batch) Bytes() []byte { return b.buf }

// Begin starts a request with a message type (RTM_…), flags (NLM_F_REQUEST is added) and the fixed header that the type has.
func (b *Batch) Begin(typ, flags uint16, header []byte) {
	b.offs = append(b.offs, len(b.buf))
	b.buf = binary.NativeEndian.AppendUint32(b.buf, 0) // the length: see grow
	b.buf = binary.NativeEndian.AppendUint16(b.buf, typ)
	b.buf = binary.NativeEndian.AppendUint16(b.buf, flags|unix.NLM_F_REQUEST)
	b.buf = append(b.buf, 0, 0, 0, 0, 0, 0, 0, 0) // sequence number: see Conn.send; port: the kernel's
	b.buf = append(b.buf, header...)
	b.grow()
}

// Message adds a request that is encoded already.
func (b *Batch) Message(raw []byte) {
	b.offs = append(b.offs, len(b.buf))
	b.buf = append(b.buf, raw...)
	b.grow()
}

// grow pads the request that is being built and notes its length.
func (b *Batch) grow() {
	for len(b.buf)%unix.NLMSG_ALIGNTO != 0 {
		b.buf = append(b.buf, 0)
	}
	at := b.offs[len(b.offs)-1]
	binary.NativeEndian.PutUint32(b.buf[at:], uint32(len(b.buf)-at))
}

// Attr adds an attribute to the request.
func (b *Batch) Attr(typ uint16, value []byte) {
	b.buf = binary.NativeEndian.AppendUint16(b.buf, uint16(unix.SizeofRtAttr+len(value)))
	b.buf = binary.NativeEndian.AppendUint16(b.buf, typ)
	b.buf = append(b.buf, value...)
	b.grow()
}

// Uint8 adds an attribute.
func (b *Batch) Uint8(typ uint16, v uint8) { b.Attr(typ, []byte{v}) }

// Uint32 adds an attribute in the machine's byte order.
func (b *Batch) Uint32(typ uint16, v uint32) {
	var raw [4]byte
	binary.NativeEndian.PutUint32(raw[:], v)
	b.Attr(typ, raw[:])
}

// Text adds an attribute that ends with a zero byte.
func (b *Batch) Text(typ uint16, s string) { b.Attr(typ, append([]byte(s), 0)) }

// Addr adds an attribute of 4 or 16 bytes.
func (b *Batch) Addr(typ uint16, a netip.Addr) {
	if a.Is4() {
		raw := a.As4()
		b.Attr(typ, raw[:])
		return
	}
	raw := a.As16()
	b.Attr(typ, raw[:])
}

// Nest adds an attribute that holds those which add adds.
func (b *Batch) Nest(typ uint16, add func()) {
	at := len(b.buf)
	b.Attr(typ, nil)
	add()
	binary.NativeEndian.PutUint16(b.buf[at:], uint16(len(b.buf)-at))
}
