package vppfake

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
)

func registerRoutes(t *table) {
	on(t, writes, func(c *call, q *ip.IPRouteAddDelV2) *ip.IPRouteAddDelV2Reply {
		src := source(q.Route.Src)
		if src == 0 {
			src = srcAPI
		}
		rv, stats := c.routeAddDel(q, src)
		return &ip.IPRouteAddDelV2Reply{Retval: rv, StatsIndex: stats}
	})
	on(t, writes, func(c *call, q *ip.IPRouteAddDel) *ip.IPRouteAddDelReply {
		r := q.Route
		rv, stats := c.routeAddDel(&ip.IPRouteAddDelV2{IsAdd: q.IsAdd, IsMultipath: q.IsMultipath,
			Route: ip.IPRouteV2{TableID: r.TableID, Prefix: r.Prefix, Paths: r.Paths}}, srcAPI)
		return &ip.IPRouteAddDelReply{Retval: rv, StatsIndex: stats}
	})
	dump(t, func(c *call, q *ip.IPRouteV2Dump, send func(*ip.IPRouteV2Details)) {
		c.eachRoute(q.Table, source(q.Src), func(r ip.IPRouteV2) { send(&ip.IPRouteV2Details{Route: r}) })
	})
	dump(t, func(c *call, q *ip.IPRouteDump, send func(*ip.IPRouteDetails)) {
		c.eachRoute(q.Table, 0, func(r ip.IPRouteV2) { send(&ip.IPRouteDetails{Route: withoutSource(r)}) })
	})
	on(t, reads, func(c *call, q *ip.IPRouteLookupV2) *ip.IPRouteLookupV2Reply {
		e, rv := c.routeLookup(q.TableID, q.Prefix, q.Exact != 0)
		if rv != 0 {
			return &ip.IPRouteLookupV2Reply{Retval: rv}
		}
		return &ip.IPRouteLookupV2Reply{Route: e.api()}
	})
	on(t, reads, func(c *call, q *ip.IPRouteLookup) *ip.IPRouteLookupReply {
		e, rv := c.routeLookup(q.TableID, q.Prefix, q.Exact != 0)
		if rv != 0 {
			return &ip.IPRouteLookupReply{Retval: rv}
		}
		return &ip.IPRouteLookupReply{Route: withoutSource(e.api())}
	})
}

func (st *state) routeAddDel(q *ip.IPRouteAddDelV2, src source) (rv int32, stats uint32) {
	add, multi, prefix, in := q.IsAdd, q.IsMultipath, q.Route.Prefix, q.Route.Paths
	addr := netAddr(prefix.Address)
	t := st.ip.tables[family(addr)][q.Route.TableID]
	if t == nil {
		return rvNoSuchFIB, 0
	}
	paths := make([]path, len(in))
	for n := range in {
		if rv := st.decodePath(&in[n], &paths[n]); rv != 0 {
			return rv, 0
		}
	}
	bits := int(prefix.Len)
	if bits > addr.BitLen() {
		return rvPrefixLength, 0
	}
	shown := netip.PrefixFrom(addr, bits)
	if (multi || add) && len(paths) == 0 {
		return rvNoPaths, 0
	}
	switch {
	case !add && multi:
		t.removePaths(shown, src, paths)
		return 0, none
	case !add:
		t.unset(shown, src)
		return 0, none
	case multi:
		return 0, t.addPaths(shown, src, routeFlags(paths), paths).stats
	}
	return 0, t.set(shown, src, routeFlags(paths), paths).stats
}

// routeFlags returns the flags of a route: one that leaves through an interface without a next hop is attached, and neighbours refine it.
func routeFlags(paths []path) entryFlags {
	for n := range paths {
		switch paths[n].class() {
		case attachedOnly:
			return attached
		case receive:
			return local | connected
		}
	}
	return 0
}

// addPaths adds paths to a source's paths, and skips those that already exist.
func (f *fib) addPaths(shown netip.Prefix, src source, flags entryFlags, paths []path) *fibEntry {
	e := f.entry(shown)
	s := e.source(src)
	if s == nil {
		return f.set(shown, src, flags, paths)
	}
	all := slices.Clone(s.paths)
	for n := range paths {
		if !slices.ContainsFunc(s.paths, func(o path) bool { return o.compare(&paths[n]) == 0 }) {
			all = append(all, paths[n])
		}
	}
	return f.set(shown, src, s.flags|flags, all)
}

// removePaths removes paths from a source's paths; the last one removes the source.
func (f *fib) removePaths(prefix netip.Prefix, src source, paths []path) {
	e := f.entries[prefix.Masked()]
	if e == nil {
		return
	}
	s := e.source(src)
	if s == nil {
		return
	}
	left := slices.DeleteFunc(slices.Clone(s.paths), func(o path) bool {
		return slices.ContainsFunc(paths, func(p path) bool { return o.compare(&p) == 0 })
	})
	if len(left) == 0 {
		f.unset(prefix, src)
		return
	}
	f.set(e.shown, src, s.flags, left)
}

