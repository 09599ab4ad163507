package nat44

import (
	"net/netip"
	"slices"
	"strconv"

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

// natIdentity excludes an address, or a port of it, from translation in one table.
type natIdentity struct {
	Label    string
	External natExternal
	VRF      uint32
}

// OfInterface returns the name of the interface that a mapping belongs to, for partial dumps.
func (m natIdentity) OfInterface() string { return m.External.If }

func (i natIdentity) key() string {
	return "vpp/nat44/identity/" + i.External.key()[len("vpp/nat44/mapping/"):] + "/vrf/" + strconv.FormatUint(uint64(i.VRF), 10)
}

func identityOf(label string, v *vpp_nat.DNat44_IdentityMapping) natIdentity {
	return natIdentity{label, externalOf(v.GetInterface(), v.GetIpAddress(), v.GetPort(), v.GetProtocol()), v.GetVrfId()}
}

func validateIdentity(f *kit.Faults, field string, v *vpp_nat.DNat44_IdentityMapping) {
	a := kit.Addr(v.GetIpAddress())
	switch {
	case v.GetInterface() != "" && v.GetIpAddress() != "":
		f.Add(field+"ip_address", "is set, and so is interface")
	case v.GetInterface() == "" && (!a.Is4() || a.IsUnspecified()):
		f.Add(field+"ip_address", "%q is not an IPv4 address", v.GetIpAddress())
	}
	validatePort(f, field+"port", v.GetPort())
	if v.GetPort() != 0 && v.GetProtocol() != vpp_nat.DNat44_TCP && v.GetProtocol() != vpp_nat.DNat44_UDP {
		f.Add(field+"protocol", "%s has no ports", v.GetProtocol())
	}
	if v.GetVrfId() == kit.None {
		f.Add(field+"vrf_id", "%d means none to VPP", v.GetVrfId())
	}
}

// natIdentityDescriptor returns the descriptor of identity mappings. For VPP, identities of one address in several tables are one
// mapping, with the tag of the first.
func (k *descriptors) natIdentityDescriptor() scheduler.Descriptor[natIdentity] {
	set := func(op *scheduler.Op, what string, v natIdentity, add bool, fine ...api.VPPApiError) {
		o := kit.Named(what+" NAT44 identity mapping of", v.External.String()+" in table "+strconv.FormatUint(uint64(v.VRF), 10))
		req := &nat44_ed.Nat44AddDelIdentityMapping{
			IsAdd: add, Port: v.External.Port, Protocol: v.External.Proto, VrfID: v.VRF, Tag: natMark{label: v.Label}.tag(),
		}
		ifx, ok := k.externalIf(v.External)
		if !ok && !add {
			kit.Gone(op)
			return
		}
		if !ok {
			k.Missing(op, o, v.External.If)
			return
		}
		req.SwIfIndex = ifx
		if v.External.If == "" {
			req.IPAddress = v.External.Addr.As4()
		}
		if v.External.Port == 0 {
			req.Flags = nat_types.NAT_IS_ADDR_ONLY
		}
		k.Do(op, o, req, fine...)
	}
	desc := kit.Item[natIdentity](kindNATIdentity, scheduler.RankFeature)
	desc.ImpliedByParent = false
	desc.Parent = func(_ string, v natIdentity) string { return nb.DNat44Key(v.Label) }
	desc.Deps = func(_ string, v natIdentity, add func(string)) {
		add(nb.Nat44GlobalKey)
		if v.External.If != "" {
			add(nb.VppInterfaceKey(v.External.If))
		}
		if v.VRF != 0 {
			add(nb.VrfTableKeyFor(v.VRF, false))
		}
	}
	// The label of an existing mapping cannot be changed, and has no effect.
	desc.Equal = func(_ string, desired, applied natIdentity) bool {
		return desired.External == applied.External && desired.VRF == applied.VRF
	}
	desc.Create = func(op *scheduler.Op, _ string, v natIdentity) { set(op, "add", v, true) }
	desc.Delete = func(op *scheduler.Op, _ string, v natIdentity) { set(op, "delete", v, false, api.NO_SUCH_ENTRY) }
	desc.Dump = k.dumpNATIdentities
	return desc
}

// externalIf returns the interface for a request; kit.None if there is no interface.
func (k *descriptors) externalIf(e natExternal) (interface_types.InterfaceIndex, bool) {
	if e.If == "" {
		return interface_types.InterfaceIndex(kit.None), true
	}
	index, ok := k.idx.IfIndex(e.If)
	return interface_types.InterfaceIndex(index), ok
}

// dumpNATIdentities emits our identity mappings. VPP reports a mapping of an interface twice: with the interface, and
// with the address that the interface has.
func (k *descriptors) dumpNATIdentities(op *scheduler.DumpOp, emit func(string, natIdentity)) {
	type twin struct {
		label string
		port  uint16
		proto uint8
		vrf   uint32
	}
	end := func(err error) { op.Done(kit.Named("dump", "NAT44 identity mappings").Wrap(err)) }
	k.ifs.Snapshot(op, func(s *iface.Snapshot, err error) {
		if err != nil {
			end(err)
			return
		}
		var plain []natIdentity
		ofIf := map[twin][]string{}
		conn.Dump(k.Lane, &nat44_ed.Nat44IdentityMappingDump{}, func(d *nat44_ed.Nat44IdentityMappingDetails) {
			mark, ours := natMarkOf(d.Tag)
			if !ours {
				return
			}
			v := natIdentity{mark.label, natExternal{Port: d.Port, Proto: d.Protocol}, d.VrfID}
			if uint32(d.SwIfIndex) == kit.None {
				v.External.Addr = netip.AddrFrom4(d.IPAddress)
				plain = append(plain, v)
				return
			}
			if v.External.If, ours = k.idx.NameByIndex(uint32(d.SwIfIndex)); ours {
				t := twin{v.Label, d.Port, d.Protocol, d.VrfID}
				ofIf[t] = append(ofIf[t], v.External.If)
				emit(v.key(), v)
			}
		}, func(err error) {
			for _, v := range plain {
				t := twin{v.Label, v.External.Port, v.External.Proto, v.VRF}
				if !onAny(s, ofIf[t], v.External.Addr) {
					emit(v.key(), v)
				}
			}
			end(err)
		})
	})
}

// onAny reports whether one of the interfaces has the address.
func onAny(s *iface.Snapshot, interfaces []string, a netip.Addr) bool {
	if len(interfaces) == 0 {
		return false
	}
	for _, st := range s.Ours {
		if !slices.Contains(interfaces, st.Name) {
			continue
		}
		if st.Lease.Addr() == a || slices.ContainsFunc(st.Addresses, func(p netip.Prefix) bool { return p.Addr() == a }) {
			return true
		}
	}
	return false
}
