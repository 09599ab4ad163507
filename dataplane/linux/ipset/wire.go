package ipset

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink"
)

// Numbers of linux/netfilter/ipset/ip_set.h.
const (
	protocol = 6 // supported by all kernels since 2.6.39

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

	nested   = unix.NLA_F_NESTED
	netOrder = unix.NLA_F_NET_BYTEORDER

	sizeofNfgenmsg = 4

	// 512 IPv6 members with ports are 28 KiB.
	membersPerMessage = 512
	// The revision of the three types that all kernels and ipset programs support since 2015; no later one is needed.
	revision = 4
)

// encoder encodes ipset's messages.
type encoder struct{ netlink.Batch }

func (e *encoder) begin(cmd, flags uint16) {
	e.Begin(unix.NFNL_SUBSYS_IPSET<<8|cmd, flags, []byte{unix.AF_INET, 0, 0, 0}) // struct nfgenmsg
	e.Uint8(attrProtocol, protocol)
}

func netlinkFamily(f table.Family) uint8 {
	if f == table.IPv4 {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// control encodes a request about a set as a whole.
func (e *encoder) control(r *request) {
	var flags uint16
	if r.op == opCreate {
		flags = unix.NLM_F_CREATE | unix.NLM_F_EXCL
	}
	e.begin(uint16(r.op), flags)
	e.Text(attrSetName, r.name)
	switch r.op {
	case opSwap:
		e.Text(attrTypeName, r.other)
	case opCreate:
		e.Text(attrTypeName, r.head.typ)
		e.Uint8(attrRevision, revision)
		e.Uint8(attrFamily, netlinkFamily(r.head.family))
		data := e.OpenNest(attrData | nested)
		e.Net32(attrHashSize|netOrder, uint32(r.hashSize))
		e.Net32(attrMaxElem|netOrder, uint32(r.head.max))
		e.CloseNest(data)
	}
}

// change encodes a request that adds or removes some members, numbered from one.
func (e *encoder) change(r *request, members []member) {
	e.begin(uint16(r.op), 0)
	e.Text(attrSetName, r.name)
	e.Uint32(attrLineNo, 0)
	adt := e.OpenNest(attrADT | nested)
	for i := range members {
		e.member(r, &members[i], uint32(i+1))
	}
	e.CloseNest(adt)
}

func (e *encoder) member(r *request, m *member, line uint32) {
	data := e.OpenNest(attrData | nested)
	e.Uint32(attrLineNo, line)
	ip := e.OpenNest(attrIP | nested)
	if r.head.family == table.IPv4 {
		e.Attr(attrIPv4|netOrder, m.addr[:4])
	} else {
		e.Attr(attrIPv6|netOrder, m.addr[:])
	}
	e.CloseNest(ip)
	switch r.typ {
	case table.SetNet:
		e.Uint8(attrCIDR, m.bits)
	case table.SetIPAndPort:
		e.Net16(attrPort|netOrder, m.port)
		e.Uint8(attrProto, m.proto)
	}
	e.CloseNest(data)
}

// list encodes a request to list a set, or all sets if name is empty.
func (e *encoder) list(name string, flags uint32) {
	e.begin(cmdList, unix.NLM_F_ACK)
	if name != "" {
		e.Text(attrSetName, name)
	}
	if flags != 0 {
		e.Net32(attrFlags|netOrder, flags)
	}
}

// eachAttr calls each for the attributes in data, without their flags. It stops at malformed data.
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
