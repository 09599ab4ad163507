package vppfake_test

import (
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
)

// fibPath is the test notation of a path; the zero value looks up in table 0.
type fibPath struct {
	nh     string
	ifc    uint32 // 0: none
	table  uint32
	typ    fib_types.FibPathType
	weight uint8
	pref   uint8
	v6     bool
}

func via(nh string, ifc uint32) fibPath { return fibPath{nh: nh, ifc: ifc} }

func (p fibPath) api(v6 bool) fib_types.FibPath {
	out := fib_types.FibPath{SwIfIndex: none, TableID: p.table, Type: p.typ, Weight: p.weight, Preference: p.pref}
	if p.ifc != 0 {
		out.SwIfIndex = p.ifc
	}
	if v6 {
		out.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
	}
	if p.nh != "" {
		a := address(p.nh)
		out.Nh.Address = a.Un
		out.Proto = fib_types.FibPathNhProto(a.Af)
	}
	return out
}

func routePrefix(text string) ip_types.Prefix {
	p, err := ip_types.ParsePrefix(text)
	if err != nil {
		panic(err)
	}
	return p
}

func (s *script) routeMsg(add, multi bool, table uint32, prefix string, paths []fibPath) *ip.IPRouteAddDelV2 {
	p := routePrefix(prefix)
	q := &ip.IPRouteAddDelV2{IsAdd: add, IsMultipath: multi, Route: ip.IPRouteV2{TableID: table, Prefix: p, NPaths: uint8(len(paths))}}
	for _, path := range paths {
		q.Route.Paths = append(q.Route.Paths, path.api(p.Address.Af == ip_types.ADDRESS_IP6))
	}
	return q
}

func (s *script) route(add bool, table uint32, prefix string, paths ...fibPath) {
	s.do(s.routeMsg(add, false, table, prefix, paths))
}

func (s *script) multi(add bool, table uint32, prefix string, paths ...fibPath) {
	s.do(s.routeMsg(add, true, table, prefix, paths))
}

func (s *script) lookup(table uint32, prefix string, exact uint8) {
	s.do(&ip.IPRouteLookupV2{TableID: table, Exact: exact, Prefix: routePrefix(prefix)})
}

func routeScenarios() []scenario {
	return []scenario{
		{"route4", routes4},
		{"route6", routes6},
		{"route_multipath", multipath},
		{"route_recursive", recursive},
		{"route_interface", routeInterface},
		{"route_sources", routeSources},
		{"route_lookup", routeLookup},
	}
}

func routes4(s *script) {
	s.routes(0, false)
	i, j := s.loopUp(), s.loopUp()
	s.addr(i, "10.1.1.1/24")
	s.route(true, 0, "10.50.0.0/16", via("10.1.1.2", uint32(i)))
	s.route(true, 0, "10.50.0.0/16", via("10.1.1.2", uint32(i)))
	s.routes(0, false)
	s.note("replace")
	s.route(true, 0, "10.50.0.0/16", via("10.1.1.3", uint32(i)))
	s.routes(0, false)
	s.note("drop, local, attached, host bits, lookup in another table, unreachable")
	s.route(true, 0, "10.51.0.0/16", fibPath{typ: fib_types.FIB_API_PATH_TYPE_DROP})
	s.route(true, 0, "10.52.0.1/32", fibPath{typ: fib_types.FIB_API_PATH_TYPE_LOCAL})
	s.route(true, 0, "10.53.0.1/32", via("", uint32(j)))
	s.route(true, 0, "10.54.0.77/24", via("", uint32(j)))
	s.table(7, false)
	s.route(true, 0, "10.55.0.0/16", fibPath{table: 7})
	s.route(true, 7, "0.0.0.0/0", fibPath{table: 0})
	s.route(true, 0, "10.56.0.0/16", fibPath{typ: fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH})
	s.route(true, 0, "10.57.0.0/16", fibPath{typ: fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT})
	s.route(true, 0, "0.0.0.0/0", via("10.1.1.2", uint32(i)))
	s.routes(0, false)
	s.routes(7, false)
	s.dump(&ip.IPRouteDump{Table: ip.IPTable{TableID: 7}})
	s.note("errors")
	s.route(true, 0, "10.60.0.0/16")
	s.route(true, 99, "10.60.0.0/16", via("", uint32(i)))
	s.route(true, 0, "10.60.0.0/16", via("", 99))
	s.route(true, 0, "10.60.0.0/16", fibPath{table: 99})
	s.route(false, 0, "10.61.0.0/16")
	s.route(false, 99, "10.61.0.0/16")
	bad := s.routeMsg(true, false, 0, "10.61.0.0/16", []fibPath{via("", uint32(i))})
	bad.Route.Prefix.Len = 33
	s.do(bad)
	s.note("delete")
	for _, p := range []string{"10.50.0.0/16", "10.51.0.0/16", "10.52.0.1/32", "10.53.0.1/32", "10.54.0.0/24", "10.55.0.0/16", "10.56.0.0/16", "10.57.0.0/16", "0.0.0.0/0"} {
		s.route(false, 0, p)
	}
	s.routes(0, false)
	s.do(&ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Prefix: routePrefix("10.80.0.0/16"), NPaths: 1, Paths: []fib_types.FibPath{via("", uint32(i)).api(false)}}})
	s.do(&ip.IPRouteAddDel{IsAdd: false, Route: ip.IPRoute{Prefix: routePrefix("10.80.0.0/16"), NPaths: 0}})
	s.note("of another source: connected, default")
	s.route(false, 0, "10.1.1.0/24")
	s.route(false, 0, "10.1.1.1/32")
	s.route(false, 0, "0.0.0.0/0")
	s.routes(0, false)
}

