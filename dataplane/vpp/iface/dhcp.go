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

// ifDHCP is the DHCP client of an interface. VPP lets no interface with addresses change its table, so the table is part of it.
type ifDHCP struct {
	If  string
	VRF uint32
}

const kindIfDHCP = "vpp-interface-dhcp"

func dhcpKey(ifName string) string { return nb.InterfacePrefix + "dhcp-client/" + ifName }

// ifDHCPKind: the IPv4 addresses of an interface with a client are the client's, and so is the default route through it; the
// kinds of addresses and routes leave both alone. Deleting the client releases them. VPP keeps the client of a deleted
// interface, for whichever one gets its index, so it is deleted before.
func (k *Kinds) ifDHCPKind() scheduler.Kind[ifDHCP] {
	set := func(op *scheduler.Op, v ifDHCP, index uint32, add bool, fine ...api.VPPApiError) {
		what := "start"
		if !add {
			what = "stop"
		}
		// The server names the client by its hardware address. Answers are asked for by broadcast: VPP takes those in before
		// it has an address.
		k.Do(op, kit.Named(what+" the DHCP client of", "interface "+v.If), &dhcp.DHCPClientConfig{
			IsAdd: add, Client: dhcp.DHCPClient{
				SwIfIndex: interface_types.InterfaceIndex(index), WantDHCPEvent: true, SetBroadcastFlag: true, ID: make([]byte, 64),
			},
		}, fine...)
	}
	kind := kit.Item[ifDHCP](kindIfDHCP, scheduler.RankIfAddr)
	kind.ImpliedByParent = false
	kind.Parent = func(_ string, v ifDHCP) string { return nb.VppInterfaceKey(v.If) }
	kind.Deps = func(_ string, v ifDHCP, add func(string)) {
		if v.VRF != 0 {
			add(nb.InterfaceVrfKey(v.If, v.VRF, nb.IPv4))
		}
	}
	kind.Create = func(op *scheduler.Op, _ string, v ifDHCP) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			k.Missing(op, Named("start the DHCP client of", v.If), v.If)
			return
		}
		set(op, v, index, true)
	}
	kind.Delete = func(op *scheduler.Op, _ string, v ifDHCP) {
		index, ok := k.idx.IfIndex(v.If)
		if !ok {
			kit.Gone(op)
			return
		}
		set(op, v, index, false, append([]api.VPPApiError{api.INVALID_VALUE}, kit.IfGone...)...)
	}
	kind.Dump = dumpItems(k, func(s *ifState, emit func(string, ifDHCP)) {
		if s.dhcp {
			emit(dhcpKey(s.Name), ifDHCP{If: s.Name, VRF: s.vrf4})
		}
	})
	return kind
}

// leasedPrefix is the address that a client has put on its interface; the zero Prefix if it has none.
func leasedPrefix(l *dhcp.DHCPLease) netip.Prefix {
	a := leaseAddr(l.HostAddress.Un.GetIP4())
	if !a.IsValid() || l.MaskWidth > 32 {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, int(l.MaskWidth))
}

// leaseAddr: VPP does not set the family of the addresses of a lease, which are always IPv4.
func leaseAddr(raw [4]byte) netip.Addr {
	if raw == ([4]byte{}) {
		return netip.Addr{}
	}
	return netip.AddrFrom4(raw)
}
