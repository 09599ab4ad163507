package wire

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// Buffer builds netlink messages. Numbers in nf_tables' attributes are in network byte order, headers in host byte order.
type Buffer struct{ netlink.Attrs }

const (
	sizeofNfgenmsg = 4
	maxAttr        = 1<<16 - 1
)

// message starts a message (struct nlmsghdr, struct nfgenmsg); CloseMessage fills in its length.
func (w *Buffer) message(typ, flags uint16, seq uint32, family uint8, resource uint16) (at int) {
	return w.OpenMessage(typ, flags, seq, family, unix.NFNETLINK_V0, byte(resource>>8), byte(resource))
}

// Nest starts an attribute that contains others; EndNest fills in its length.
func (w *Buffer) Nest(typ uint16) (at int) { return w.OpenNest(typ | unix.NLA_F_NESTED) }

// EndNest completes the attribute that Nest started at at.
func (w *Buffer) EndNest(at int) { w.CloseNest(at) }

// Uint32 adds a number as an attribute; Bytes and String likewise.
func (w *Buffer) Uint32(typ uint16, v uint32) { w.Net32(typ, v) }

func (w *Buffer) Bytes(typ uint16, v []byte) { w.Attr(typ, v) }

func (w *Buffer) String(typ uint16, s string) { w.Text(typ, s) }

// EachAttr calls f for every attribute in b, without the nested flag in the type. It stops at malformed data.
func EachAttr(b []byte, f func(typ uint16, value []byte)) { netlink.Attributes(b, 0, f) }

// Attr returns the value of the first attribute of a type in b, or nil if there is none.
func Attr(b []byte, typ uint16) (value []byte) { return netlink.Find(b, typ) }

// Uint32 reads a number; it returns 0 if b is too short.
func Uint32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}