func routes6(s *script) {
	i := s.loopUp()
	s.addr(i, "fd00:1::1/64")
	s.route(true, 0, "fd00:50::/32", via("fd00:1::2", uint32(i)))
	s.route(true, 0, "fd00:51::/32", fibPath{typ: fib_types.FIB_API_PATH_TYPE_DROP})
	s.route(true, 0, "fd00:53::1/128", via("", uint32(i)))
	s.table(7, true)
	s.route(true, 0, "fd00:55::/32", fibPath{table: 7})
	s.route(true, 7, "::/0", fibPath{table: 0})
	s.route(true, 0, "::/0", via("fd00:1::2", uint32(i)))
	s.routes(0, true)
	s.routes(7, true)
	s.lookup(0, "fd00:50::9/128", 0)
	s.lookup(0, "fd00:99::9/128", 0)
	s.note("IPv4 via IPv6")
	s.route(true, 0, "10.0.0.0/8", via("fd00:1::2", uint32(i)))
	s.routes(0, false)
	s.route(false, 0, "::/0")
	s.routes(0, true)
}

func multipath(s *script) {
	i, j := s.loopUp(), s.loopUp()
	s.addr(i, "10.1.1.1/24")
	s.addr(j, "10.1.2.1/24")
	a, b, c := via("10.1.1.2", uint32(i)), via("10.1.2.2", uint32(j)), via("10.1.1.3", uint32(i))
	s.route(true, 0, "10.50.0.0/16", a, b)
	s.routes(0, false)
	s.multi(true, 0, "10.50.0.0/16", c)
	s.lookup(0, "10.50.0.0/16", 1)
	s.multi(true, 0, "10.50.0.0/16", c)
	s.lookup(0, "10.50.0.0/16", 1)
	heavy := c
	heavy.weight = 9
	s.multi(true, 0, "10.50.0.0/16", heavy)
	s.lookup(0, "10.50.0.0/16", 1)
	s.multi(false, 0, "10.50.0.0/16", a)
	s.lookup(0, "10.50.0.0/16", 1)
	s.multi(false, 0, "10.50.0.0/16", a)
	s.lookup(0, "10.50.0.0/16", 1)
	s.multi(false, 0, "10.50.0.0/16", b)
	s.multi(false, 0, "10.50.0.0/16", heavy)
	s.lookup(0, "10.50.0.0/16", 1)
	s.routes(0, false)
	s.multi(true, 0, "10.51.0.0/16", a)
	s.multi(true, 0, "10.51.0.0/16")
	backup := b
	backup.pref = 1
	s.multi(true, 0, "10.51.0.0/16", backup)
	s.lookup(0, "10.51.0.0/16", 1)
	s.note("same path twice in one request")
	s.route(true, 0, "10.52.0.0/16", a, a)
	s.lookup(0, "10.52.0.0/16", 1)
	s.note("no order in the request")
	s.route(true, 0, "10.53.0.0/16", c, b, a)
	s.lookup(0, "10.53.0.0/16", 1)
}

func recursive(s *script) {
	i := s.loopUp()
	s.addr(i, "10.1.1.1/24")
	s.route(true, 0, "10.50.0.0/16", via("10.60.0.1", 0))
	s.routes(0, false)
	s.route(true, 0, "10.60.0.0/24", via("10.1.1.2", uint32(i)))
	s.routes(0, false)
	s.lookup(0, "10.50.1.1/32", 0)
	s.route(false, 0, "10.50.0.0/16")
	s.routes(0, false)
	s.note("via a neighbour's address without interface")
	s.route(true, 0, "10.70.0.0/16", via("10.1.1.9", 0))
	s.routes(0, false)
	s.route(false, 0, "10.70.0.0/16")
	s.routes(0, false)
}

