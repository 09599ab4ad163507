package nft

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// buffer builds netlink messages. Numbers in nf_tables' attributes are in network byte order, headers in the machine's.
type buffer struct{ b []byte }

const (
	msgHeader  = unix.SizeofNlMsghdr + 4 // with nfgenmsg
	attrHeader = unix.SizeofRtAttr
	maxAttr    = 1<<16 - 1
)

func align4(n int) int { return (n + 3) &^ 3 }

func (w *buffer) pad() {
	for len(w.b)&3 != 0 {
		w.b = append(w.b, 0)
	}
}

// message begins a message (struct nlmsghdr, struct nfgenmsg); endMessage fills in its length.
func (w *buffer) message(typ, flags uint16, seq uint32, family uint8, resource uint16) (at int) {
	at = len(w.b)
	w.b = append(w.b, 0, 0, 0, 0)
	w.b = binary.NativeEndian.AppendUint16(w.b, typ)
	w.b = binary.NativeEndian.AppendUint16(w.b, flags)
	w.b = binary.NativeEndian.AppendUint32(w.b, seq)
	w.b = append(w.b, 0, 0, 0, 0, family, unix.NFNETLINK_V0)
	w.b = binary.BigEndian.AppendUint16(w.b, resource)
	return at
}

func (w *buffer) endMessage(at int) {
	w.pad()
	binary.NativeEndian.PutUint32(w.b[at:], uint32(len(w.b)-at))
}

// addFlags adds flags to a message that was begun at at.
func (w *buffer) addFlags(at int, flags uint16) {
	binary.NativeEndian.PutUint16(w.b[at+6:], binary.NativeEndian.Uint16(w.b[at+6:])|flags)
}

// nest begins an attribute that holds others; endNest fills in its length.
func (w *buffer) nest(typ uint16) (at int) {
	at = len(w.b)
	w.b = append(w.b, 0, 0)
	w.b = binary.NativeEndian.AppendUint16(w.b, typ|unix.NLA_F_NESTED)
	return at
}

func (w *buffer) endNest(at int) {
	binary.NativeEndian.PutUint16(w.b[at:], uint16(len(w.b)-at))
}

func (w *buffer) head(typ uint16, size int) {
	w.b = binary.NativeEndian.AppendUint16(w.b, uint16(attrHeader+size))
	w.b = binary.NativeEndian.AppendUint16(w.b, typ)
}

func (w *buffer) u32(typ uint16, v uint32) {
	w.head(typ, 4)
	w.b = binary.BigEndian.AppendUint32(w.b, v)
}

func (w *buffer) u8(typ uint16, v uint8) {
	w.head(typ, 1)
	w.b = append(w.b, v, 0, 0, 0)
}

func (w *buffer) bytes(typ uint16, v []byte) {
	w.head(typ, len(v))
	w.b = append(w.b, v...)
	w.pad()
}

func (w *buffer) str(typ uint16, s string) {
	w.head(typ, len(s)+1)
	w.b = append(w.b, s...)
	w.b = append(w.b, 0)
	w.pad()
}

// eachAttr calls f for every attribute in b; nested flags are taken off the type. What is not well formed ends it.
func eachAttr(b []byte, f func(typ uint16, value []byte)) {
	for len(b) >= attrHeader {
		size := int(binary.NativeEndian.Uint16(b))
		if size < attrHeader || size > len(b) {
			return
		}
		f(binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[attrHeader:size])
		b = b[min(align4(size), len(b)):]
	}
}

// attr is the first attribute of a type in b, nil if there is none.
func attr(b []byte, typ uint16) (value []byte) {
	eachAttr(b, func(t uint16, v []byte) {
		if t == typ && value == nil {
			value = v
		}
	})
	return value
}

// be32 reads a number; 0 if it is not there.
func be32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

// text reads a string, which the kernel ends with a zero.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
