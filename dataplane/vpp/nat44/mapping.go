package nat44

import (
	"errors"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// natMappingDescriptor returns the descriptor of mappings. All mappings are for packets to the external address only: for the other
// direction VPP allows at most one mapping per backend.
func (k *descriptors) natMappingDescriptor() scheduler.Descriptor[*natMapping] {
	return scheduler.Descriptor[*natMapping]{
		Name: kindNATMapping, Rank: scheduler.RankFeature,
		Equal: func(_ string, desired, applied *natMapping) bool {
			return desired.same(applied) && k.open(desired) == nil
		},
		Parent: func(_ string, v *natMapping) string { return nb.DNat44Key(v.Label) },
		Deps: func(_ string, v *natMapping, add func(string)) {
			add(nb.Nat44GlobalKey)
			if v.External.If != "" {
				add(nb.VppInterfaceKey(v.External.If))
			}
			for _, vrf := range v.tables() {
				if vrf != 0 {
					add(nb.VrfTableKeyFor(vrf, false))
				}
			}
		},
		Create: func(op *scheduler.Op, key string, v *natMapping) {
			if err := k.open(v); err != nil {
				op.Done(mappingObject("add", v).Wrap(err))
				return
			}
			if v.balanced() {
				k.addBalanced(v, k.places(key, nil, v), op.Done)
				return
			}
			k.putPlain(op, v, true)
		},
		Update: func(op *scheduler.Op, key string, applied, desired *natMapping) {
			if err := k.open(desired); err != nil {
				k.withdraw(op, key, applied, err)
				return
			}
			if desired.same(applied) {
				op.Done(nil)
				return
			}
			k.changeBalanced(op, key, applied, desired)
		},
		CanUpdate: func(_ string, applied, desired *natMapping) bool { return applied.balanced() && desired.balanced() },
		Delete: func(op *scheduler.Op, key string, v *natMapping) {
			switch {
			case v.Bridge:
				k.deleteKeepingSessions(v, op.Done)
				return
			case !v.balanced():
				k.putPlain(op, v, false)
				return
			}
			delete(k.nat.places, key)
			k.removeBalanced(v, op.Done)
		},
		Dump: k.dumpNATMappings,
	}
}

// tables returns the tables of the backends.
func (m *natMapping) tables() []uint32 {
	var tables []uint32
	for _, b := range m.Backends {
		if !slices.Contains(tables, b.VRF) {
			tables = append(tables, b.VRF)
		}
	}
	return tables
}

func mappingObject(what string, m *natMapping) kit.Object {
	return kit.Named(what+" NAT44 mapping of "+m.External.String()+" for", "DNat44 "+m.Label)
}

// flags returns the flags of a mapping in a request.
func (m *natMapping) flags() nat_types.NatConfigFlags {
	flags := nat_types.NAT_IS_OUT2IN_ONLY
	switch m.Twice {
	case vpp_nat.DNat44_StaticMapping_ENABLED:
		flags |= nat_types.NAT_IS_TWICE_NAT
	case vpp_nat.DNat44_StaticMapping_SELF:
		flags |= nat_types.NAT_IS_SELF_TWICE_NAT
	}
	if m.External.Port == 0 {
		flags |= nat_types.NAT_IS_ADDR_ONLY
	}
	return flags
}

func twiceOf(flags nat_types.NatConfigFlags) vpp_nat.DNat44_StaticMapping_TwiceNatMode {
	switch {
	case flags&nat_types.NAT_IS_TWICE_NAT != 0:
		return vpp_nat.DNat44_StaticMapping_ENABLED
	case flags&nat_types.NAT_IS_SELF_TWICE_NAT != 0:
		return vpp_nat.DNat44_StaticMapping_SELF
	}
	return vpp_nat.DNat44_StaticMapping_DISABLED
}

func (m *natMapping) tag() string {
	return natMark{m.Label, m.Affinity, m.Pool, m.External.If != "" && m.Twice == vpp_nat.DNat44_StaticMapping_SELF}.tag()
}

func (k *descriptors) putPlain(op *scheduler.Op, v *natMapping, add bool) {
	what, fine := "add", []api.VPPApiError(nil)
	if !add {
		what, fine = "delete", []api.VPPApiError{api.NO_SUCH_ENTRY}
	}
	o := mappingObject(what, v)
	ifx, ok := k.externalIf(v.External)
	switch {
	case !ok && !add:
		kit.Gone(op)
		return
	case !ok:
		k.Missing(op, o, v.External.If)
		return
	}
	b := v.Backends[0]
	req := &nat44_ed.Nat44AddDelStaticMappingV2{
		IsAdd: add, Flags: v.flags(), LocalIPAddress: b.Addr.As4(), LocalPort: b.Port, VrfID: b.VRF,
		ExternalPort: v.External.Port, Protocol: v.External.Proto, ExternalSwIfIndex: ifx, Tag: v.tag(),
	}
	if v.External.If == "" {
		req.ExternalIPAddress = v.External.Addr.As4()
	}
	if v.Pool.IsValid() {
		req.MatchPool, req.PoolIPAddress = true, v.Pool.As4()
	}
	k.Do(op, o, req, fine...)
}

// places determines the order in which VPP has a mapping's backends from now on, and stores it.
func (k *descriptors) places(key string, before []natBackend, v *natMapping) []natBackend {
	places := placed(before, v.Backends, v.Affinity != 0)
	if v.Affinity != 0 {
		k.nat.places[key] = places
	} else {
		delete(k.nat.places, key)
	}
	return places
}

// placesOf returns the backends in the order in which VPP has them now.
func (k *descriptors) placesOf(key string, v *natMapping) []natBackend {
	if places, ok := k.nat.places[key]; ok {
		return places
	}
	return placed(nil, v.Backends, v.Affinity != 0)
}

func lbBackend(b natBackend) nat44_ed.Nat44LbAddrPort {
	return nat44_ed.Nat44LbAddrPort{Addr: b.Addr.As4(), Port: b.Port, Probability: b.Weight, VrfID: b.VRF}
}

func (k *descriptors) addBalanced(v *natMapping, places []natBackend, done func(error)) {
	req := &nat44_ed.Nat44AddDelLbStaticMapping{
		IsAdd: true, Flags: v.flags(), ExternalAddr: v.External.Addr.As4(), ExternalPort: v.External.Port,
		Protocol: v.External.Proto, Affinity: v.Affinity, Tag: v.tag(), Locals: make([]nat44_ed.Nat44LbAddrPort, len(places)),
	}
	for i, b := range places {
		req.Locals[i] = lbBackend(b)
	}
	k.Send(mappingObject("add", v), req, done)
}

// goneBackends returns the backends that are in before but not in after.
func goneBackends(before, after []natBackend) (gone []natBackend) {
	still := make(map[natTarget]bool, len(after))
	for _, b := range after {
		still[b.target()] = true
	}
	for _, b := range before {
		if !still[b.target()] {
			gone = append(gone, b)
		}
	}
	return gone
}

// endSessions ends the sessions of a mapping to the given backends.
func (k *descriptors) endSessions(m *natMapping, to []natBackend, done func(error)) {
	var errs []error
	pending := 1
	end := func(err error) {
		if err != nil {
			errs = append(errs, mappingObject("end sessions of", m).Wrap(err))
		}
		if pending--; pending == 0 {
			done(errors.Join(errs...))
		}
	}
	for _, b := range to {
		t := targetOf(m, b)
		pending++
		conn.Dump(k.Lane, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: b.Addr.As4()}, func(d *nat44_ed.Nat44UserSessionV3Details) {
			if t.matches(d) {
				pending++
				endNATSession(k.Lane, d, t.vrf, end)
			}
		}, end)
	}
	end(nil)
}

