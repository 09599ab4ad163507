package vppfake

import (
	"fmt"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pg"
)

// registerPG registers packet-generator interfaces: ports without a host, for tests of packets.
func registerPG(t *table) {
	on(t, writes, func(c *call, q *pg.PgCreateInterface) *pg.PgCreateInterfaceReply {
		return &pg.PgCreateInterfaceReply{SwIfIndex: c.createPG(uint32(q.InterfaceID))}
	})
	on(t, writes, func(c *call, q *pg.PgCreateInterfaceV3) *pg.PgCreateInterfaceV3Reply {
		if q.Mode != pg.PG_API_MODE_ETHERNET {
			c.refuse(q, "packet-generator interface in "+q.Mode.String())
			return &pg.PgCreateInterfaceV3Reply{Retval: rvUnimplemented}
		}
		return &pg.PgCreateInterfaceV3Reply{SwIfIndex: c.createPG(uint32(q.InterfaceID))}
	})
	on(t, writes, func(c *call, q *pg.PgDeleteInterface) *pg.PgDeleteInterfaceReply {
		i := c.iface(q.SwIfIndex)
		if i == nil || i.hw.devType != "pg" {
			return &pg.PgDeleteInterfaceReply{Retval: rvInvalidSwIfIndex}
		}
		c.delete(i.hw.owner)
		return &pg.PgDeleteInterfaceReply{}
	})
}

// createPG returns interface pgN, and creates it if it does not exist.
func (st *state) createPG(id uint32) interface_types.InterfaceIndex {
	name := fmt.Sprintf("pg%d", id)
	if i := st.named(name); i != nil && i.hw.devType == "pg" {
		return indexOf(i)
	}
	return indexOf(st.create(&iface{name: name, hw: &hardware{devType: "pg", ethernet: true, mac: st.randomMAC(),
		driver: driver{linkFollowsAdmin: true, flags: true}}}))
}
