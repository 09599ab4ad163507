package vpp

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
	"contiv.dev/vswitch/internal/lifecycle"
)

func edit[M proto.Message](m M, change func(M)) M {
	m = proto.Clone(m).(M)
	change(m)
	return m
}

// Every value that VPP would reject or crash on is rejected before, with the name of the field.
func TestValidateInterface(t *testing.T) {
	invalid := validator(t)
	base := loop("l", "02:00:00:00:00:01", withIP("10.1.0.1/24"))
	tapBase, vx := tap("t"), &vpp_interfaces.Interface{
		Name: "v", Type: vpp_interfaces.Interface_VXLAN_TUNNEL,
		Link: &vpp_interfaces.Interface_Vxlan{Vxlan: &vpp_interfaces.VxlanLink{SrcAddress: "10.0.0.1", DstAddress: "10.0.0.2", Vni: 10}},
	}
	sub := &vpp_interfaces.Interface{
		Name: "s", Type: vpp_interfaces.Interface_SUB_INTERFACE,
		Link: &vpp_interfaces.Interface_Sub{Sub: &vpp_interfaces.SubInterface{ParentName: "l", SubId: 5}},
	}
	mem, af := memifOf("m", "/run/m.sock", 1, true), afPacket("a", "eth0")
	type change = func(*vpp_interfaces.Interface)
	for _, c := range []struct {
		field string
		base  *vpp_interfaces.Interface
		do    change
	}{
		{"", base, func(*vpp_interfaces.Interface) {}}, {"", tapBase, func(*vpp_interfaces.Interface) {}},
		{"", vx, func(*vpp_interfaces.Interface) {}}, {"", sub, func(*vpp_interfaces.Interface) {}},
		{"", mem, func(*vpp_interfaces.Interface) {}}, {"", af, func(*vpp_interfaces.Interface) {}},
		{"name", base, func(v *vpp_interfaces.Interface) { v.Name = "" }},
		{"type", base, func(v *vpp_interfaces.Interface) { v.Type = vpp_interfaces.Interface_BOND_INTERFACE }},
		{"type", base, func(v *vpp_interfaces.Interface) { v.Type = vpp_interfaces.Interface_UNDEFINED_TYPE }},
		{"phys_address", base, func(v *vpp_interfaces.Interface) { v.PhysAddress = "02:00:00" }},
		{"phys_address", base, func(v *vpp_interfaces.Interface) { v.PhysAddress = "02:00:00:00:00:00:00:01" }},
		{"mtu", base, func(v *vpp_interfaces.Interface) { v.Mtu = 20 }},
		{"mtu", base, func(v *vpp_interfaces.Interface) { v.Mtu = 70000 }},
		{"set_dhcp_client", base, func(v *vpp_interfaces.Interface) {
			v.SetDhcpClient, v.IpAddresses = true, []string{"10.1.0.1/24"}
		}},
		{"ip6_nd", base, func(v *vpp_interfaces.Interface) {
			v.Ip6Nd = &vpp_interfaces.Interface_IP6ND{AddressAutoconfig: true}
		}},
		{"ip_addresses[0]", base, withIP("10.1.0.1")}, {"ip_addresses[0]", base, withIP("10.1.0.1/33")},
		{"ip_addresses[1]", base, withIP("10.1.0.1/24", "10.1.0.1/24")}, {"ip_addresses[0]", base, withIP("alloc:net")},
		{"ip_addresses[0]", base, withIP("fe80::1/64")}, {"ip_addresses[0]", base, withIP("::ffff:10.1.0.1/120")},
		{"ip_addresses[0]", base, withIP("224.0.0.1/24")}, {"ip_addresses", base, unnumberedTo("other")},
		{"unnumbered.interface_with_ip", loop("l", ""), unnumberedTo("l")},
		{"unnumbered.interface_with_ip", loop("l", ""), unnumberedTo("")},
		{"tap.host_if_name", tapBase, func(v *vpp_interfaces.Interface) { v.GetTap().HostIfName = "longer-than-15-chars" }},
		{"tap.rx_ring_size", tapBase, func(v *vpp_interfaces.Interface) { v.GetTap().RxRingSize = 100 }},
		{"tap.tx_ring_size", tapBase, func(v *vpp_interfaces.Interface) { v.GetTap().TxRingSize = 1 << 16 }},
		{"tap.enable_gso", tapBase, func(v *vpp_interfaces.Interface) { v.GetTap().EnableGso, v.GetTap().EnableTunnel = true, true }},
		{"mtu", af, func(v *vpp_interfaces.Interface) { v.GetAfpacket().LinuxInterface, v.Mtu = "veth", 1921 }},
		{"", af, func(v *vpp_interfaces.Interface) { v.GetAfpacket().LinuxInterface, v.Mtu = "veth", 1920 }},
		{"", af, func(v *vpp_interfaces.Interface) { v.Mtu = 9000 }},
		{"afpacket.host_if_name", af, func(v *vpp_interfaces.Interface) { v.GetAfpacket().HostIfName = "" }},
		{"afpacket.host_if_name", af, func(v *vpp_interfaces.Interface) { v.GetAfpacket().HostIfName = "longer-than-15-chars" }},
		{"rx_modes[0].mode", af, func(v *vpp_interfaces.Interface) {
			v.RxModes = []*vpp_interfaces.Interface_RxMode{{Mode: vpp_interfaces.Interface_RxMode_ADAPTIVE}}
		}},
		{"rx_modes[0].mode", tapBase, func(v *vpp_interfaces.Interface) { v.RxModes = []*vpp_interfaces.Interface_RxMode{{}} }},
		{"rx_placements[1].queue", tapBase, func(v *vpp_interfaces.Interface) {
			v.RxPlacements = []*vpp_interfaces.Interface_RxPlacement{{Queue: 1}, {Queue: 1}}
		}},
		{"vxlan.vni", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().Vni = 1 << 24 }},
		{"vxlan.vni", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().Vni = 0 }},
		{"vxlan.src_address", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().SrcAddress = "10.0.0.1/24" }},
		{"vxlan.dst_address", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().DstAddress = "fd00::1" }},
		{"vxlan.dst_address", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().DstAddress = "10.0.0.1" }},
		{"vxlan.multicast", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().DstAddress = "239.0.0.1" }},
		{"vxlan.gpe", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().Gpe = &vpp_interfaces.VxlanLink_Gpe{} }},
		{"pipe.first_end", pipeEndOf("p", ""), func(v *vpp_interfaces.Interface) { v.GetPipe().FirstEnd = "p" }},
		{"phys_address", pipeEndOf("p", ""), func(v *vpp_interfaces.Interface) { v.PhysAddress = "02:00:00:00:00:01" }},
		{"sub.parent_name", sub, func(v *vpp_interfaces.Interface) { v.GetSub().ParentName = "" }},
		{"sub.parent_name", sub, func(v *vpp_interfaces.Interface) { v.GetSub().ParentName = "s" }},
		{"sub.sub_id", sub, func(v *vpp_interfaces.Interface) { v.GetSub().SubId = 4095 }},
		{"sub.tag_rw_option", sub, func(v *vpp_interfaces.Interface) { v.GetSub().TagRwOption = vpp_interfaces.SubInterface_POP2 }},
		{"memif.socket_filename", mem, func(v *vpp_interfaces.Interface) { v.GetMemif().SocketFilename = "m.sock" }},
		{"memif.socket_filename", mem, func(v *vpp_interfaces.Interface) { v.GetMemif().SocketFilename = "/run/a=b.sock" }},
		{"memif.socket_filename", mem, func(v *vpp_interfaces.Interface) { v.GetMemif().SocketFilename = "/" + strings.Repeat("x", 107) }},
		{"memif.secret", mem, func(v *vpp_interfaces.Interface) { v.GetMemif().Secret = strings.Repeat("x", 24) }},
		{"memif.ring_size", mem, func(v *vpp_interfaces.Interface) { v.GetMemif().RingSize = 1000 }},
		{"memif.rx_queues", mem, func(v *vpp_interfaces.Interface) { v.GetMemif().RxQueues = 256 }},
		{"memif.mode", mem, func(v *vpp_interfaces.Interface) { v.GetMemif().Mode = vpp_interfaces.MemifLink_PUNT_INJECT }},
	} {
		checkFault(t, c.field, invalid(edit(c.base, c.do)))
	}
}