// withdraw removes a mapping that must no longer exist. err is the reason.
func (k *descriptors) withdraw(op *scheduler.Op, key string, m *natMapping, err error) {
	both := kit.Join(2, op.Done)
	both(mappingObject("keep", m).Wrap(err))
	delete(k.nat.places, key)
	k.removeBalanced(m, both)
}

func (k *descriptors) step(op *scheduler.Op, v *natMapping, steps []natStep) {
	if len(steps) == 0 {
		op.Done(nil)
		return
	}
	done := kit.Join(len(steps), op.Done)
	for _, s := range steps {
		what, fine := "add "+s.backend.Addr.String()+" to", api.VALUE_EXIST
		if !s.add {
			what, fine = "take "+s.backend.Addr.String()+" from", api.NO_SUCH_ENTRY
		}
		k.Send(mappingObject(what, v), &nat44_ed.Nat44LbStaticMappingAddDelLocal{
			IsAdd: s.add, ExternalAddr: v.External.Addr.As4(), ExternalPort: v.External.Port, Protocol: v.External.Proto,
			Local: lbBackend(s.backend),
		}, done, fine)
	}
}

// removeBalanced removes a mapping. TCP connections outlive their service, as with other service proxies. With affinity VPP
// must delete the stored clients, which also deletes their connections.
func (k *descriptors) removeBalanced(v *natMapping, done func(error)) {
	udp := v.External.Proto == kit.ProtoUDP
	switch {
	case v.Affinity != 0, udp && k.nat.handoff:
		k.deleteBalanced(v, done)
	case udp:
		k.deleteKeepingSessions(v, func(err error) {
			if err != nil {
				done(err)
				return
			}
			k.endSessions(v, v.Backends, done)
		})
	default:
		k.deleteKeepingSessions(v, done)
	}
}

