package iface

import (
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// ifDHCP is the DHCP client of an interface. VPP rejects a change of the table of an interface with addresses, so the table is
// part of the item.
type ifDHCP struct {
	If  string
	VRF uint32
}

const kindIfDHCP = "vpp-interface-dhcp"

func dhcpKey(ifName string) string { return nb.InterfacePrefix + "dhcp-client/" + ifName }

// ifDHCPDescriptor returns the descriptor of DHCP clients. The IPv4 addresses of an interface with a client belong to the client, and so
// does the default route through it; the descriptors of addresses and routes ignore both. Deleting the client releases them. VPP
// keeps the client of a deleted interface and gives it to the next interface with the same index, so the client is deleted
// first.
func (k *Descriptors) ifDHCPDescriptor() scheduler.Descriptor[ifDHCP] {
	set := func(op *scheduler.Op, v ifDHCP, index uint32, add bool, fine ...api.VPPApiError) {
		what := "start"
		if !add {
			what = "stop"
		}
		// The server identifies the client by its hardware address. The client requests broadcast answers: VPP accepts those
		// before it has an address.
		k.Do(op, kit.Named(what+" the DHCP client of", "interface "+v.If), &dhcp.DHCPClientConfig{
			IsAdd: add, Client: dhcp.DHCPClient{
				SwIfIndex: interface_types.InterfaceIndex(index), WantDHCPEvent: true, SetBroadcastFlag: true, ID: make([]byte, 64),
			},
		}, fine...)
	}
	desc := kit.Item[ifDHCP](kindIfDHCP, scheduler.RankIfAddr)
	desc.ImpliedByParent = false
	desc.Parent = func(_ string, v ifDHCP) string { return nb.VppInterfaceKey(v.If) }
	desc.Deps = func(_ string, v ifDHCP, add func(string)) {
		if v.VRF != 0 {
			add(nb.InterfaceVrfKey(v.If, v.VRF, nb.IPv4))
		}
	}
	desc.Create = func(op *scheduler.Op, _ string, v ifDHCP) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			k.Missing(op, Named("start the DHCP client of", v.If), v.If)
			return
		}
		set(op, v, index, true)
	}
	desc.Delete = func(op *scheduler.Op, _ string, v ifDHCP) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			kit.Gone(op)
			return
		}
		set(op, v, index, false, append([]api.VPPApiError{api.INVALID_VALUE}, kit.IfGone...)...)
	}
	desc.Dump = dumpItems(k, func(s *ifState, emit func(string, ifDHCP)) {
		if s.dhcp {
			emit(dhcpKey(s.Name), ifDHCP{If: s.Name, VRF: s.vrf4})
		}
	})
	return desc
}

// leasedPrefix returns the address that a client has set on its interface; the zero Prefix if it has none.
func leasedPrefix(l *dhcp.DHCPLease) netip.Prefix {
	a := leaseAddr(l.HostAddress.Un.GetIP4())
	if !a.IsValid() || l.MaskWidth > 32 {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, int(l.MaskWidth))
}

// leaseAddr converts an address of a lease. VPP does not set the family of these addresses, which are always IPv4.
func leaseAddr(raw [4]byte) netip.Addr {
	if raw == ([4]byte{}) {
		return netip.Addr{}
	}
	return netip.AddrFrom4(raw)
}
