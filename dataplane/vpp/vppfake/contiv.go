package vppfake

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
)

// contivState is the state of our own plugin (dataplane/vpp/plugin): its configuration and its connections. The README there has the rules.
type contivState struct {
	config    contiv.ContivConfigSet // zeros replaced by defaults
	max       int                    // connections per family
	endpoints map[uint32]*contivEndpoint
	networks  map[netip.Prefix]contiv.ContivClass
	snats     map[uint32]*contiv.ContivSnatDetails
	services  map[uint64]*contivService
	frontends map[contivPlace]*contivFrontend
	ranges    map[contivRange]bool
	policy    contivPolicies
	conns     contivConns
}

// contivRange is one prefix of a set.
type contivRange struct {
	set    uint64
	prefix netip.Prefix
}

// contivPlace is the key of a frontend; the frontend of a whole address has neither protocol nor port.
type contivPlace struct {
	at    netip.AddrPort
	proto uint8
}

// contivEndpoint is an interface that the plugin manages.
type contivEndpoint struct {
	set              *contiv.ContivEndpointSet
	addrs            map[netip.Addr]bool
	answers          [2]*fib // by family: the table for replies to clients behind a HOST other than the host itself; nil: none
	connections      [2]int
	spoofed, refused uint64
	unjudged         time.Time // of the last UDP packet to or from the pod that passed while the pod had no policy
}

type contivFrontend struct {
	set *contiv.ContivFrontendAddDel
	new uint64
}

// contivService is an ordered set of backends; for undefined ones only the name is stored.
type contivService struct {
	name     string
	flags    contiv.ContivServiceFlags
	backends []*contivBackend
	emptying time.Time // time at which the removal of its last backend was requested; zero: it was not
}

// takers returns the backends that get new connections: those that are not kept; all if there is no such backend.
func (s *contivService) takers() []*contivBackend {
	out := slices.DeleteFunc(slices.Clone(s.backends), func(b *contivBackend) bool { return b.kept })
	if len(out) == 0 {
		return s.backends
	}
	return out
}

type contivBackend struct {
	service uint64
	end     netip.AddrPort
	masq    bool
	kept    bool // gets no new connections while the service has a backend that is not kept
	gone    bool
	conns   int
}

const (
	contivMaxSNAT      = 1024
	contivMaxAddresses = 32
	contivMaxTimeout   = 30 * 86400
	contivMaxAffinity  = 86400
)

func (c *contivState) start(connections int) {
	c.max = cmp.Or(connections, 262144)
	c.setConfig(&contiv.ContivConfigSet{TunnelPorts: make([]uint16, 4)})
	c.endpoints, c.networks = map[uint32]*contivEndpoint{}, map[netip.Prefix]contiv.ContivClass{}
	c.snats, c.services = map[uint32]*contiv.ContivSnatDetails{}, map[uint64]*contivService{}
	c.frontends, c.ranges = map[contivPlace]*contivFrontend{}, map[contivRange]bool{}
	c.policy.start()
	c.conns.start()
}

