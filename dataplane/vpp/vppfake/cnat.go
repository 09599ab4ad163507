package vppfake

import (
	"net/netip"

	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
)

// cnatState is the plugin cnat: translations of addresses and ports, in features of interfaces.
type cnatState struct {
	translations map[uint32]*cnatTranslation
	free         []uint32 // IDs; the one freed last is used first
	byEnd        map[cnatVIP]*cnatTranslation
	exclusive    map[netip.Addr]bool // VIPs, by what the first translation of each said

	policy     cnat.CnatSnatPolicies
	snat       [2]netip.Addr // by family
	snatIf     uint32        // none once addresses have been set
	pods       map[uint32]bool
	hosts      map[uint32]bool
	included   [2]map[uint32]bool
	sessions   map[cnatFlow]*cnatSession
	portsTaken map[cnatPort]bool
}

// cnatVIP is what there is one translation for.
type cnatVIP struct {
	end   netip.AddrPort
	proto uint8
}

type cnatTranslation struct {
	id     uint32
	vip    cnatVIP
	lb     cnat.CnatLbType
	sticky bool // by the client's address alone
	paths  []cnat.CnatEndpointTuple
}

// cnatPort is a port for translated sources.
type cnatPort struct {
	proto uint8
	port  uint16
}

// Flags of paths that VPP itself uses: a path that leads somewhere, one that is not translated, one that is disabled.
const (
	cnatPathActive = 1
	cnatPathUsed   = 1<<0 | 1<<1 | 1<<7
)

func (c *cnatState) start() {
	c.translations, c.byEnd = map[uint32]*cnatTranslation{}, map[cnatVIP]*cnatTranslation{}
	c.exclusive, c.pods, c.hosts = map[netip.Addr]bool{}, map[uint32]bool{}, map[uint32]bool{}
	c.included = [2]map[uint32]bool{{}, {}}
	c.sessions, c.portsTaken = map[cnatFlow]*cnatSession{}, map[cnatPort]bool{}
	c.snat = [2]netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
}

func registerCnat(t *table) {
	on(t, writes, cnatUpdate).counted(32, 49)
	on(t, writes, func(c *call, q *cnat.CnatTranslationDel) *cnat.CnatTranslationDelReply {
		tr := c.cnat.translations[q.ID]
		if tr == nil {
			return &cnat.CnatTranslationDelReply{Retval: rvNoSuchEntry}
		}
		c.cnat.remove(tr)
		return &cnat.CnatTranslationDelReply{}
	})
	dump(t, cnatDump)
	dump(t, cnatSessionDump)
	on(t, writes, func(c *call, _ *cnat.CnatSessionPurge) *cnat.CnatSessionPurgeReply {
		clear(c.cnat.sessions)
		clear(c.cnat.portsTaken)
		for _, tr := range c.cnat.translations {
			c.cnat.remove(tr) // yes, these too
		}
		return &cnat.CnatSessionPurgeReply{}
	})
	on(t, writes, func(c *call, q *cnat.CnatSetSnatAddresses) *cnat.CnatSetSnatAddressesReply {
		if uint32(q.SwIfIndex) != none {
			c.refuse(q, "no addresses of interfaces")
			return &cnat.CnatSetSnatAddressesReply{Retval: rvUnimplemented}
		}
		c.cnat.snatIf = none
		c.cnat.snat = [2]netip.Addr{netip.AddrFrom4(q.SnatIP4), netip.AddrFrom16(q.SnatIP6)}
		return &cnat.CnatSetSnatAddressesReply{}
	})
	on(t, reads, func(c *call, _ *cnat.CnatGetSnatAddresses) *cnat.CnatGetSnatAddressesReply {
		return &cnat.CnatGetSnatAddressesReply{SnatIP4: c.cnat.snat[ip4].As4(), SnatIP6: c.cnat.snat[ip6].As16(),
			SwIfIndex: interface_types.InterfaceIndex(c.cnat.snatIf)}
	})
	on(t, writes, func(c *call, q *cnat.CnatSetSnatPolicy) *cnat.CnatSetSnatPolicyReply {
		if q.Policy > cnat.CNAT_POLICY_K8S {
			return &cnat.CnatSetSnatPolicyReply{Retval: 1}
		}
		c.cnat.policy = q.Policy
		return &cnat.CnatSetSnatPolicyReply{}
	})
	on(t, writes, cnatPolicyIf)
}

func cnatPolicyIf(c *call, q *cnat.CnatSnatPolicyAddDelIf) *cnat.CnatSnatPolicyAddDelIfReply {
	if c.iface(q.SwIfIndex) == nil {
		return &cnat.CnatSnatPolicyAddDelIfReply{Retval: rvInvalidSwIfIndex}
	}
	n := &c.cnat
	maps := []map[uint32]bool{n.included[ip4], n.included[ip6], n.pods, n.hosts}
	if int(q.Table) >= len(maps) {
		return &cnat.CnatSnatPolicyAddDelIfReply{Retval: rvInvalidValue}
	}
	if q.IsAdd != 0 {
		maps[q.Table][uint32(q.SwIfIndex)] = true
	} else {
		delete(maps[q.Table], uint32(q.SwIfIndex))
	}
	return &cnat.CnatSnatPolicyAddDelIfReply{}
}