func routeInterface(s *script) {
	i := s.loopUp()
	s.addr(i, "10.1.1.1/24")
	s.route(true, 0, "10.50.0.0/16", via("10.1.1.2", uint32(i)))
	s.route(true, 0, "10.51.0.1/32", via("", uint32(i)))
	s.note("interface down")
	s.down(i)
	s.routes(0, false)
	s.lookup(0, "10.50.1.1/32", 0)
	s.up(i)
	s.routes(0, false)
	s.note("interface deleted under the route")
	s.do(&interfaces.DeleteLoopback{SwIfIndex: i})
	s.routes(0, false)
	s.lookup(0, "10.50.1.1/32", 0)
	s.note("another interface gets the index")
	s.loopUp()
	s.routes(0, false)
	s.route(false, 0, "10.50.0.0/16")
	s.route(false, 0, "10.51.0.1/32")
	s.routes(0, false)
}

func routeSources(s *script) {
	s.sources()
	i := s.loopUp()
	s.addr(i, "10.1.1.1/24")
	s.note("a route on top of a connected prefix")
	s.route(true, 0, "10.1.1.0/24", via("10.1.1.2", uint32(i)))
	s.route(true, 0, "10.1.1.1/32", fibPath{typ: fib_types.FIB_API_PATH_TYPE_DROP})
	s.routes(0, false)
	s.delAddr(i, "10.1.1.1/24")
	s.routes(0, false)
	s.addr(i, "10.1.1.1/24")
	s.routes(0, false)
	s.note("a route on top of a neighbour")
	s.neighbor(true, i, "10.1.1.9", "02:00:00:00:00:09", ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC)
	s.route(true, 0, "10.1.1.9/32", via("10.1.1.9", uint32(i)))
	s.routes(0, false)
	s.dump(&ip.IPRouteV2Dump{Src: 8, Table: ip.IPTable{}})
	s.dump(&ip.IPRouteV2Dump{Src: 4, Table: ip.IPTable{}})
	s.dump(&ip.IPRouteV2Dump{Src: 99, Table: ip.IPTable{}})
	s.route(false, 0, "10.1.1.9/32")
	s.routes(0, false)
	s.note("a source of our own, between API and CLI")
	own := &fib.FibSourceAddReply{}
	if err := s.conn.Invoke(s.t.Context(), &fib.FibSourceAdd{Src: fib.FibSource{Priority: 100, Name: "ours"}}, own); err != nil {
		s.t.Fatal(err)
	}
	s.route(true, 0, "10.77.0.0/16", via("", uint32(i)))
	q := s.routeMsg(true, false, 0, "10.77.0.0/16", []fibPath{{typ: fib_types.FIB_API_PATH_TYPE_DROP}})
	q.Route.Src = own.ID
	reply := &ip.IPRouteAddDelV2Reply{}
	if err := s.conn.Invoke(s.t.Context(), q, reply); err != nil {
		s.t.Fatal(err)
	}
	found := &ip.IPRouteLookupV2Reply{}
	if err := s.conn.Invoke(s.t.Context(), &ip.IPRouteLookupV2{Exact: 1, Prefix: routePrefix("10.77.0.0/16")}, found); err != nil {
		s.t.Fatal(err)
	}
	s.line("own source wins: %v %v %v", own.Retval == 0 && reply.Retval == 0, found.Route.Src == own.ID, found.Route.Paths[0].Type)
}

// sources records VPP's own sources; those of plugins depend on the loaded plugins.
func (s *script) sources() {
	var lines []string
	for _, d := range s.collect(&fib.FibSourceDump{}) {
		if src := d.(*fib.FibSourceDetails).Src; src.ID < 22 {
			lines = append(lines, fmt.Sprintf("  %2d %s priority %d", src.ID, src.Name, src.Priority))
		}
	}
	slices.Sort(lines)
	s.line("fib_source_dump\n%s", strings.Join(lines, "\n"))
}

func routeLookup(s *script) {
	i := s.loopUp()
	s.addr(i, "10.1.1.1/24")
	s.route(true, 0, "10.0.0.0/8", via("10.1.1.2", uint32(i)))
	s.route(true, 0, "10.50.0.0/16", via("10.1.1.3", uint32(i)))
	s.route(true, 0, "10.50.7.7/32", fibPath{typ: fib_types.FIB_API_PATH_TYPE_DROP})
	for _, p := range []string{"10.50.7.7/32", "10.50.7.8/32", "10.51.0.1/32", "10.1.1.1/32", "10.1.1.77/32", "11.0.0.1/32", "224.0.0.1/32", "255.255.255.255/32", "10.50.0.0/24", "10.50.0.0/16", "10.50.0.0/12"} {
		s.lookup(0, p, 0)
	}
	for _, p := range []string{"10.50.7.7/32", "10.50.7.8/32", "10.50.0.0/16"} {
		s.lookup(0, p, 1)
	}
	s.lookup(9, "10.50.7.7/32", 0)
	s.do(&ip.IPRouteLookup{Prefix: routePrefix("10.50.7.8/32")})
}
