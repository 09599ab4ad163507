package vppfake

import (
	"fmt"
	"net/netip"
	"strings"

	fib_api "go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/fib_types"
	interfaces_api "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
)

// ipState is the IP state of VPP: the tables, neighbours, proxy ARP.
type ipState struct {
	tables    [2]map[uint32]*fib
	sources   []fib_api.FibSource
	prio      [256]uint8
	seed      uint32 // of the table ids that VPP generates
	neighbors [2]map[neighborKey]*neighbor
	config    [2]neighborConfig
	proxies   []proxyRange
	proxyOn   map[uint32]bool // by interface index; VPP does not clear it when the interface is deleted
	dead      deadLists
	orphans   map[uint32]bool // indices of deleted interfaces that have left neighbours behind
}

func (s *ipState) start() {
	s.sources = builtinSources()
	for i := range s.prio {
		s.prio[i] = 255
	}
	for _, src := range s.sources {
		s.prio[src.ID] = src.Priority
	}
	s.proxyOn, s.orphans, s.dead = map[uint32]bool{}, map[uint32]bool{}, deadLists{}
	for family := range s.tables {
		s.tables[family] = map[uint32]*fib{}
		s.neighbors[family] = map[neighborKey]*neighbor{}
		s.config[family] = neighborConfig{max: 50000}
		s.newTable(family, 0, "")
	}
}

// builtinSources returns the FIB sources of a VPP with the plugins that a node loads (dataplane/vpp/vppplugins).
func builtinSources() []fib_api.FibSource {
	names := "invalid:255 special:0 classify:1 proxy:2 interface:3 SR:16 BIER:32 6RD:48 API:128 CLI:129 LISP:144 MAP:160 DHCP:176 " +
		"IPv6-proxy-nd:192 IPv6-nd:193 adjacency:208 mpls:224 attached_export:240 recursive-resolution:251 urpf-exempt:252 " +
		"default-route:253 interpose:254 path-mtu:16 nat-low:208 nat-hi:16"
	var out []fib_api.FibSource
	for id, word := range strings.Fields(names) {
		s := fib_api.FibSource{ID: uint8(id)}
		s.Name, _, _ = strings.Cut(word, ":")
		fmt.Sscanf(word[len(s.Name)+1:], "%d", &s.Priority) //nolint:errcheck // the text above
		out = append(out, s)
	}
	return out
}

// newTable returns a table with the entries that VPP adds to every table.
func (s *ipState) newTable(family int, id uint32, name string) *fib {
	if name == "" {
		name = fmt.Sprintf("ipv%d-VRF:%d", []int{4, 6}[family], id)
	}
	t := &fib{family: family, id: id, name: name, entries: map[netip.Prefix]*fibEntry{}, prio: &s.prio, dead: s.dead, hash: defaultFlowHash,
		onFree: func(t *fib) { delete(s.tables[t.family], t.id) }}
	s.tables[family][id] = t
	drop := func(prefix string, src source) {
		t.set(netip.MustParsePrefix(prefix), src, 0, []path{dropPath(family)})
	}
	if family == ip6 {
		drop("::/0", srcDefaultRoute)
		t.set(netip.MustParsePrefix("fe80::/10"), srcSpecial, 0, []path{linkLocalPath()})
		return t
	}
	drop("0.0.0.0/0", srcDefaultRoute)
	drop("0.0.0.0/32", srcDefaultRoute)
	drop("240.0.0.0/4", srcSpecial)
	drop("224.0.0.0/4", srcSpecial)
	drop("255.255.255.255/32", srcDefaultRoute)
	return t
}

func dropPath(family int) path {
	return path{kind: fib_types.FIB_API_PATH_TYPE_DROP, proto: fib_types.FibPathNhProto(family), nh: unspecified(family), ifx: none, weight: 1}
}

// linkLocalPath returns the path that sends link-local packets to the tables of the interfaces on which they were received; dumps show it as an
// empty path.
func linkLocalPath() path {
	return path{kind: kindLinkLocal, proto: fib_types.FIB_API_PATH_NH_PROTO_IP6, nh: unspecified(ip6), ifx: none, weight: 1}
}

// kindLinkLocal is not a type of the API.
const kindLinkLocal = fib_types.FibPathType(1000)

