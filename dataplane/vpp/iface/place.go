package iface

import (
	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// ifPlace stands for an interface being in its tables. It has no request of its own: neighbours depend on it, since VPP puts
// the host route of a neighbour into the table that the interface has at that time, and does not move the route later.
type ifPlace struct {
	If  string
	VRF uint32
}

const kindIfPlace = "vpp-interface-place"

func PlaceKey(ifName string) string { return nb.InterfacePrefix + ifName + "/place" }

func (k *Descriptors) ifPlaceDescriptor() scheduler.Descriptor[ifPlace] {
	desc := kit.Item[ifPlace](kindIfPlace, scheduler.RankIfAddr)
	desc.Parent = func(_ string, v ifPlace) string { return nb.VppInterfaceKey(v.If) }
	desc.Deps = func(_ string, v ifPlace, add func(string)) {
		if v.VRF != 0 && v.VRF != kit.None {
			add(nb.InterfaceVrfKey(v.If, v.VRF, nb.IPv4))
			add(nb.InterfaceVrfKey(v.If, v.VRF, nb.IPv6))
		}
	}
	desc.Create = func(op *scheduler.Op, _ string, _ ifPlace) { op.Done(nil) }
	desc.Delete = desc.Create
	desc.Dump = dumpItems(k, func(s *ifState, emit func(string, ifPlace)) {
		p := ifPlace{If: s.Name, VRF: s.vrf4}
		if s.vrf4 != s.vrf6 {
			p.VRF = kit.None
		}
		emit(PlaceKey(s.Name), p)
	})
	return desc
}
