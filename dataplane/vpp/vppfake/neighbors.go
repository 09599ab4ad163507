package vppfake

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
)

// neighborKey is an address on the link of an interface. VPP keeps static neighbours when the interface is deleted: the next interface with
// that index has them.
type neighborKey struct {
	ifx  uint32
	addr netip.Addr
}

type neighbor struct {
	mac   mac
	flags ip_neighbor.IPNeighborFlags
	table *fib // table of its route; nil: none
}

// neighborConfig holds the database's limits in one family.
type neighborConfig struct {
	max, age uint32
	recycle  bool
}

const (
	staticNeighbor = ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC
	noFibNeighbor  = ip_neighbor.IP_API_NEIGHBOR_FLAG_NO_FIB_ENTRY
)

func registerNeighbors(t *table) {
	on(t, writes, neighborAddDel)
	dump(t, neighborDump)
	on(t, writes, func(c *call, q *ip_neighbor.IPNeighborConfig) *ip_neighbor.IPNeighborConfigReply {
		if q.Af > ip_types.ADDRESS_IP6 {
			return &ip_neighbor.IPNeighborConfigReply{Retval: -97}
		}
		c.ip.config[q.Af] = neighborConfig{max: q.MaxNumber, age: q.MaxAge, recycle: q.Recycle}
		return &ip_neighbor.IPNeighborConfigReply{}
	})
	on(t, reads, func(c *call, q *ip_neighbor.IPNeighborConfigGet) *ip_neighbor.IPNeighborConfigGetReply {
		if q.Af > ip_types.ADDRESS_IP6 {
			return &ip_neighbor.IPNeighborConfigGetReply{Retval: -97}
		}
		n := c.ip.config[q.Af]
		return &ip_neighbor.IPNeighborConfigGetReply{Af: q.Af, MaxNumber: n.max, MaxAge: n.age, Recycle: n.recycle}
	})
	on(t, writes, func(c *call, q *ip_neighbor.IPNeighborFlush) *ip_neighbor.IPNeighborFlushReply {
		if uint32(q.SwIfIndex) != none && c.iface(q.SwIfIndex) == nil {
			return &ip_neighbor.IPNeighborFlushReply{Retval: rvInvalidSwIfIndex}
		}
		if q.Af > ip_types.ADDRESS_IP6 {
			return &ip_neighbor.IPNeighborFlushReply{Retval: -97}
		}
		c.flushNeighbors(uint32(q.SwIfIndex), int(q.Af), true)
		return &ip_neighbor.IPNeighborFlushReply{}
	})
}

func neighborAddDel(c *call, q *ip_neighbor.IPNeighborAddDel) *ip_neighbor.IPNeighborAddDelReply {
	i := c.iface(q.Neighbor.SwIfIndex)
	if i == nil {
		return &ip_neighbor.IPNeighborAddDelReply{Retval: rvInvalidSwIfIndex, StatsIndex: none}
	}
	addr := netAddr(q.Neighbor.IPAddress)
	key := neighborKey{i.index, addr}
	if q.IsAdd {
		rv, stats := c.addNeighbor(i, key, q.Neighbor)
		return &ip_neighbor.IPNeighborAddDelReply{Retval: rv, StatsIndex: stats}
	}
	if c.ip.neighbors[family(addr)][key] == nil {
		return &ip_neighbor.IPNeighborAddDelReply{Retval: rvNoSuchEntry, StatsIndex: none}
	}
	c.dropNeighbor(key)
	return &ip_neighbor.IPNeighborAddDelReply{StatsIndex: none}
}

func (st *state) addNeighbor(i *iface, key neighborKey, q ip_neighbor.IPNeighbor) (rv int32, stats uint32) {
	fam := family(key.addr)
	n := st.ip.neighbors[fam][key]
	switch {
	case n == nil:
		n = &neighbor{mac: q.MacAddress, flags: q.Flags & (staticNeighbor | noFibNeighbor)}
		st.ip.neighbors[fam][key] = n
		if q.Flags&noFibNeighbor == 0 {
			n.table = i.ip[fam].table
			n.table.addPaths(hostPrefix(key.addr), srcAdjacency, attached, []path{viaInterface(i, fam, key.addr)})
		}
	case n.flags&staticNeighbor != 0 && q.Flags&staticNeighbor == 0 && n.mac != q.MacAddress:
		return rvInvalidSwIfIndex, none // VPP rejects it with a plain -2
	default:
		n.mac = q.MacAddress
		n.flags |= q.Flags & staticNeighbor
	}
	if n.table == nil {
		return 0, none
	}
	return 0, n.table.entry(hostPrefix(key.addr)).stats
}

func (st *state) dropNeighbor(key neighborKey) {
	fam := family(key.addr)
	n := st.ip.neighbors[fam][key]
	delete(st.ip.neighbors[fam], key)
	if n.table != nil {
		n.table.removePaths(hostPrefix(key.addr), srcAdjacency, []path{{proto: fibProto(fam), nh: key.addr, ifx: key.ifx}})
	}
}

// flushNeighbors removes the neighbours of an interface (none: of all) in a family (-1: in both); static ones only on request.
func (st *state) flushNeighbors(ifx uint32, fam int, static bool) {
	for f := range st.ip.neighbors {
		if fam >= 0 && f != fam {
			continue
		}
		for key, n := range maps.Clone(st.ip.neighbors[f]) {
			if (ifx == none || key.ifx == ifx) && (static || n.flags&staticNeighbor == 0) {
				st.dropNeighbor(key)
			}
		}
	}
}

// flushCovered removes the learned neighbours of an interface within a prefix whose address was removed.
func (st *state) flushCovered(i *iface, p netip.Prefix) {
	for key, n := range maps.Clone(st.ip.neighbors[family(p.Addr())]) {
		if key.ifx == i.index && p.Contains(key.addr) && n.flags&staticNeighbor == 0 {
			st.dropNeighbor(key)
		}
	}
}

func neighborDump(c *call, q *ip_neighbor.IPNeighborDump, send func(*ip_neighbor.IPNeighborDetails)) {
	if q.Af > ip_types.ADDRESS_IP6 {
		return
	}
	db := c.ip.neighbors[q.Af]
	for _, key := range sortedNeighbors(db) {
		if uint32(q.SwIfIndex) != none && uint32(q.SwIfIndex) != key.ifx {
			continue
		}
		n := db[key]
		send(&ip_neighbor.IPNeighborDetails{Neighbor: ip_neighbor.IPNeighbor{SwIfIndex: interface_types.InterfaceIndex(key.ifx),
			Flags: n.flags, MacAddress: n.mac, IPAddress: apiAddress(key.addr)}})
	}
}

func sortedNeighbors(db map[neighborKey]*neighbor) []neighborKey {
	return slices.SortedFunc(maps.Keys(db), func(a, b neighborKey) int {
		return cmp.Or(cmp.Compare(a.ifx, b.ifx), a.addr.Compare(b.addr))
	})
}

func dumpNeighbors(st *state, d *dumper) {
	for _, db := range st.ip.neighbors {
		for key, n := range db {
			i := st.iface(interface_types.InterfaceIndex(key.ifx))
			d.add("neighbor %s %s %s flags %d", i.label(), key.addr, n.mac, n.flags)
		}
	}
}
