package vppfake

import (
	"net/netip"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

// nat is the state of NAT44, endpoint-dependent (the plugin nat44-ed), of a VPP without worker threads.
type nat struct {
	on         bool
	limit      uint32 // sessions
	inside     *fib
	outside    *fib
	vrfs       [2]uint32 // of inside and outside, as requested
	forwarding bool
	timeouts   nat_types.NatTimeouts
	buckets    uint32

	pool  []natAddress
	twice []natAddress // for the source of twice-NAT sessions

	ports   []*natPort // in, out or both
	outputs []*natPort // with output feature
	fibs    []natFIB   // tables with NAT interfaces, with the number of roles
	outFibs []natFIB   // tables with outside interfaces, in VPP's order
	regs    []natReg
	reass   map[natReass]int

	mappings slots[natMapping]
	byExt    map[natExt]*natMapping
	byLocal  map[natLocal]*natMapping
	resolve  []*natResolve

	sessions slots[natSession]
	flows    map[natKey]*natSession
	affinity map[natClient]natSticky
	lists    int    // number of client lists, one for each mapping with affinity ever created
	seed     uint32 // of random_u32
}

// natPort is an interface with NAT.
type natPort struct {
	ifx     uint32
	in, out bool
}

// natFIB is a table with the number of its interfaces that NAT uses.
type natFIB struct {
	table *fib
	refs  int
}

// natReass counts the users of shallow reassembly on an interface, in one direction.
type natReass struct {
	ifx    uint32
	output bool
}

// Names of the features, on the arc of received or of sent unicast packets.
const (
	arcIn, arcOut   = "ip4-unicast", "ip4-output"
	featIn2out      = "nat-pre-in2out"
	featOut2in      = "nat-pre-out2in"
	featClassify    = "nat44-ed-classify"
	featOutput      = "nat-pre-in2out-output"
	featReass       = "ip4-sv-reassembly-feature"
	featReassOutput = "ip4-sv-reassembly-output-feature"
)

// defaultNATSessions is VPP's value for 0.
const defaultNATSessions = 63 * 1024

func (n *nat) start() {
	n.reass = map[natReass]int{}
	n.clear()
}

// clear removes the state that is lost when NAT is disabled.
func (n *nat) clear() {
	n.mappings, n.sessions = slots[natMapping]{}, slots[natSession]{}
	n.byExt, n.byLocal = map[natExt]*natMapping{}, map[natLocal]*natMapping{}
	n.flows, n.affinity = map[natKey]*natSession{}, map[natClient]natSticky{}
	n.resolve = nil
}

func registerNAT(t *table) {
	on(t, writes, natEnable)
	on(t, writes, func(c *call, q *nat44_ed.Nat44ForwardingEnableDisable) *nat44_ed.Nat44ForwardingEnableDisableReply {
		c.nat.forwarding = q.Enable
		if c.nat.on && !q.Enable {
			c.dropSessions(func(s *natSession) bool { return s.bypass })
		}
		return &nat44_ed.Nat44ForwardingEnableDisableReply{}
	})
	on(t, writes, func(c *call, q *nat44_ed.NatSetTimeouts) *nat44_ed.NatSetTimeoutsReply {
		c.nat.timeouts = nat_types.NatTimeouts{UDP: q.UDP, TCPEstablished: q.TCPEstablished, TCPTransitory: q.TCPTransitory,
			ICMP: q.ICMP}
		return &nat44_ed.NatSetTimeoutsReply{}
	})
	on(t, reads, natRunningConfig)
	dump(t, func(*call, *nat44_ed.NatWorkerDump, func(*nat44_ed.NatWorkerDetails)) {}) // without workers, or with one, none are listed
	on(t, writes, natFeature)
	dump(t, func(c *call, _ *nat44_ed.Nat44InterfaceDump, send func(*nat44_ed.Nat44InterfaceDetails)) {
		for _, p := range c.nat.ports {
			send(&nat44_ed.Nat44InterfaceDetails{SwIfIndex: interface_types.InterfaceIndex(p.ifx), Flags: p.flags()})
		}
	})
	on(t, writes, natOutputFeature)
	details := t.add(new(nat44_ed.Nat44EdOutputInterfaceDetails))
	on(t, reads, func(c *call, _ *nat44_ed.Nat44EdOutputInterfaceGet) *nat44_ed.Nat44EdOutputInterfaceGetReply {
		for _, p := range c.nat.outputs {
			c.send(details, &nat44_ed.Nat44EdOutputInterfaceDetails{SwIfIndex: interface_types.InterfaceIndex(p.ifx)})
		}
		return &nat44_ed.Nat44EdOutputInterfaceGetReply{Cursor: none}
	})
	on(t, writes, natAddressRange)
	dump(t, natAddressDump)
	registerNATMappings(t)
	registerNATSessions(t)
}

func (p *natPort) flags() (f nat_types.NatConfigFlags) {
	if p.in {
		f |= nat_types.NAT_IS_INSIDE
	}
	if p.out {
		f |= nat_types.NAT_IS_OUTSIDE
	}
	return f
}

func natEnable(c *call, q *nat44_ed.Nat44EdPluginEnableDisable) *nat44_ed.Nat44EdPluginEnableDisableReply {
	n := &c.nat
	var rv int32
	switch {
	case !q.Enable && !n.on:
		rv = rvAlreadyDisabled
	case !q.Enable:
		rv = c.natDisable()
	case q.Flags&(nat44_ed.NAT44_IS_STATIC_MAPPING_ONLY|nat44_ed.NAT44_IS_CONNECTION_TRACKING) != 0:
		rv = rvUnsupported
	case n.on:
		rv = rvAlreadyEnabled
	default:
		n.on, n.forwarding = true, false
		if n.limit = q.Sessions; n.limit == 0 {
			n.limit = defaultNATSessions
		}
		n.buckets = hashBuckets(n.limit)
		n.vrfs = [2]uint32{q.InsideVrf, q.OutsideVrf}
		n.inside, n.outside = c.lockTable(q.InsideVrf), c.lockTable(q.OutsideVrf)
		n.timeouts = nat_types.NatTimeouts{UDP: 300, TCPEstablished: 7440, TCPTransitory: 240, ICMP: 60}
	}
	return &nat44_ed.Nat44EdPluginEnableDisableReply{Retval: rv}
}

// natDisable disables NAT. VPP unlocks table 0 once for each remaining load-balancing mapping, although these mappings have never locked the
// table. This may free the default table: all packets are lost from then on, and the API returns 0. The fake crashes instead, so that a test
// detects the case.
func (c *call) natDisable() int32 {
	n := &c.nat
	for m := range n.mappings.all() {
		if m.lb {
			c.die("nat44_ed_plugin_enable_disable with load-balancing mappings: VPP frees table 0")
			return 0
		}
	}
	for _, a := range n.pool {
		c.natRegs(a.addr, false)
	}
	for m := range n.mappings.all() {
		c.natRegs(m.ext, false)
		c.unlockMapping(m)
	}
	for _, p := range append([]*natPort{}, n.ports...) {
		if p.in {
			c.delNATPort(p.ifx, true)
		}
		if p.out {
			c.delNATPort(p.ifx, false)
		}
	}
	for _, p := range append([]*natPort{}, n.outputs...) {
		c.delNATOutput(p.ifx)
	}
	for _, a := range append(n.pool, n.twice...) {
		c.unlockTable(a.table)
	}
	n.pool, n.twice = nil, nil
	n.clear()
	n.on, n.forwarding, n.limit, n.vrfs = false, false, 0, [2]uint32{}
	return 0
}

// hashBuckets implements nat_calc_bihash_buckets.
func hashBuckets(sessions uint32) uint32 {
	n := uint64(float64(sessions) / 2.5)
	low := uint64(1)
	for low*2 < n {
		low *= 2
	}
	if high := low * 2; high-n < n-low {
		return uint32(high)
	}
	return uint32(low)
}

func natRunningConfig(c *call, _ *nat44_ed.Nat44ShowRunningConfig) *nat44_ed.Nat44ShowRunningConfigReply {
	n := &c.nat
	return &nat44_ed.Nat44ShowRunningConfigReply{InsideVrf: n.vrfs[0], OutsideVrf: n.vrfs[1], Sessions: n.limit,
		TranslationBuckets: n.buckets, ForwardingEnabled: n.forwarding, IpfixLoggingEnabled: true, Timeouts: n.timeouts,
		Flags: nat44_ed.NAT44_IS_ENDPOINT_DEPENDENT}
}

// lockTable returns the IPv4 table with a lock on it, and creates it if there is none.
func (st *state) lockTable(id uint32) *fib {
	t := st.ip.tables[ip4][id]
	if t == nil {
		t = st.ip.newTable(ip4, id, "")
	}
	t.refs++
	return t
}

func (st *state) unlockTable(t *fib) {
	if t != nil {
		t.refs--
		t.freeIfUnused()
	}
}

// feature enables or disables a feature of an interface.
func (st *state) feature(ifx uint32, arc, name string, on bool) {
	key := featureKey{ifx, arc, name}
	if on {
		st.features[key] = true
	} else {
		delete(st.features, key)
	}
}

func (st *state) reassemble(ifx uint32, output, on bool) {
	key, arc, name := natReass{ifx, output}, arcIn, featReass
	if output {
		arc, name = arcOut, featReassOutput
	}
	if on {
		st.nat.reass[key]++
	} else {
		st.nat.reass[key]--
	}
	if st.nat.reass[key] <= 0 {
		delete(st.nat.reass, key)
	}
	st.feature(ifx, arc, name, st.nat.reass[key] > 0)
}

func findPort(list []*natPort, ifx uint32) *natPort {
	for _, p := range list {
		if p.ifx == ifx {
			return p
		}
	}
	return nil
}

func dumpNAT(st *state, d *dumper) {
	n := &st.nat
	if !n.on {
		return
	}
	d.add("nat44 sessions %d forwarding %v vrfs %v timeouts %v", n.limit, n.forwarding, n.vrfs, n.timeouts)
	for _, list := range []struct {
		what string
		all  []natAddress
	}{{"pool", n.pool}, {"twice-nat pool", n.twice}} {
		for _, a := range list.all {
			d.add("nat44 %s %s", list.what, a)
		}
	}
	for _, p := range n.ports {
		d.add("nat44 interface %s in %v out %v", st.ifs.all[p.ifx].label(), p.in, p.out)
	}
	for _, p := range n.outputs {
		d.add("nat44 interface %s output feature", st.ifs.all[p.ifx].label())
	}
	for m := range n.mappings.all() {
		d.add("nat44 mapping %s", m)
	}
	for _, r := range n.resolve {
		d.add("nat44 mapping of interface %s: %+v tag %q", st.ifs.all[r.ifx].label(), r.spec.local, r.spec.tag)
	}
}

// natFeatures returns the NAT features for packets received on an interface, in VPP's order.
func (st *state) natFeatures(ifx uint32) (names []string) {
	for _, name := range []string{featIn2out, featOut2in, featClassify} {
		if st.features[featureKey{ifx, arcIn, name}] {
			names = append(names, name)
		}
	}
	return names
}

// isNATFeature reports whether the walk implements the feature.
func isNATFeature(k featureKey) bool {
	switch k.feature {
	case featIn2out, featOut2in, featClassify, featReass:
		return k.arc == arcIn
	case featOutput, featReassOutput:
		return k.arc == arcOut
	}
	return false
}

func toIP4(a netip.Addr) ip_types.IP4Address { return a.As4() }

func fromIP4(a ip_types.IP4Address) netip.Addr { return netip.AddrFrom4(a) }
