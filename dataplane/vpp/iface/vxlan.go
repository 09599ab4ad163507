package iface

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vxlan"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

const vniMax = 1<<24 - 1

// vxlanType returns the type of VXLAN tunnels. The table of a tunnel (vrf) routes its outer packets; the tunnel itself is
// a layer-2 interface.
func vxlanType() *ifType {
	return &ifType{
		noMAC:    true,
		validate: validateVxlan,
		deps:     vxlanDeps,
		create:   createVxlan,
		equal:    equalVxlan,
		read:     readVxlan,
		remove: func(k *Descriptors, _ *ifEntry, v *vpp_interfaces.Interface, done func(error)) {
			conn.Call(k.Lane, k.vxlanRequest(v, false), func(_ *vxlan.VxlanAddDelTunnelV3Reply, err error) { done(err) })
		},
	}
}

func validateVxlan(v *vpp_interfaces.Interface, f *kit.Faults) {
	x := v.GetVxlan()
	src, dst := kit.Addr(x.GetSrcAddress()), kit.Addr(x.GetDstAddress())
	if !src.IsValid() || src.IsUnspecified() {
		f.Add("vxlan.src_address", "%q is not an address", x.GetSrcAddress())
	}
	switch {
	case !dst.IsValid() || dst.IsUnspecified():
		f.Add("vxlan.dst_address", "%q is not an address", x.GetDstAddress())
	case src.IsValid() && src.Is4() != dst.Is4():
		f.Add("vxlan.dst_address", "%s and src_address %s are of different families", dst, src)
	case src == dst:
		f.Add("vxlan.dst_address", "%s is src_address, too", dst)
	case dst.IsMulticast() && x.GetMulticast() == "":
		f.Add("vxlan.multicast", "is empty; a group needs the interface to send on")
	case !dst.IsMulticast() && x.GetMulticast() != "":
		f.Add("vxlan.multicast", "%s, but dst_address %s is not a group", x.GetMulticast(), dst)
	}
	if x.GetVni() == 0 || x.GetVni() > vniMax {
		f.Add("vxlan.vni", "%d is not between 1 and %d", x.GetVni(), vniMax)
	}
	if x.GetGpe() != nil {
		f.Add("vxlan.gpe", "is not supported")
	}
	if v.PhysAddress != "" {
		f.Add("phys_address", "not supported for a VXLAN tunnel")
	}
}

func vxlanDeps(v *vpp_interfaces.Interface, add func(string)) {
	x := v.GetVxlan()
	if x.GetMulticast() != "" {
		add(nb.VppInterfaceKey(x.GetMulticast()))
	}
	if v.Vrf == 0 {
		return
	}
	if kit.Addr(x.GetSrcAddress()).Is4() {
		add(nb.VrfTableKey(v.Vrf, vpp_l3.VrfTable_IPV4))
	} else {
		add(nb.VrfTableKey(v.Vrf, vpp_l3.VrfTable_IPV6))
	}
}

func (k *Descriptors) vxlanRequest(v *vpp_interfaces.Interface, add bool) *vxlan.VxlanAddDelTunnelV3 {
	x := v.GetVxlan()
	req := &vxlan.VxlanAddDelTunnelV3{
		IsAdd: add, Instance: kit.None, DecapNextIndex: kit.None, EncapVrfID: v.Vrf, Vni: x.GetVni(),
		SrcAddress: kit.ToAddress(kit.Addr(x.GetSrcAddress())), DstAddress: kit.ToAddress(kit.Addr(x.GetDstAddress())),
		McastSwIfIndex: interface_types.InterfaceIndex(kit.None),
	}
	if index, ok := k.idx.IfIndex(x.GetMulticast()); ok {
		req.McastSwIfIndex = interface_types.InterfaceIndex(index)
	}
	return req
}

func createVxlan(k *Descriptors, v *vpp_interfaces.Interface, done func(made, error)) {
	req := k.vxlanRequest(v, true)
	conn.Call(k.Lane, req, func(r *vxlan.VxlanAddDelTunnelV3Reply, err error) {
		switch {
		case conn.IsRetval(err, api.TUNNEL_EXIST):
			k.adoptVxlan(req, err, done)
		case err != nil:
			done(made{}, err)
		default:
			done(made{index: uint32(r.SwIfIndex)}, nil)
		}
	})
}

// adoptVxlan takes over a tunnel that VPP already has because the reply to its creation was lost.
func (k *Descriptors) adoptVxlan(req *vxlan.VxlanAddDelTunnelV3, cause error, done func(made, error)) {
	found := kit.None
	all := &vxlan.VxlanTunnelV2Dump{SwIfIndex: interface_types.InterfaceIndex(kit.None)}
	conn.Dump(k.Lane, all, func(d *vxlan.VxlanTunnelV2Details) {
		if d.Vni == req.Vni && d.EncapVrfID == req.EncapVrfID &&
			kit.FromAddress(d.SrcAddress) == kit.FromAddress(req.SrcAddress) &&
			kit.FromAddress(d.DstAddress) == kit.FromAddress(req.DstAddress) {
			found = uint32(d.SwIfIndex)
		}
	}, func(err error) {
		if err == nil {
			err = k.adoptable(found, cause)
		}
		done(made{index: found}, err)
	})
}

func equalVxlan(_ *Descriptors, desired, applied *vpp_interfaces.Interface) bool {
	d, a := desired.GetVxlan(), applied.GetVxlan()
	if desired.Vrf != applied.Vrf {
		return false
	}
	return d == a || (kit.SameAddr(d.GetSrcAddress(), a.GetSrcAddress()) && kit.SameAddr(d.GetDstAddress(), a.GetDstAddress()) &&
		d.GetVni() == a.GetVni() && d.GetMulticast() == a.GetMulticast())
}

func readVxlan(k *Descriptors, s *ifState, v *vpp_interfaces.Interface) bool {
	if s.vxlan == nil {
		return false
	}
	x := &vpp_interfaces.VxlanLink{
		SrcAddress: kit.FromAddress(s.vxlan.SrcAddress).String(), DstAddress: kit.FromAddress(s.vxlan.DstAddress).String(),
		Vni: s.vxlan.Vni,
	}
	x.Multicast, _ = k.idx.NameByIndex(uint32(s.vxlan.McastSwIfIndex))
	v.Vrf = s.vxlan.EncapVrfID
	v.Link = &vpp_interfaces.Interface_Vxlan{Vxlan: x}
	return true
}
