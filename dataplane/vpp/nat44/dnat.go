package nat44

import (
	"net/netip"
	"slices"
	"strconv"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// natExternal is the external side of a mapping; VPP has at most one mapping for each.
type natExternal struct {
	If    string     // the interface whose address is used instead of Addr
	Addr  netip.Addr // invalid with If
	Port  uint16     // 0: all ports and protocols
	Proto uint8      // 0 with port 0
}

// natMapping is one static mapping, an item of a DNat44. Mappings are immutable.
type natMapping struct {
	Label    string
	External natExternal
	Twice    vpp_nat.DNat44_StaticMapping_TwiceNatMode
	Pool     netip.Addr // of twice-NAT; invalid: any
	Affinity uint32     // seconds; 0: none
	Backends []natBackend
	Bridge   bool   // replaces another mapping while that is made again; never desired
	Guard    string // the ACL that must be in place first; VPP does not have this field
}

const (
	kindNATMapping  = "vpp-nat44-mapping"
	kindNATIdentity = "vpp-nat44-identity"
)

// dnatDescriptor returns a descriptor that consists of its mappings only; they have its label.
func (k *descriptors) dnatDescriptor() scheduler.Descriptor[*vpp_nat.DNat44] {
	done := func(op *scheduler.Op, _ string, _ *vpp_nat.DNat44) { op.Done(nil) }
	return scheduler.Descriptor[*vpp_nat.DNat44]{
		Name: "vpp-nat44-dnat", Prefix: nb.DNat44Prefix, Rank: scheduler.RankFeature,
		Validate: func(_ string, v *vpp_nat.DNat44) error { return validateDNAT(v) },
		Equal:    func(string, *vpp_nat.DNat44, *vpp_nat.DNat44) bool { return true },
		Create:   done,
		Delete:   done,
		Derive: func(_ string, v *vpp_nat.DNat44, put func(string, string, any)) {
			for _, m := range v.StMappings {
				one := mappingOf(v.Label, m)
				put(kindNATMapping, one.External.key(), one)
			}
			for _, i := range v.IdMappings {
				one := identityOf(v.Label, i)
				put(kindNATIdentity, one.key(), one)
			}
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_nat.DNat44)) {
			op.EachDesired(func(key string, v any) { emit(key, v.(*vpp_nat.DNat44)) })
			op.Done(nil)
		},
	}
}

// OfInterface returns the name of the interface that a mapping belongs to, for partial dumps.
func (m *natMapping) OfInterface() string { return m.External.If }

func (e natExternal) String() string {
	where := e.If
	if e.If == "" {
		where = e.Addr.String()
	}
	return where + " port " + strconv.Itoa(int(e.Port)) + " protocol " + strconv.Itoa(int(e.Proto))
}

func (e natExternal) key() string {
	var b [96]byte
	key := append(b[:0], "vpp/nat44/mapping/"...)
	if e.If != "" {
		key = append(append(key, "if/"...), e.If...)
	} else {
		key = e.Addr.AppendTo(key)
	}
	key = strconv.AppendUint(append(key, "/proto/"...), uint64(e.Proto), 10)
	return string(strconv.AppendUint(append(key, "/port/"...), uint64(e.Port), 10))
}

func protoNumber(p vpp_nat.DNat44_Protocol) uint8 {
	switch p {
	case vpp_nat.DNat44_TCP:
		return kit.ProtoTCP
	case vpp_nat.DNat44_UDP:
		return kit.ProtoUDP
	}
	return 1
}

func externalOf(ifName, ip string, port uint32, p vpp_nat.DNat44_Protocol) natExternal {
	e := natExternal{If: ifName, Port: uint16(port)}
	if ifName == "" {
		e.Addr = kit.Addr(ip)
	}
	if port != 0 {
		e.Proto = protoNumber(p)
	}
	return e
}

// mappingOf converts a mapping that has been validated.
func mappingOf(label string, v *vpp_nat.DNat44_StaticMapping) *natMapping {
	m := &natMapping{
		Label: label, External: externalOf(v.ExternalInterface, v.ExternalIp, v.ExternalPort, v.Protocol), Twice: v.TwiceNat,
		Pool: kit.Addr(v.TwiceNatPoolIp), Affinity: v.SessionAffinity, Backends: make([]natBackend, 0, len(v.LocalIps)),
		Guard: v.Guard,
	}
	requested := make([]uint32, len(v.LocalIps))
	for i, l := range v.LocalIps {
		requested[i] = l.GetProbability()
	}
	for i, w := range natWeights(requested) {
		if l := v.LocalIps[i]; w > 0 {
			m.Backends = append(m.Backends, natBackend{kit.Addr(l.GetLocalIp()), uint16(l.GetLocalPort()), w, l.GetVrfId()})
		}
	}
	sortBackends(m.Backends)
	if !m.balanced() {
		m.Backends[0].Weight = 1
	}
	return m
}

// balanced reports whether the mapping is one of VPP's load-balancing mappings, even with a single backend. VPP could use
// a plain mapping for a single backend, but changing from one form to the other removes the mapping for a while, and its
// connections. A plain mapping is one without a port, of an interface's address, or with its own address of the twice-NAT
// pool.
func (m *natMapping) balanced() bool {
	return m.External.If == "" && m.External.Port != 0 && !m.Pool.IsValid()
}