// setConfig replaces zeros by the defaults.
func (c *contivState) setConfig(q *contiv.ContivConfigSet) {
	s := *q
	for _, d := range []struct {
		field *uint32
		value uint32
	}{
		{&s.EndpointConnections, 16384}, {&s.TCPEstablished, 86400}, {&s.TCPTransitory, 60}, {&s.UDP, 30}, {&s.UDPStream, 180},
		{&s.ICMP, 30}, {&s.Sctp, 210},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	s.TunnelPorts = slices.Clone(q.TunnelPorts)
	c.config = s
}

// registerContiv registers the messages if the plugin is loaded.
func (c Config) registerContiv(t *table) {
	if !c.Plugin {
		return
	}
	on(t, reads, func(*call, *contiv.ContivPluginGetVersion) *contiv.ContivPluginGetVersionReply {
		var v contiv.ContivPluginGetVersionReply
		_, _ = fmt.Sscanf(cmp.Or(c.PluginVersion, contiv.APIVersion), "%d.%d.%d", &v.Major, &v.Minor, &v.Patch)
		return &v
	})
	on(t, writes, contivConfigSet)
	on(t, reads, contivConfigGet)
	on(t, writes, contivEndpointSet)
	on(t, writes, contivEndpointDel)
	dump(t, contivEndpointDump)
	on(t, writes, contivNetworkAddDel)
	dump(t, contivNetworkDump)
	on(t, writes, contivSnatAddDel)
	dump(t, contivSnatDump)
	registerContivServices(t)
	registerContivConnections(t)
	registerContivPolicy(t)
}

func contivConfigSet(c *call, q *contiv.ContivConfigSet) *contiv.ContivConfigSetReply {
	for _, seconds := range []uint32{q.TCPEstablished, q.TCPTransitory, q.UDP, q.UDPStream, q.ICMP, q.Sctp} {
		if seconds > contivMaxTimeout {
			return &contiv.ContivConfigSetReply{Retval: rvInvalidValue}
		}
	}
	c.contiv.setConfig(q)
	return &contiv.ContivConfigSetReply{}
}

func contivConfigGet(c *call, _ *contiv.ContivConfigGet) *contiv.ContivConfigGetReply {
	s := &c.contiv.config
	return &contiv.ContivConfigGetReply{
		ConnectionsMax: uint32(c.contiv.max), EndpointConnections: s.EndpointConnections, TunnelPorts: s.TunnelPorts,
		TCPEstablished: s.TCPEstablished, TCPTransitory: s.TCPTransitory, UDP: s.UDP, UDPStream: s.UDPStream, ICMP: s.ICMP,
		Sctp: s.Sctp,
	}
}

func contivEndpointSet(c *call, q *contiv.ContivEndpointSet) *contiv.ContivEndpointSetReply {
	refuse := func(rv int32) *contiv.ContivEndpointSetReply { return &contiv.ContivEndpointSetReply{Retval: rv} }
	if c.iface(q.SwIfIndex) == nil {
		return refuse(rvInvalidSwIfIndex)
	}
	e := &contivEndpoint{set: q, addrs: map[netip.Addr]bool{}}
	if q.Role < contiv.CONTIV_ROLE_API_POD || q.Role > contiv.CONTIV_ROLE_API_OVERLAY || q.Egress >= contivMaxSNAT ||
		len(q.Addresses) > contivMaxAddresses || q.Table != 0 && q.Role != contiv.CONTIV_ROLE_API_HOST {
		return refuse(rvInvalidValue)
	}
	for _, a := range q.Addresses {
		addr, ok := contivAddr(a)
		if !ok {
			return refuse(rvInvalidValue)
		}
		e.addrs[addr] = true
	}
	if q.Table != 0 {
		for fam := range e.answers {
			if e.answers[fam] = c.ip.tables[fam][q.Table]; e.answers[fam] == nil {
				return refuse(rvNoSuchFIB)
			}
		}
	}
	e.hold(1)
	if old := c.contiv.endpoints[uint32(q.SwIfIndex)]; old != nil {
		old.hold(-1)
		e.connections, e.spoofed, e.refused, e.unjudged = old.connections, old.spoofed, old.refused, old.unjudged
	}
	c.contiv.endpoints[uint32(q.SwIfIndex)] = e
	c.contiv.policy.epoch++
	return refuse(0)
}

// hold adds n to the references that the endpoint has to its reply tables. A table exists as long as it has references.
func (e *contivEndpoint) hold(n int) {
	for _, t := range e.answers {
		if t != nil {
			t.refs += n
			t.freeIfUnused()
		}
	}
}

func contivEndpointDel(c *call, q *contiv.ContivEndpointDel) *contiv.ContivEndpointDelReply {
	switch {
	case c.iface(q.SwIfIndex) == nil:
		return &contiv.ContivEndpointDelReply{Retval: rvInvalidSwIfIndex}
	case c.contiv.endpoints[uint32(q.SwIfIndex)] == nil:
		return &contiv.ContivEndpointDelReply{Retval: rvNoSuchEntry}
	}
	c.contiv.dropEndpoint(uint32(q.SwIfIndex))
	return &contiv.ContivEndpointDelReply{}
}

// dropEndpoint removes an endpoint and ends its connections.
func (c *contivState) dropEndpoint(ifx uint32) {
	if e := c.endpoints[ifx]; e != nil {
		e.hold(-1)
	}
	delete(c.endpoints, ifx)
	c.policy.removeEndpoint(ifx)
	for _, conn := range c.conns.sorted() {
		if conn.ifx == ifx {
			c.end(conn)
		}
	}
}

func contivEndpointDump(c *call, _ *contiv.ContivEndpointDump, send func(*contiv.ContivEndpointDetails)) {
	c.contiv.sweep(c.now())
	for _, ifx := range slices.Sorted(maps.Keys(c.contiv.endpoints)) {
		e := c.contiv.endpoints[ifx]
		send(&contiv.ContivEndpointDetails{
			SwIfIndex: interface_types.InterfaceIndex(ifx), Role: e.set.Role, Name: e.set.Name, Egress: e.set.Egress,
			MaxConnections: e.set.MaxConnections, Connections4: uint32(e.connections[ip4]), Connections6: uint32(e.connections[ip6]),
			Spoofed: e.spoofed, Refused: e.refused, Table: e.set.Table, NAddresses: uint8(len(e.set.Addresses)), Addresses: e.set.Addresses,
		})
	}
}

// contivAddr converts an address; ok is false if its family is invalid or the address is unspecified.
func contivAddr(a ip_types.Address) (netip.Addr, bool) {
	if a.Af > ip_types.ADDRESS_IP6 {
		return netip.Addr{}, false
	}
	addr := netAddr(a)
	return addr, !addr.IsUnspecified()
}

// contivPrefix converts a prefix; ok is false if it is invalid or has bits set behind its length.
func contivPrefix(p ip_types.Prefix) (netip.Prefix, bool) {
	if p.Address.Af > ip_types.ADDRESS_IP6 {
		return netip.Prefix{}, false
	}
	out := netip.PrefixFrom(netAddr(p.Address), int(p.Len))
	return out, out.IsValid() && out == out.Masked()
}

func contivNetworkAddDel(c *call, q *contiv.ContivNetworkAddDel) *contiv.ContivNetworkAddDelReply {
	p, ok := contivPrefix(q.Prefix)
	rv := int32(0)
	switch _, there := c.contiv.networks[p]; {
	case !ok, q.IsAdd && q.AddressClass != contiv.CONTIV_CLASS_API_POD && q.AddressClass != contiv.CONTIV_CLASS_API_NODE:
		rv = rvInvalidValue
	case q.IsAdd:
		c.contiv.networks[p] = q.AddressClass
	case !there:
		rv = rvNoSuchEntry
	default:
		delete(c.contiv.networks, p)
	}
	return &contiv.ContivNetworkAddDelReply{Retval: rv}
}

func contivNetworkDump(c *call, _ *contiv.ContivNetworkDump, send func(*contiv.ContivNetworkDetails)) {
	for p, class := range c.contiv.networks {
		send(&contiv.ContivNetworkDetails{Prefix: apiPrefix(p), AddressClass: class})
	}
}

// known reports whether a network contains the address.
func (c *contivState) known(a netip.Addr) bool {
	for p := range c.networks {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func contivSnatAddDel(c *call, q *contiv.ContivSnatAddDel) *contiv.ContivSnatAddDelReply {
	low, high := cmp.Or(q.PortLow, 32768), cmp.Or(q.PortHigh, 65535)
	rv := int32(0)
	switch {
	case q.ID >= contivMaxSNAT, q.IsAdd && low > high:
		rv = rvInvalidValue
	case q.IsAdd:
		c.contiv.snats[q.ID] = &contiv.ContivSnatDetails{
			ID: q.ID, Name: q.Name, IP4: q.IP4, IP6: q.IP6, PortLow: low, PortHigh: high,
		}
	case c.contiv.snats[q.ID] == nil:
		rv = rvNoSuchEntry
	default:
		delete(c.contiv.snats, q.ID)
	}
	return &contiv.ContivSnatAddDelReply{Retval: rv}
}

func contivSnatDump(c *call, _ *contiv.ContivSnatDump, send func(*contiv.ContivSnatDetails)) {
	for _, id := range slices.Sorted(maps.Keys(c.contiv.snats)) {
		send(c.contiv.snats[id])
	}
}

func dumpContiv(st *state, d *dumper) {
	c := &st.contiv
	if !st.cfg.Plugin {
		return
	}
	d.add("contiv config %+v", c.config)
	for ifx, e := range c.endpoints {
		d.add("contiv endpoint %s: role %d %q %v egress %d max %d table %d", st.ifs.all[ifx].label(), e.set.Role, e.set.Name,
			slices.SortedFunc(maps.Keys(e.addrs), netip.Addr.Compare), e.set.Egress, e.set.MaxConnections, e.set.Table)
	}
	for p, class := range c.networks {
		d.add("contiv network %s %d", p, class)
	}
	for _, s := range c.snats {
		d.add("contiv source NAT %+v", *s)
	}
	c.sweep(st.now())
	for id, s := range c.services {
		d.add("contiv service %x %q flags %d", id, s.name, s.flags)
		for _, b := range s.backends {
			d.add("contiv backend %s of %x, masquerade %t, kept %t", b.end, id, b.masq, b.kept)
		}
	}
	for at, f := range c.frontends {
		d.add("contiv frontend %s proto %d: %q in %+v out %+v ranges %x affinity %x %d", at.at, at.proto, f.set.Name,
			f.set.InCluster, f.set.Outside, f.set.Ranges, f.set.AffinityGroup, f.set.AffinityTimeout)
	}
	c.policy.dump(st, d)
	for r := range c.ranges {
		d.add("contiv range %x %s", r.set, r.prefix)
	}
}
