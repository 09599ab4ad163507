package wire

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// Buffer builds netlink messages. Numbers in nf_tables' attributes are in network byte order, headers in the machine's.
type Buffer struct{ B []byte }

const (
	msgHeader  = unix.SizeofNlMsghdr + 4 // with nfgenmsg
	attrHeader = unix.SizeofRtAttr
	maxAttr    = 1<<16 - 1
)

func align4(n int) int { return (n + 3) &^ 3 }

func (w *Buffer) pad() {
	for len(w.B)&3 != 0 {
		w.B = append(w.B, 0)
	}
}

// message begins a message (struct nlmsghdr, struct nfgenmsg); endMessage fills in its length.
func (w *Buffer) message(typ, flags uint16, seq uint32, family uint8, resource uint16) (at int) {
	at = len(w.B)
	w.B = append(w.B, 0, 0, 0, 0)
	w.B = binary.NativeEndian.AppendUint16(w.B, typ)
	w.B = binary.NativeEndian.AppendUint16(w.B, flags)
	w.B = binary.NativeEndian.AppendUint32(w.B, seq)
	w.B = append(w.B, 0, 0, 0, 0, family, unix.NFNETLINK_V0)
	w.B = binary.BigEndian.AppendUint16(w.B, resource)
	return at
}

func (w *Buffer) endMessage(at int) {
	w.pad()
	binary.NativeEndian.PutUint32(w.B[at:], uint32(len(w.B)-at))
}

// addFlags adds flags to a message that was begun at at.
func (w *Buffer) addFlags(at int, flags uint16) {
	binary.NativeEndian.PutUint16(w.B[at+6:], binary.NativeEndian.Uint16(w.B[at+6:])|flags)
}

// Nest begins an attribute that holds others; EndNest fills in its length.
func (w *Buffer) Nest(typ uint16) (at int) {
	at = len(w.B)
	w.B = append(w.B, 0, 0)
	w.B = binary.NativeEndian.AppendUint16(w.B, typ|unix.NLA_F_NESTED)
	return at
}

// EndNest ends what Nest began at at.
func (w *Buffer) EndNest(at int) {
	binary.NativeEndian.PutUint16(w.B[at:], uint16(len(w.B)-at))
}

func (w *Buffer) head(typ uint16, size int) {
	w.B = binary.NativeEndian.AppendUint16(w.B, uint16(attrHeader+size))
	w.B = binary.NativeEndian.AppendUint16(w.B, typ)
}

// Uint32 adds a number as an attribute; Uint8, Bytes and String likewise.
func (w *Buffer) Uint32(typ uint16, v uint32) {
	w.head(typ, 4)
	w.B = binary.BigEndian.AppendUint32(w.B, v)
}

func (w *Buffer) Uint8(typ uint16, v uint8) {
	w.head(typ, 1)
	w.B = append(w.B, v, 0, 0, 0)
}

func (w *Buffer) Bytes(typ uint16, v []byte) {
	w.head(typ, len(v))
	w.B = append(w.B, v...)
	w.pad()
}

func (w *Buffer) String(typ uint16, s string) {
	w.head(typ, len(s)+1)
	w.B = append(w.B, s...)
	w.B = append(w.B, 0)
	w.pad()
}

// EachAttr calls f for every attribute in b; nested flags are taken off the type. What is not well formed ends it.
func EachAttr(b []byte, f func(typ uint16, value []byte)) { netlink.Attributes(b, 0, f) }

// Attr is the first attribute of a type in b, nil if there is none.
func Attr(b []byte, typ uint16) (value []byte) {
	EachAttr(b, func(t uint16, v []byte) {
		if t == typ && value == nil {
			value = v
		}
	})
	return value
}

// Uint32 reads a number; 0 if it is not there.
func Uint32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}