func (m *natMapping) same(o *natMapping) bool {
	return m == o || m.sameButBackends(o) && slices.Equal(m.Backends, o.Backends)
}

func (m *natMapping) sameButBackends(o *natMapping) bool {
	return m.Label == o.Label && m.External == o.External && m.Twice == o.Twice && m.Pool == o.Pool && m.Affinity == o.Affinity &&
		m.Bridge == o.Bridge
}

func validateDNAT(v *vpp_nat.DNat44) error {
	var f kit.Faults
	f.Name("label", v.Label)
	seen := make(map[natExternal]bool, len(v.StMappings))
	for i, m := range v.StMappings {
		field := "st_mappings[" + strconv.Itoa(i) + "]."
		validateMapping(&f, field, m)
		e := externalOf(m.GetExternalInterface(), m.GetExternalIp(), m.GetExternalPort(), m.GetProtocol())
		if seen[e] {
			f.Add(field+"external_ip", "%s is there twice", e)
		}
		seen[e] = true
	}
	for i, m := range v.IdMappings {
		validateIdentity(&f, "id_mappings["+strconv.Itoa(i)+"].", m)
	}
	return f.Err()
}

func validateMapping(f *kit.Faults, field string, m *vpp_nat.DNat44_StaticMapping) {
	validateExternal(f, field, m)
	validateTwice(f, field, m)
	n := len(m.GetLocalIps())
	plain := m.GetExternalInterface() != "" || m.GetExternalPort() == 0 || m.GetTwiceNatPoolIp() != ""
	switch {
	case n == 0:
		f.Add(field+"local_ips", "is empty: there is no backend")
	case n > 1 && plain:
		f.Add(field+"local_ips", "has %d backends: VPP balances only over ports of an external_ip, without twice_nat_pool_ip", n)
	case n > natMaxBackends:
		f.Add(field+"local_ips", "has %d backends, but VPP supports at most %d: remove some", n, natMaxBackends)
	}
	if plain && m.GetSessionAffinity() != 0 {
		f.Add(field+"session_affinity", "is for mappings with backends to choose from")
	}
	seen := make(map[natTarget]bool, n)
	for i, l := range m.GetLocalIps() {
		at := field + "local_ips[" + strconv.Itoa(i) + "]."
		b := natBackend{Addr: kit.Addr(l.GetLocalIp()), Port: uint16(l.GetLocalPort()), VRF: l.GetVrfId()}
		if !b.Addr.Is4() || b.Addr.IsUnspecified() {
			f.Add(at+"local_ip", "%q is not an IPv4 address of a backend", l.GetLocalIp())
		}
		validatePort(f, at+"local_port", l.GetLocalPort())
		if (l.GetLocalPort() == 0) != (m.GetExternalPort() == 0) {
			f.Add(at+"local_port", "%d does not go with external_port %d: both or none", l.GetLocalPort(), m.GetExternalPort())
		}
		if seen[b.target()] {
			f.Add(at+"local_ip", "%s port %d is there twice", b.Addr, b.Port)
		}
		seen[b.target()] = true
	}
}

func validatePort(f *kit.Faults, field string, port uint32) {
	if port > 65535 {
		f.Add(field, "%d is not a port", port)
	}
}

func validateExternal(f *kit.Faults, field string, m *vpp_nat.DNat44_StaticMapping) {
	a := kit.Addr(m.GetExternalIp())
	switch {
	case m.GetExternalInterface() != "" && m.GetExternalIp() != "":
		f.Add(field+"external_ip", "is set, and so is external_interface")
	case m.GetExternalInterface() == "" && (!a.Is4() || a.IsUnspecified()):
		f.Add(field+"external_ip", "%q is not an IPv4 address", m.GetExternalIp())
	}
	validatePort(f, field+"external_port", m.GetExternalPort())
	switch m.GetProtocol() {
	case vpp_nat.DNat44_TCP, vpp_nat.DNat44_UDP:
	case vpp_nat.DNat44_ICMP:
		if m.GetExternalPort() != 0 {
			f.Add(field+"protocol", "ICMP has no ports: set external_port to 0, which maps all protocols of the address")
		}
	default:
		f.Add(field+"protocol", "%d is not known", m.GetProtocol())
	}
}

func validateTwice(f *kit.Faults, field string, m *vpp_nat.DNat44_StaticMapping) {
	mode := m.GetTwiceNat()
	if mode < vpp_nat.DNat44_StaticMapping_DISABLED || mode > vpp_nat.DNat44_StaticMapping_SELF {
		f.Add(field+"twice_nat", "%d is not known", mode)
	}
	if mode != vpp_nat.DNat44_StaticMapping_DISABLED && m.GetExternalPort() == 0 {
		f.Add(field+"twice_nat", "VPP has it only for mappings of ports")
	}
	if p := m.GetTwiceNatPoolIp(); p != "" {
		if !kit.Addr(p).Is4() {
			f.Add(field+"twice_nat_pool_ip", "%q is not an IPv4 address", p)
		}
		if mode == vpp_nat.DNat44_StaticMapping_DISABLED {
			f.Add(field+"twice_nat_pool_ip", "is set, but twice_nat is not")
		}
	}
}