// deleteBalanced deletes a mapping with all sessions of its backends, including those of other mappings.
func (k *descriptors) deleteBalanced(v *natMapping, done func(error)) {
	k.Send(mappingObject("delete", v), &nat44_ed.Nat44AddDelLbStaticMapping{
		Flags: v.flags(), ExternalAddr: v.External.Addr.As4(), ExternalPort: v.External.Port, Protocol: v.External.Proto,
	}, done, api.NO_SUCH_ENTRY)
}

// deleteKeepingSessions deletes a mapping but not its sessions. VPP 25.10 has no request for that. But the request that deletes an
// identity mapping accepts any mapping with the address and port, removes the entries of a table from it, which are the
// backends of a balanced mapping, and removes the mapping with the last of them (scenario nat_backends of vppfake's contract).
// One side effect remains: VPP adds a reference to a table for each backend and releases only one, so a table other than 0
// that has had such a mapping remains, empty, until VPP is restarted.
func (k *descriptors) deleteKeepingSessions(v *natMapping, done func(error)) {
	tables := v.tables()
	part := kit.Join(len(tables), done)
	for _, vrf := range tables {
		k.Send(mappingObject("delete", v), &nat44_ed.Nat44AddDelIdentityMapping{
			IPAddress: v.External.Addr.As4(), Port: v.External.Port, Protocol: v.External.Proto, VrfID: vrf,
			SwIfIndex: interface_types.InterfaceIndex(kit.None),
		}, part, api.NO_SUCH_ENTRY)
	}
}

// dumpNATMappings emits our mappings.
func (k *descriptors) dumpNATMappings(op *scheduler.DumpOp, emit func(string, *natMapping)) {
	labels := map[string]string{}
	op.EachDesired(func(key string, v any) { labels[key] = v.(*natMapping).Label })
	put := func(mark natMark, m *natMapping) {
		key := m.External.key()
		m.Label, m.Affinity, m.Pool = mark.fullLabel(labels[key]), mark.affinity, mark.pool
		emit(key, m)
	}
	end := func(err error) { op.Done(kit.Named("dump", "NAT44 mappings").Wrap(err)) }
	k.ifs.Snapshot(op, func(s *iface.Snapshot, err error) {
		if err != nil {
			end(err)
			return
		}
		k.nat.places = map[string][]natBackend{}
		both := kit.Join(2, end)
		k.dumpPlain(s, put, both)
		conn.Dump(k.Lane, &nat44_ed.Nat44LbStaticMappingDump{}, func(d *nat44_ed.Nat44LbStaticMappingDetails) {
			if mark, ours := natMarkOf(d.Tag); ours {
				put(mark, k.readBalanced(d, mark))
			}
		}, both)
	})
}

