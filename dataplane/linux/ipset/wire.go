package ipset

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink"
)

// Numbers of linux/netfilter/ipset/ip_set.h.
const (
	protocol = 6 // understood by all kernels since 2.6.39

	attrProtocol = 1
	attrSetName  = 2
	attrTypeName = 3 // second name in opSwap
	attrRevision = 4
	attrFamily   = 5
	attrFlags    = 6
	attrData     = 7
	attrADT      = 8
	attrLineNo   = 9

	attrIP       = 1
	attrCIDR     = 3
	attrPort     = 4
	attrProto    = 7
	attrHashSize = 18
	attrMaxElem  = 19

	attrIPv4 = 1
	attrIPv6 = 2

	cmdList        = 7
	flagListHeader = 1 << 2

	nested   = 0x8000
	netOrder = 0x4000

	sizeofNfgenmsg = 4
	sizeofAttr     = 4

	// 512 IPv6 members with ports are 28 KiB.
	membersPerMessage = 512
	// Revisions of the three types that both kernels and ipset programs have had since 2015; nothing here needs a later one.
	revision = 4
)

func align(n int) int { return (n + 3) &^ 3 }

// encoder makes messages in one buffer, which the next message overwrites.
type encoder struct{ b []byte }

func (e *encoder) begin(seq uint32, cmd, flags uint16) {
	e.b = append(e.b[:0], 0, 0, 0, 0)
	e.b = binary.NativeEndian.AppendUint16(e.b, unix.NFNL_SUBSYS_IPSET<<8|cmd)
	e.b = binary.NativeEndian.AppendUint16(e.b, unix.NLM_F_REQUEST|flags)
	e.b = binary.NativeEndian.AppendUint32(e.b, seq)
	e.b = append(e.b, 0, 0, 0, 0, unix.AF_INET, 0, 0, 0) // port, struct nfgenmsg
	e.u8(attrProtocol, protocol)
}

func (e *encoder) end() []byte {
	binary.NativeEndian.PutUint32(e.b, uint32(len(e.b)))
	return e.b
}

func (e *encoder) attr(typ uint16, value ...byte) {
	e.b = binary.NativeEndian.AppendUint16(e.b, uint16(sizeofAttr+len(value)))
	e.b = binary.NativeEndian.AppendUint16(e.b, typ)
	e.b = append(e.b, value...)
	e.b = append(e.b, make([]byte, align(len(value))-len(value))...)
}

func (e *encoder) u8(typ uint16, v uint8) { e.attr(typ, v) }

func (e *encoder) u16be(typ uint16, v uint16) { e.attr(typ|netOrder, byte(v>>8), byte(v)) }

func (e *encoder) u32be(typ uint16, v uint32) {
	e.attr(typ|netOrder, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// u32 is in the machine's byte order.
func (e *encoder) u32(typ uint16, v uint32) {
	e.attr(typ, binary.NativeEndian.AppendUint32(nil, v)...)
}

func (e *encoder) text(typ uint16, s string) { e.attr(typ, append([]byte(s), 0)...) }

// open starts a nested attribute; close ends the one that began at start.
func (e *encoder) open(typ uint16) (start int) {
	start = len(e.b)
	e.attr(typ | nested)
	return start
}

func (e *encoder) close(start int) {
	binary.NativeEndian.PutUint16(e.b[start:], uint16(len(e.b)-start))
}

func netlinkFamily(f table.Family) uint8 {
	if f == table.IPv4 {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// control is a request about a set as a whole.
func (e *encoder) control(seq uint32, r *request) []byte {
	flags := uint16(unix.NLM_F_ACK)
	if r.op == opCreate {
		flags |= unix.NLM_F_CREATE | unix.NLM_F_EXCL
	}
	e.begin(seq, uint16(r.op), flags)
	e.text(attrSetName, r.name)
	switch r.op {
	case opSwap:
		e.text(attrTypeName, r.other)
	case opCreate:
		e.text(attrTypeName, r.head.typ)
		e.u8(attrRevision, revision)
		e.u8(attrFamily, netlinkFamily(r.head.family))
		data := e.open(attrData)
		e.u32be(attrHashSize, uint32(r.hashSize))
		e.u32be(attrMaxElem, uint32(r.head.max))
		e.close(data)
	}
	return e.end()
}

// change adds or removes some members, numbered from one.
func (e *encoder) change(seq uint32, r *request, members []member) []byte {
	e.begin(seq, uint16(r.op), unix.NLM_F_ACK)
	e.text(attrSetName, r.name)
	e.u32(attrLineNo, 0)
	adt := e.open(attrADT)
	for i := range members {
		e.member(r, &members[i], uint32(i+1))
	}
	e.close(adt)
	return e.end()
}

func (e *encoder) member(r *request, m *member, line uint32) {
	data := e.open(attrData)
	e.u32(attrLineNo, line)
	ip := e.open(attrIP)
	if r.head.family == table.IPv4 {
		e.attr(attrIPv4|netOrder, m.addr[:4]...)
	} else {
		e.attr(attrIPv6|netOrder, m.addr[:]...)
	}
	e.close(ip)
	switch r.typ {
	case table.SetNet:
		e.u8(attrCIDR, m.bits)
	case table.SetIPAndPort:
		e.u16be(attrPort, m.port)
		e.u8(attrProto, m.proto)
	}
	e.close(data)
}

// list asks for a set, or with no name for all.
func (e *encoder) list(seq uint32, name string, flags uint32) []byte {
	e.begin(seq, cmdList, unix.NLM_F_ACK|unix.NLM_F_DUMP)
	if name != "" {
		e.text(attrSetName, name)
	}
	if flags != 0 {
		e.u32be(attrFlags, flags)
	}
	return e.end()
}

// eachAttr hands over the attributes in data, without their flags. What is malformed ends it.
func eachAttr(data []byte, each func(typ uint16, value []byte)) { netlink.Attributes(data, 0, each) }

func parseHeader(p []byte) header {
	var h header
	eachAttr(p, func(typ uint16, v []byte) {
		switch typ {
		case attrSetName:
			h.name = netlink.Text(v)
		case attrTypeName:
			h.typ = netlink.Text(v)
		case attrFamily:
			h.family = table.IPv4
			if len(v) > 0 && v[0] == unix.AF_INET6 {
				h.family = table.IPv6
			}
		case attrData:
			eachAttr(v, func(typ uint16, v []byte) {
				if typ == attrMaxElem && len(v) >= 4 {
					h.max = int(binary.BigEndian.Uint32(v))
				}
			})
		}
	})
	return h
}

func parseMembers(p []byte, each func(member)) {
	eachAttr(p, func(typ uint16, v []byte) {
		if typ == attrADT {
			eachAttr(v, func(typ uint16, v []byte) {
				if typ == attrData {
					each(parseMember(v))
				}
			})
		}
	})
}

func parseMember(p []byte) member {
	var m member
	cidr := uint8(255)
	eachAttr(p, func(typ uint16, v []byte) {
		switch {
		case typ == attrIP:
			eachAttr(v, func(_ uint16, v []byte) {
				m.bits = uint8(8 * copy(m.addr[:], v))
			})
		case typ == attrCIDR && len(v) >= 1:
			cidr = v[0]
		case typ == attrPort && len(v) >= 2:
			m.port = binary.BigEndian.Uint16(v)
		case typ == attrProto && len(v) >= 1:
			m.proto = v[0]
		}
	})
	m.bits = min(m.bits, cidr)
	return m
}