func cnatUpdate(c *call, q *cnat.CnatTranslationUpdate) *cnat.CnatTranslationUpdateReply {
	t := &q.Translation
	if len(t.Paths) == 0 {
		c.die("cnat_translation_update without paths")
		return nil
	}
	if uint32(t.Vip.SwIfIndex) != none || t.Flags != 0 {
		c.refuse(q, "translation of an interface's address, or with flags")
		return &cnat.CnatTranslationUpdateReply{Retval: rvUnimplemented}
	}
	for _, p := range t.Paths {
		if p.Flags&cnatPathUsed != 0 || uint32(p.DstEp.SwIfIndex) != none || uint32(p.SrcEp.SwIfIndex) != none {
			c.refuse(q, "path of an interface's address, or with flags")
			return &cnat.CnatTranslationUpdateReply{Retval: rvUnimplemented}
		}
	}
	vip := cnatVIP{netip.AddrPortFrom(netAddr(t.Vip.Addr), t.Vip.Port), uint8(t.IPProto)}
	tr := c.cnat.byEnd[vip]
	if tr == nil {
		tr = c.cnat.add(vip)
		tr.lb, tr.sticky = t.LbType, t.FlowHashConfig == 1
		if _, known := c.cnat.exclusive[vip.end.Addr()]; !known {
			c.cnat.exclusive[vip.end.Addr()] = t.IsRealIP == 0
		}
	}
	tr.paths = append([]cnat.CnatEndpointTuple{}, t.Paths...)
	return &cnat.CnatTranslationUpdateReply{ID: tr.id}
}

func (c *cnatState) add(vip cnatVIP) *cnatTranslation {
	tr := &cnatTranslation{vip: vip, id: uint32(len(c.translations))}
	if n := len(c.free); n > 0 {
		tr.id, c.free = c.free[n-1], c.free[:n-1]
	}
	c.translations[tr.id], c.byEnd[vip] = tr, tr
	return tr
}

func (c *cnatState) remove(tr *cnatTranslation) {
	delete(c.translations, tr.id)
	delete(c.byEnd, tr.vip)
	c.free = append(c.free, tr.id)
	for vip := range c.byEnd {
		if vip.end.Addr() == tr.vip.end.Addr() {
			return
		}
	}
	delete(c.exclusive, tr.vip.end.Addr())
}

func cnatDump(c *call, _ *cnat.CnatTranslationDump, send func(*cnat.CnatTranslationDetails)) {
	for id := uint32(0); int(id) < len(c.cnat.translations)+len(c.cnat.free); id++ {
		tr := c.cnat.translations[id]
		if tr == nil {
			continue
		}
		d := cnat.CnatTranslation{ID: id, Vip: cnatEnd(tr.vip.end), IPProto: ip_types.IPProto(tr.vip.proto), LbType: tr.lb}
		for _, p := range tr.paths {
			d.Paths = append(d.Paths, cnat.CnatEndpointTuple{
				DstEp: cnatEnd(netip.AddrPortFrom(netAddr(p.DstEp.Addr), p.DstEp.Port)),
				SrcEp: cnatEnd(netip.AddrPortFrom(netAddr(p.SrcEp.Addr), p.SrcEp.Port)),
				Flags: p.Flags | cnatPathActive,
			})
		}
		send(&cnat.CnatTranslationDetails{Translation: d})
	}
}

func cnatEnd(a netip.AddrPort) cnat.CnatEndpoint {
	return cnat.CnatEndpoint{Addr: apiAddress(a.Addr()), SwIfIndex: interface_types.InterfaceIndex(none),
		IfAf: apiAddress(a.Addr()).Af, Port: a.Port()}
}

func dumpCnat(st *state, d *dumper) {
	c := &st.cnat
	for _, tr := range c.translations {
		d.add("cnat translation %s proto %d lb %d sticky %v %v", tr.vip.end, tr.vip.proto, tr.lb, tr.sticky, tr.paths)
	}
	if c.policy != 0 || c.snat[ip4].Compare(netip.IPv4Unspecified()) != 0 || c.snat[ip6].Compare(netip.IPv6Unspecified()) != 0 {
		d.add("cnat source nat policy %d %v", c.policy, c.snat)
	}
	for what, m := range map[string]map[uint32]bool{"pod": c.pods, "host": c.hosts} {
		for ifx := range m {
			if i := st.ifs.all[ifx]; i != nil {
				d.add("cnat %s interface %s", what, i.label())
			}
		}
	}
}
