package vppfake_test

import (
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/nat44_ed"
)

func natTableScenarios() []scenario {
	return []scenario{{"nat_table", natTable}}
}

// natTable: NAT creates a table for a backend, with VPP's name. The API can lock the table but not name it; without that lock it is removed
// with the last mapping, together with all its routes. A table that the API deletes stays as long as NAT has a backend in it. (VPP logs this as
// a bug, and a table created later in the same place has the routes again. The fake does not do this, and this test does not check it.)
func natTable(s *script) {
	s.natOn()
	loop := uint32(s.loopUp())
	in1 := func(add bool) {
		if add {
			s.do(balanced(true, "10.9.0.3", tcpProto, out2in, 0, backend("10.1.0.2", 1, 1, 4), backend("10.1.0.3", 1, 1, 4)))
		} else {
			s.do(balanced(false, "10.9.0.3", tcpProto, out2in, 0))
		}
	}
	table := func(add bool, name string) {
		s.do(&ip.IPTableAddDelV2{IsAdd: add, CreateMfib: true, Table: ip.IPTable{TableID: 4, Name: name}})
	}
	look := func(what string) {
		s.note("%s", what)
		s.dump(&ip.IPTableDump{})
		s.routes(4, false)
	}
	in1(true)
	s.route(true, 4, "10.1.0.2/32", via("10.1.0.2", loop))
	look("a table of NAT's")
	in1(false)
	look("it goes with the mapping, and the route with it")
	in1(true)
	table(true, "ours")
	s.route(true, 4, "10.1.0.2/32", via("10.1.0.2", loop))
	in1(false)
	look("locked: it stays, under the name it had")
	in1(true)
	table(false, "")
	look("deleted: it stays with all routes")
	s.route(false, 4, "10.1.0.2/32", via("10.1.0.2", loop))
	in1(false)
	look("it goes with the mapping")
	table(true, "ours")
	in1(true)
	table(false, "")
	table(true, "theirs")
	in1(false)
	look("locked again: it stays, under the name it had")
	s.note("a mapping that is deleted as if it were an identity lets go of one backend only")
	in1(true)
	s.do(&nat44_ed.Nat44AddDelIdentityMapping{
		IPAddress: addr4("10.9.0.3"), Port: 80, Protocol: tcpProto, VrfID: 4, SwIfIndex: index(none),
	})
	table(false, "")
	look("deleted by the API, and still there")
}