func registerTables(t *table) {
	on(t, writes, func(c *call, q *ip.IPTableAddDel) *ip.IPTableAddDelReply {
		c.tableAddDel(q.IsAdd, q.Table)
		return &ip.IPTableAddDelReply{}
	})
	on(t, writes, func(c *call, q *ip.IPTableAddDelV2) *ip.IPTableAddDelV2Reply {
		c.tableAddDel(q.IsAdd, q.Table)
		return &ip.IPTableAddDelV2Reply{}
	})
	on(t, writes, tableAllocate)
	on(t, writes, tableFlush)
	dump(t, func(c *call, _ *ip.IPTableDump, send func(*ip.IPTableDetails)) {
		for family, tables := range c.ip.tables {
			for _, id := range sortedKeys(tables) {
				send(&ip.IPTableDetails{Table: ip.IPTable{TableID: id, IsIP6: family == ip6, Name: tables[id].name}})
			}
		}
	})
	on(t, writes, setTable)
	on(t, writes, setFlowHash)
	on(t, reads, getTable)
	dump(t, func(c *call, _ *fib_api.FibSourceDump, send func(*fib_api.FibSourceDetails)) {
		for _, s := range c.ip.sources {
			send(&fib_api.FibSourceDetails{Src: s})
		}
	})
	on(t, writes, func(c *call, q *fib_api.FibSourceAdd) *fib_api.FibSourceAddReply {
		s := fib_api.FibSource{Priority: q.Src.Priority, ID: uint8(len(c.ip.sources)), Name: q.Src.Name}
		c.ip.sources = append(c.ip.sources, s)
		c.ip.prio[s.ID] = s.Priority
		return &fib_api.FibSourceAddReply{ID: s.ID}
	})
}

// tableAddDel adds or deletes a table. Adding a table twice and deleting a missing table succeed; table 0 can be neither added nor deleted.
func (st *state) tableAddDel(add bool, q ip.IPTable) {
	if q.TableID == 0 {
		return
	}
	family := familyOf(q.IsIP6)
	t := st.ip.tables[family][q.TableID]
	switch {
	case add && t == nil:
		st.ip.newTable(family, q.TableID, q.Name).api = true
	case add:
		t.api = true
	case t != nil:
		t.api = false
		t.freeIfUnused()
	}
}

func tableAllocate(c *call, q *ip.IPTableAllocate) *ip.IPTableAllocateReply {
	if q.Table.TableID == none {
		c.ip.seed = lcg(c.ip.seed)
		q.Table.TableID = c.ip.seed
	}
	c.tableAddDel(true, q.Table)
	return &ip.IPTableAllocateReply{Table: q.Table}
}

// tableFlush sets the table's interfaces down and deletes the entries that the API has added.
func tableFlush(c *call, q *ip.IPTableFlush) *ip.IPTableFlushReply {
	family := familyOf(q.Table.IsIP6)
	t := c.ip.tables[family][q.Table.TableID]
	if t == nil {
		return &ip.IPTableFlushReply{Retval: rvNoSuchFIB}
	}
	for _, i := range c.live() {
		if i.ip[family].table == t {
			c.setAdmin(i, false)
		}
	}
	for _, e := range t.sorted() {
		t.unset(e.prefix, srcAPI)
	}
	return &ip.IPTableFlushReply{}
}

func setTable(c *call, q *interfaces_api.SwInterfaceSetTable) *interfaces_api.SwInterfaceSetTableReply {
	i := c.iface(q.SwIfIndex)
	family := familyOf(q.IsIPv6)
	t := c.ip.tables[family][q.VrfID]
	var rv int32
	switch {
	case i == nil:
		rv = rvInvalidSwIfIndex
	case t == nil:
		rv = rvNoSuchFIB
	case len(c.addresses(i, family)) > 0:
		rv = rvAddressFound
	default:
		c.bind(i, family, t)
	}
	return &interfaces_api.SwInterfaceSetTableReply{Retval: rv}
}

// defaultFlowHash is the flow hash of a new table.
const defaultFlowHash = ip.IP_API_V2_FLOW_HASH_SRC_IP | ip.IP_API_V2_FLOW_HASH_DST_IP | ip.IP_API_V2_FLOW_HASH_SRC_PORT |
	ip.IP_API_V2_FLOW_HASH_DST_PORT | ip.IP_API_V2_FLOW_HASH_PROTO | ip.IP_API_V2_FLOW_HASH_FLOW_LABEL

func setFlowHash(c *call, q *ip.SetIPFlowHashV3) *ip.SetIPFlowHashV3Reply {
	if q.Af != ip_types.ADDRESS_IP4 && q.Af != ip_types.ADDRESS_IP6 {
		return &ip.SetIPFlowHashV3Reply{Retval: rvAddressFamily}
	}
	t := c.ip.tables[familyOf(q.Af == ip_types.ADDRESS_IP6)][q.TableID]
	if t == nil {
		return &ip.SetIPFlowHashV3Reply{Retval: rvNoSuchFIB}
	}
	t.hash = q.FlowHashConfig
	return &ip.SetIPFlowHashV3Reply{}
}

// bind binds an interface to a table.
func (st *state) bind(i *iface, family int, t *fib) {
	old := i.ip[family].table
	i.ip[family].table = t
	t.refs++
	if family == ip4 && old != nil {
		st.rebindNAT(i, old, t)
	}
	if old != nil {
		old.refs--
		old.freeIfUnused()
	}
}

func getTable(c *call, q *interfaces_api.SwInterfaceGetTable) *interfaces_api.SwInterfaceGetTableReply {
	i := c.iface(q.SwIfIndex)
	if i == nil {
		return &interfaces_api.SwInterfaceGetTableReply{Retval: rvInvalidSwIfIndex, VrfID: none}
	}
	return &interfaces_api.SwInterfaceGetTableReply{VrfID: i.ip[familyOf(q.IsIPv6)].table.id}
}
