package conntrack

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// From linux/netfilter/nfnetlink_conntrack.h and, for the filter's flags, net/netfilter/nf_conntrack_netlink.c.
const (
	msgGet    = unix.NFNL_SUBSYS_CTNETLINK<<8 | 1 // IPCTNL_MSG_CT_GET
	msgDelete = unix.NFNL_SUBSYS_CTNETLINK<<8 | 2 // IPCTNL_MSG_CT_DELETE

	ctaTupleOrig  = 1
	ctaTupleReply = 2
	ctaStatus     = 3
	ctaID         = 12
	ctaZone       = 18
	ctaFilter     = 25
	ctaStatusMask = 26

	statusSeenReply = 1 << 1 // IPS_SEEN_REPLY

	ctaTupleIP  = 1
	ctaTupleSrc = 1 // CTA_IP_V4_SRC
	ctaTupleDst = 2 // CTA_IP_V4_DST

	filterOrigFlags  = 1
	filterReplyFlags = 2
	filterIPSrc      = 1 << 0
	filterIPDst      = 1 << 1

	sizeofNfGenMsg = 4
	// A deletion uses the message's family only if it has this version.
	familyVersion = 1
)

func nfGenMsg(af uint8) []byte { return []byte{af, familyVersion, 0, 0} }

// putFlush adds a request that removes all IPv4 connections whose tuple has an address as source or destination. The filter selects the
// part of the tuple to compare; a kernel without this filter finds the tuple incomplete and rejects the request.
func putFlush(b *netlink.Batch, tuple uint16, a netip.Addr, source bool) {
	attr, flag := uint16(ctaTupleDst), uint32(filterIPDst)
	if source {
		attr, flag = ctaTupleSrc, filterIPSrc
	}
	b.Begin(msgDelete, 0, nfGenMsg(unix.AF_INET))
	b.Nest(tuple|unix.NLA_F_NESTED, func() {
		b.Nest(ctaTupleIP|unix.NLA_F_NESTED, func() { b.Addr(attr, a) })
	})
	b.Nest(ctaFilter|unix.NLA_F_NESTED, func() {
		which := uint16(filterOrigFlags)
		if tuple == ctaTupleReply {
			which = filterReplyFlags
		}
		b.Uint32(which, flag)
	})
}

func putList(b *netlink.Batch, af uint8) { b.Begin(msgGet, 0, nfGenMsg(af)) }

// putUnanswered limits a listing to connections without a reply. Kernels without this filter list all connections.
func putUnanswered(b *netlink.Batch) {
	b.Attr(ctaStatus, binary.BigEndian.AppendUint32(nil, 0))
	b.Attr(ctaStatusMask, binary.BigEndian.AppendUint32(nil, statusSeenReply))
}

// entry is a connection: the attributes that identify it, as received, and the addresses of both directions.
type entry struct {
	orig, id, zone []byte
	addrs          []netip.Addr
}

func (e entry) hasAny(addrs map[netip.Addr]bool) bool {
	for _, a := range e.addrs {
		if addrs[a] {
			return true
		}
	}
	return false
}

// putDelete adds a request that removes one connection. The ID makes sure that a later connection with the same tuple is not removed.
func putDelete(b *netlink.Batch, af uint8, e entry) {
	b.Begin(msgDelete, 0, nfGenMsg(af))
	b.Attr(ctaTupleOrig|unix.NLA_F_NESTED, e.orig)
	if e.id != nil {
		b.Attr(ctaID, e.id)
	}
	if e.zone != nil {
		b.Attr(ctaZone, e.zone)
	}
}

func parseEntry(payload []byte) (e entry, ok bool) {
	ok = netlink.Attributes(payload, sizeofNfGenMsg, func(typ uint16, v []byte) {
		switch typ {
		case ctaTupleOrig:
			e.orig = bytes.Clone(v)
			e.addAddrs(v)
		case ctaTupleReply:
			e.addAddrs(v)
		case ctaID:
			e.id = bytes.Clone(v)
		case ctaZone:
			e.zone = bytes.Clone(v)
		}
	})
	return e, ok && e.orig != nil
}

func (e *entry) addAddrs(tuple []byte) {
	netlink.Attributes(tuple, 0, func(typ uint16, v []byte) {
		if typ != ctaTupleIP {
			return
		}
		netlink.Attributes(v, 0, func(_ uint16, v []byte) {
			if a := netlink.Addr(v); a.IsValid() {
				e.addrs = append(e.addrs, a)
			}
		})
	})
}