// decodePath implements fib_api_path_decode: the checks of VPP, in the same order.
func (st *state) decodePath(in *fib_types.FibPath, out *path) int32 {
	*out = path{kind: in.Type, proto: in.Proto, flags: in.Flags, ifx: none, weight: max(1, in.Weight), pref: in.Preference}
	if in.Proto > fib_types.FIB_API_PATH_NH_PROTO_BIER {
		return -1
	}
	fam := ip4
	if in.Proto == fib_types.FIB_API_PATH_NH_PROTO_IP6 {
		fam = ip6
	}
	out.nh = unspecified(fam)
	if in.NLabels > 0 {
		out.labels = slices.Clone(in.LabelStack[:min(int(in.NLabels), len(in.LabelStack))])
	}
	switch in.Type {
	case fib_types.FIB_API_PATH_TYPE_NORMAL, fib_types.FIB_API_PATH_TYPE_SOURCE_LOOKUP:
		return st.decodeNormal(in, out, fam)
	case fib_types.FIB_API_PATH_TYPE_DVR, fib_types.FIB_API_PATH_TYPE_INTERFACE_RX, fib_types.FIB_API_PATH_TYPE_DROP, fib_types.FIB_API_PATH_TYPE_LOCAL:
		out.ifx = in.SwIfIndex
		out.ifc = st.iface(interface_types.InterfaceIndex(in.SwIfIndex))
	case fib_types.FIB_API_PATH_TYPE_UDP_ENCAP, fib_types.FIB_API_PATH_TYPE_BIER_IMP:
		out.tag = in.Nh.ObjID
	case fib_types.FIB_API_PATH_TYPE_CLASSIFY:
		return int32(-65) // NO_SUCH_TABLE: the fake has no classify tables
	}
	return 0
}

func (st *state) decodeNormal(in *fib_types.FibPath, out *path, fam int) int32 {
	if in.Proto > fib_types.FIB_API_PATH_NH_PROTO_IP6 {
		out.ifx = in.SwIfIndex
		out.ifc = st.iface(interface_types.InterfaceIndex(in.SwIfIndex))
		return 0
	}
	if fam == ip6 {
		out.nh = netip.AddrFrom16(in.Nh.Address.XXX_UnionData)
	} else {
		out.nh = netip.AddrFrom4([4]byte(in.Nh.Address.XXX_UnionData[:4]))
	}
	if in.SwIfIndex == none {
		if out.table = st.ip.tables[fam][in.TableID]; out.table == nil {
			return rvNoSuchFIB
		}
		return 0
	}
	out.ifx = in.SwIfIndex
	if out.ifc = st.iface(interface_types.InterfaceIndex(in.SwIfIndex)); out.ifc == nil {
		return rvNoMatchingIf
	}
	return 0
}

// eachRoute visits the entries whose best source is src, or all entries if src is 0.
func (st *state) eachRoute(q ip.IPTable, src source, f func(ip.IPRouteV2)) {
	t := st.ip.tables[familyOf(q.IsIP6)][q.TableID]
	if t == nil {
		return
	}
	for _, e := range t.sorted() {
		if best, _ := e.best(); src == 0 || src == best {
			f(e.api())
		}
	}
}

func (st *state) routeLookup(table uint32, prefix ip_types.Prefix, exact bool) (*fibEntry, int32) {
	addr := netAddr(prefix.Address)
	t := st.ip.tables[family(addr)][table]
	if t == nil {
		return nil, rvNoSuchFIB
	}
	n := min(int(prefix.Len), addr.BitLen())
	if !exact {
		return t.longest(addr, n, nil), 0
	}
	if e := t.entries[netip.PrefixFrom(addr, n).Masked()]; e != nil {
		return e, 0
	}
	return nil, rvNoSuchEntry
}

// api returns the entry in the form of dumps and lookups.
func (e *fibEntry) api() ip.IPRouteV2 {
	src, paths := e.best()
	r := ip.IPRouteV2{TableID: e.table.id, StatsIndex: e.stats, Prefix: apiPrefix(e.shown), NPaths: uint8(len(paths)), Src: uint8(src)}
	for n := range paths {
		r.Paths = append(r.Paths, paths[n].api(e.shown))
	}
	return r
}

func (p *path) api(prefix netip.Prefix) fib_types.FibPath {
	out := fib_types.FibPath{SwIfIndex: p.ifx, Weight: p.weight, Preference: p.pref, Type: p.kind, Flags: p.flags, Proto: p.proto,
		NLabels: uint8(len(p.labels))}
	copy(out.LabelStack[:], p.labels)
	nh := p.nh
	if p.class() == attachedOnly && prefix.IsSingleIP() {
		nh = prefix.Addr() // VPP makes it a next hop on the link
	}
	out.Nh.Address = union(nh)
	if p.table != nil {
		out.TableID = p.table.id
	}
	if p.kind == kindLinkLocal {
		out.Type = fib_types.FIB_API_PATH_TYPE_NORMAL
	}
	return out
}

func withoutSource(r ip.IPRouteV2) ip.IPRoute {
	return ip.IPRoute{TableID: r.TableID, StatsIndex: r.StatsIndex, Prefix: r.Prefix, NPaths: r.NPaths, Paths: r.Paths}
}
