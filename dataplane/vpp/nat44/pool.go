package nat44

import (
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// natAddress is one address of a pool; twice-NAT has a separate pool. VPP does not tag addresses: all of them are
// ours.
type natAddress struct {
	Addr  netip.Addr
	VRF   uint32 // kit.None: for all tables
	Twice bool
}

const (
	kindNATAddress = "vpp-nat44-address"
	natPoolMax     = 4096
)

func (a natAddress) key() string {
	if a.Twice {
		return "vpp/nat44/twiceNAT-pool/" + a.Addr.String()
	}
	return "vpp/nat44/address/" + a.Addr.String()
}

// natPoolDescriptor returns a descriptor that consists of its addresses only: VPP does not store which addresses belong to
// one pool.
func (k *descriptors) natPoolDescriptor() scheduler.Descriptor[*vpp_nat.Nat44AddressPool] {
	done := func(op *scheduler.Op, _ string, _ *vpp_nat.Nat44AddressPool) { op.Done(nil) }
	return scheduler.Descriptor[*vpp_nat.Nat44AddressPool]{
		Name: "vpp-nat44-pool", Prefix: nb.Nat44AddressPoolPrefix, Rank: scheduler.RankFeature,
		Validate: func(_ string, v *vpp_nat.Nat44AddressPool) error { return validatePool(v) },
		Equal:    func(string, *vpp_nat.Nat44AddressPool, *vpp_nat.Nat44AddressPool) bool { return true },
		Create:   done,
		Delete:   done,
		Derive: func(_ string, v *vpp_nat.Nat44AddressPool, put func(string, string, any)) {
			first, last := poolRange(v)
			for a := first; a.IsValid() && !last.Less(a); a = a.Next() {
				one := natAddress{a, v.VrfId, v.TwiceNat}
				put(kindNATAddress, one.key(), one)
			}
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_nat.Nat44AddressPool)) {
			op.EachDesired(func(key string, v any) { emit(key, v.(*vpp_nat.Nat44AddressPool)) })
			op.Done(nil)
		},
	}
}

// poolRange returns the first and the last address of a pool; a pool without a last address has only the first.
func poolRange(v *vpp_nat.Nat44AddressPool) (first, last netip.Addr) {
	first, last = kit.Addr(v.FirstIp), kit.Addr(v.LastIp)
	if v.LastIp == "" {
		last = first
	}
	return first, last
}

func validatePool(v *vpp_nat.Nat44AddressPool) error {
	var f kit.Faults
	first, last := poolRange(v)
	switch {
	case !first.Is4():
		f.Add("first_ip", "%q is not an IPv4 address", v.FirstIp)
	case !last.Is4():
		f.Add("last_ip", "%q is not an IPv4 address", v.LastIp)
	case last.Less(first):
		f.Add("last_ip", "%s is before first_ip %s", last, first)
	case asUint(last)-asUint(first) >= natPoolMax:
		f.Add("last_ip", "the pool has more than %d addresses", natPoolMax)
	}
	return f.Err()
}

func asUint(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func (k *descriptors) natAddressDescriptor() scheduler.Descriptor[natAddress] {
	set := func(op *scheduler.Op, what string, v natAddress, add bool, fine ...api.VPPApiError) {
		req := &nat44_ed.Nat44AddDelAddressRange{IsAdd: add, VrfID: v.VRF, FirstIPAddress: v.Addr.As4(), LastIPAddress: v.Addr.As4()}
		if v.Twice {
			req.Flags = nat_types.NAT_IS_TWICE_NAT
		}
		k.Do(op, kit.Named(what+" NAT44 address", v.Addr.String()), req, fine...)
	}
	desc := kit.Item[natAddress](kindNATAddress, scheduler.RankFeature)
	desc.ImpliedByParent = false
	desc.Deps = func(_ string, v natAddress, add func(string)) {
		add(nb.Nat44GlobalKey)
		if v.VRF != 0 && v.VRF != kit.None {
			add(nb.VrfTableKeyFor(v.VRF, false))
		}
	}
	desc.Create = func(op *scheduler.Op, _ string, v natAddress) { set(op, "add", v, true) }
	desc.Delete = func(op *scheduler.Op, _ string, v natAddress) { set(op, "delete", v, false, api.NO_SUCH_ENTRY) }
	desc.Dump = func(op *scheduler.DumpOp, emit func(string, natAddress)) {
		conn.Dump(k.Lane, &nat44_ed.Nat44AddressDump{}, func(d *nat44_ed.Nat44AddressDetails) {
			v := natAddress{netip.AddrFrom4(d.IPAddress), d.VrfID, d.Flags&nat_types.NAT_IS_TWICE_NAT != 0}
			emit(v.key(), v)
		}, func(err error) { op.Done(kit.Named("dump", "NAT44 addresses").Wrap(err)) })
	}
	return desc
}