func (k *descriptors) readBalanced(d *nat44_ed.Nat44LbStaticMappingDetails, mark natMark) *natMapping {
	m := &natMapping{
		External: natExternal{Addr: netip.AddrFrom4(d.ExternalAddr), Port: d.ExternalPort, Proto: d.Protocol},
		Twice:    twiceOf(d.Flags),
		Bridge:   d.ExternalPort == 0,
	}
	places := make([]natBackend, len(d.Locals))
	for i, l := range d.Locals {
		places[i] = natBackend{netip.AddrFrom4(l.Addr), l.Port, l.Probability, l.VrfID}
		if l.Probability > 0 {
			m.Backends = append(m.Backends, places[i])
		}
	}
	sortBackends(m.Backends)
	if mark.affinity != 0 && !m.Bridge {
		k.nat.places[m.External.key()] = places
	}
	return m
}

// dumpPlain dumps plain mappings. VPP reports a mapping of an interface twice: with the interface, and with the address that
// the interface has.
func (k *descriptors) dumpPlain(s *iface.Snapshot, put func(natMark, *natMapping), done func(error)) {
	type twin struct {
		tag   string
		local natTarget
		port  uint16
		proto uint8
	}
	var plain []*nat44_ed.Nat44StaticMappingDetails
	ofIf := map[twin][]string{}
	twinOf := func(d *nat44_ed.Nat44StaticMappingDetails) twin {
		return twin{tag: d.Tag, local: natTarget{netip.AddrFrom4(d.LocalIPAddress), d.LocalPort, d.VrfID},
			port: d.ExternalPort, proto: d.Protocol}
	}
	read := func(d *nat44_ed.Nat44StaticMappingDetails, e natExternal) *natMapping {
		e.Port, e.Proto = d.ExternalPort, d.Protocol
		return &natMapping{External: e, Twice: twiceOf(d.Flags), Backends: []natBackend{{
			netip.AddrFrom4(d.LocalIPAddress), d.LocalPort, 1, d.VrfID,
		}}}
	}
	conn.Dump(k.Lane, &nat44_ed.Nat44StaticMappingDump{}, func(d *nat44_ed.Nat44StaticMappingDetails) {
		mark, ours := natMarkOf(d.Tag)
		if ours && uint32(d.ExternalSwIfIndex) == kit.None {
			plain = append(plain, d)
			return
		}
		name, known := k.idx.NameByIndex(uint32(d.ExternalSwIfIndex))
		if !ours || !known {
			return
		}
		ofIf[twinOf(d)] = append(ofIf[twinOf(d)], name)
		m := read(d, natExternal{If: name})
		if mark.self { // VPP does not report self-twice-NAT of these
			m.Twice = vpp_nat.DNat44_StaticMapping_SELF
		}
		put(mark, m)
	}, func(err error) {
		for _, d := range plain {
			mark, _ := natMarkOf(d.Tag)
			a := netip.AddrFrom4(d.ExternalIPAddress)
			if !onAny(s, ofIf[twinOf(d)], a) {
				put(mark, read(d, natExternal{Addr: a}))
			}
		}
		done(err)
	})
}

// open returns an error if a mapping must not be served yet because the ACL that guards it is not in place.
func (k *descriptors) open(m *natMapping) error {
	if m.Guard == "" {
		return nil
	}
	return k.guard.Guarded(m.Guard, netip.AddrPortFrom(m.External.Addr, m.External.Port), m.External.Proto)
}
