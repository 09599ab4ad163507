package routetable

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink"
)

// ipv6Metric is the metric that the kernel assigns to an IPv6 route without one (IP6_RT_PRIO_USER). For IPv4 it is 0.
const ipv6Metric = 1024

const rtaNHID = 30 // RTA_NH_ID, Linux 5.3: a route with a next hop object

// route is a route in the kernel. It is comparable.
type route struct {
	dst      netip.Prefix
	typ      uint8 // RTN_…
	protocol uint8 // RTPROT_…
	tos      uint8
	metric   uint32
	index    int // of the link; 0 if the route has no link
	gw       netip.Addr
	onLink   bool
	src      netip.Addr
	mtu      uint32
	odd      bool // has properties that we never set, such as several next hops
}

// host reports whether the route is to a single address, which may have connections.
func (r route) host() bool { return r.dst.IsSingleIP() && r.typ == unix.RTN_UNICAST }

func afOf(f table.Family) uint8 {
	if f == table.IPv6 {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

func rtMsg(r route, scope uint8) []byte {
	h := make([]byte, unix.SizeofRtMsg)
	h[0], h[1] = netlink.FamilyOf(r.dst.Addr()), uint8(r.dst.Bits())
	h[3] = r.tos
	h[4], h[5], h[6], h[7] = unix.RT_TABLE_MAIN, r.protocol, scope, r.typ
	if r.onLink {
		binary.NativeEndian.PutUint32(h[8:], unix.RTNH_F_ONLINK)
	}
	return h
}

// scopeOf returns the scope of the route, which IPv4 requires; IPv6 ignores it.
func scopeOf(r route) uint8 {
	if r.typ == unix.RTN_UNICAST && !r.gw.IsValid() && r.dst.Addr().Is4() {
		return unix.RT_SCOPE_LINK
	}
	return unix.RT_SCOPE_UNIVERSE
}

// putRoute adds a route. how determines what happens to an existing route with the same destination and metric: with NLM_F_EXCL adding
// fails, with NLM_F_REPLACE the existing route is replaced.
func putRoute(b *netlink.Batch, r route, how uint16) {
	b.Begin(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|how, rtMsg(r, scopeOf(r)))
	addSelectors(b, r)
	if r.src.IsValid() {
		b.Addr(unix.RTA_PREFSRC, r.src)
	}
	if r.mtu > 0 {
		b.Nest(unix.RTA_METRICS, func() { b.Uint32(unix.RTAX_MTU, r.mtu) })
	}
}

// dropRoute removes exactly this route.
func dropRoute(b *netlink.Batch, r route) {
	r.onLink = false
	b.Begin(unix.RTM_DELROUTE, 0, rtMsg(r, unix.RT_SCOPE_NOWHERE)) // of any scope
	if r.odd {
		r.index, r.gw = 0, netip.Addr{}
	}
	addSelectors(b, r)
}

func addSelectors(b *netlink.Batch, r route) {
	if r.dst.Bits() > 0 {
		b.Addr(unix.RTA_DST, r.dst.Addr())
	}
	if r.index > 0 {
		b.Uint32(unix.RTA_OIF, uint32(r.index))
	}
	if r.gw.IsValid() {
		b.Addr(unix.RTA_GATEWAY, r.gw)
	}
	if r.metric > 0 {
		b.Uint32(unix.RTA_PRIORITY, r.metric)
	}
}

// listRoutes requests the main table's routes of a family, of one protocol and one link; 0 means all. Kernels before 4.20 return all of
// them in any case.
func listRoutes(b *netlink.Batch, family, protocol uint8, index int) {
	h := make([]byte, unix.SizeofRtMsg)
	h[0], h[5] = family, protocol
	b.Begin(unix.RTM_GETROUTE, 0, h)
	b.Uint32(unix.RTA_TABLE, unix.RT_TABLE_MAIN)
	if index > 0 {
		b.Uint32(unix.RTA_OIF, uint32(index))
	}
}

// ParseNextHop returns the destination of a route of the main table that has the protocol number and a next hop. ok is false for other routes.
func ParseNextHop(payload []byte, protocol uint8) (dst netip.Prefix, ok bool) {
	if len(payload) < unix.SizeofRtMsg || payload[5] != protocol {
		return dst, false
	}
	r, keep := parseRoute(payload)
	return r.dst, keep && r.gw.IsValid()
}

// parseRoute parses a route of the main table. keep is false for routes of other tables and for the kernel's caches.
func parseRoute(payload []byte) (r route, keep bool) {
	var dst netip.Addr
	mainTable := len(payload) > 4 && payload[4] == unix.RT_TABLE_MAIN
	ok := netlink.Attributes(payload, unix.SizeofRtMsg, func(typ uint16, v []byte) {
		switch typ {
		case unix.RTA_DST:
			dst = netlink.Addr(v)
		case unix.RTA_GATEWAY:
			r.gw = netlink.Addr(v)
		case unix.RTA_OIF:
			r.index = int(netlink.Uint32(v))
		case unix.RTA_PRIORITY:
			r.metric = netlink.Uint32(v)
		case unix.RTA_PREFSRC:
			r.src = netlink.Addr(v)
		case unix.RTA_TABLE:
			mainTable = netlink.Uint32(v) == unix.RT_TABLE_MAIN
		case unix.RTA_METRICS:
			netlink.Attributes(v, 0, func(typ uint16, v []byte) {
				if typ == unix.RTAX_MTU {
					r.mtu = netlink.Uint32(v)
				} else {
					r.odd = true
				}
			})
		case unix.RTA_MULTIPATH, unix.RTA_VIA, unix.RTA_SRC, unix.RTA_ENCAP, rtaNHID:
			r.odd = true
		}
	})
	if !ok || !mainTable {
		return r, false
	}
	if !dst.IsValid() {
		dst = netip.IPv4Unspecified()
		if payload[0] == unix.AF_INET6 {
			dst = netip.IPv6Unspecified()
		}
	}
	flags := binary.NativeEndian.Uint32(payload[8:])
	r.dst = netip.PrefixFrom(dst, int(payload[1]))
	r.tos, r.protocol, r.typ = payload[3], payload[5], payload[7]
	r.onLink = flags&unix.RTNH_F_ONLINK != 0
	if r.typ != unix.RTN_UNICAST {
		r.index = 0 // IPv6 reports lo
	}
	return r, r.dst.IsValid() && flags&unix.RTM_F_CLONED == 0
}