// checkFault checks that there is exactly one fault, and that it names the field.
func checkFault(t *testing.T, field string, err error) {
	t.Helper()
	switch {
	case field == "" && err != nil:
		t.Errorf("refused: %v", err)
	case field != "" && err == nil:
		t.Errorf("%s: not refused", field)
	case field != "" && !strings.Contains(err.Error(), " "+field+": "):
		t.Errorf("%s: refused with %v", field, err)
	}
}

func TestValidateOthers(t *testing.T) {
	invalid := validator(t)
	route := &vpp_l3.Route{DstNetwork: "10.0.0.0/8", NextHopAddr: "10.1.0.1"}
	for _, c := range []struct {
		field string
		do    func(*vpp_l3.Route)
	}{
		{"", func(*vpp_l3.Route) {}},
		{"dst_network", func(v *vpp_l3.Route) { v.DstNetwork = "10.0.0.0" }},
		{"next_hop_addr", func(v *vpp_l3.Route) { v.NextHopAddr = "fd00::1" }},
		{"next_hop_addr", func(v *vpp_l3.Route) { v.NextHopAddr = "gateway" }},
		{"next_hop_addr", func(v *vpp_l3.Route) { v.NextHopAddr = "" }},
		{"via_vrf_id", func(v *vpp_l3.Route) { v.Type, v.NextHopAddr = vpp_l3.Route_INTER_VRF, "" }},
		{"outgoing_interface", func(v *vpp_l3.Route) {
			v.Type, v.ViaVrfId, v.OutgoingInterface = vpp_l3.Route_INTER_VRF, 1, "x"
		}},
		{"weight", func(v *vpp_l3.Route) { v.Weight = 256 }},
		{"preference", func(v *vpp_l3.Route) { v.Preference = 256 }},
		{"type", func(v *vpp_l3.Route) { v.Type = 9 }},
	} {
		checkFault(t, c.field, invalid(edit(route, c.do)))
	}
	bd := &vpp_l2.BridgeDomain{Name: "bd", Interfaces: []*vpp_l2.BridgeDomain_Interface{
		{Name: "a", BridgedVirtualInterface: true}, {Name: "b"},
	}}
	for _, c := range []struct {
		field string
		do    func(*vpp_l2.BridgeDomain)
	}{
		{"", func(*vpp_l2.BridgeDomain) {}},
		{"name", func(v *vpp_l2.BridgeDomain) { v.Name = "" }},
		{"mac_age", func(v *vpp_l2.BridgeDomain) { v.MacAge = 256 }},
		{"interfaces[1].bridged_virtual_interface", func(v *vpp_l2.BridgeDomain) {
			v.Interfaces[1].BridgedVirtualInterface = true
		}},
		{"interfaces[1].name", func(v *vpp_l2.BridgeDomain) { v.Interfaces[1].Name = "" }},
		{"interfaces[0].split_horizon_group", func(v *vpp_l2.BridgeDomain) { v.Interfaces[0].SplitHorizonGroup = 300 }},
		{"arp_termination_table[0].ip_address", func(v *vpp_l2.BridgeDomain) {
			v.ArpTerminationTable = []*vpp_l2.BridgeDomain_ArpTerminationEntry{{PhysAddress: "02:00:00:00:00:01"}}
		}},
	} {
		checkFault(t, c.field, invalid(edit(bd, c.do)))
	}
	checkFault(t, "protocol", invalid(&vpp_l3.VrfTable{Protocol: 3}))
	checkFault(t, "id", invalid(&vpp_l3.VrfTable{Id: kit.None}))
	checkFault(t, "interface", invalid(&vpp_l3.ARPEntry{IpAddress: "10.0.0.1", PhysAddress: "02:00:00:00:00:01"}))
	checkFault(t, "ip_address", invalid(&vpp_l3.ARPEntry{Interface: "x", PhysAddress: "02:00:00:00:00:01"}))
	checkFault(t, "phys_address", invalid(&vpp_l3.ARPEntry{Interface: "x", IpAddress: "10.0.0.1"}))
	checkFault(t, "outgoing_interface", invalid(&vpp_l2.FIBEntry{BridgeDomain: "b", PhysAddress: "02:00:00:00:00:01"}))
	checkFault(t, "ranges[0].last_ip_addr", invalid(&vpp_l3.ProxyARP{
		Ranges: []*vpp_l3.ProxyARP_Range{{FirstIpAddr: "10.0.0.2", LastIpAddr: "10.0.0.1"}},
	}))
}

// validator returns a function that validates a value with the registered descriptors. No VPP is needed.
func validator(t *testing.T) func(proto.Message) error {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(t.Context(), log)
	c := conn.New(conn.Config{Socket: filepath.Join(t.TempDir(), "none")}, log)
	lane := c.Lane()
	s := scheduler.New(scheduler.Config{Backends: []scheduler.Backend{lane}, Jobs: jobs}, log)
	if err := Register(s, Deps{Lane: lane, Index: iface.NewIndex()}); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := jobs.Stop(5 * time.Second); err != nil {
			t.Error(err)
		}
	})
	return func(v proto.Message) error {
		key, err := nb.Key(v)
		if err != nil {
			return fmt.Errorf("key: name: %w", err) // the key has the name
		}
		_, err = s.Plan(t.Context(), &txn.Txn{Kind: txn.Update, Values: []txn.KV{{Key: key, Value: v}}})
		return err
	}
}
