package vpp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/fib"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memif"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/pipe"
	"go.fd.io/govpp/binapi/tapv2"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vxlan"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// Deps is what the kinds need of others. All functions are called on the scheduler's goroutine.
type Deps struct {
	// Lane carries the requests; the scheduler flushes it. Required.
	Lane *conn.Lane
	// Index is filled by the kinds, for others to look things up. Required.
	Index *Index
	// LinuxDevice is the device, in VPP's network namespace, of a logical Linux interface.
	LinuxDevice func(logical string) (dev string, ok bool)
	// LinuxTap reports where the Linux end of a TAP is now, so that a new VPP can attach to it: the path of the network namespace (empty
	// for VPP's own) and the device.
	LinuxTap func(vppIfName string) (netnsPath, dev string, ok bool)
	// LinuxTapMAC is the hardware address of that end. VPP sets one when it attaches: if it is not known, a random one, and
	// static neighbour entries for the pod are wrong from then on. Needed for ends in other network namespaces.
	LinuxTapMAC func(vppIfName string) (net.HardwareAddr, bool)
	// MakeTap makes the Linux end of a TAP ahead, in the network namespace where it is to be (a path, or a name below
	// /run/netns), for VPP to attach to; made is false when VPP had better make it. DropTap removes it when VPP did not take it.
	// Optional, both or none: without them VPP makes the device, which may take it 20 ms.
	MakeTap func(netns, dev string, tun bool) (made bool, err error)
	DropTap func(netns, dev string) error
	// Isolate keeps the host's network stack off a device of ours which an af_packet interface is on. It is called when VPP has
	// everything it needs, since VPP gives the device its own hardware address. Needed for VETH pods.
	Isolate func(dev string) error
	// Share prepares a NIC of the host which an af_packet interface is on, so that both may use it. Optional.
	Share func(dev string) error
	// AfPacket sizes the rings of af_packet interfaces; DefaultAfPacketRings when zero.
	AfPacket AfPacketRings
	// Pool has interfaces that are ready. Optional.
	Pool Pool
	// Segments reports whether VPP splits packets that stand for several, as our plugin does. Optional: without it no TAP takes such.
	Segments func() bool
	// Log is for what is not an error of a value. Optional.
	Log *slog.Logger
	// Trash takes interfaces whose deletion would keep VPP busy. Optional: without it they are deleted at once.
	Trash *Trash
	// NAT is what can be set of NAT44; zeros are VPP's defaults.
	NAT NATSettings
}

// Pool has interfaces that were made ahead. What it hands out is the caller's; only tag and addresses remain to be set.
type Pool interface {
	// ClaimTap hands out a TAP made as spec says; hostDev is its device in VPP's network namespace.
	ClaimTap(spec TapSpec) (swIfIndex uint32, hostDev string, ok bool)
	// ClaimAfPacket hands out the interface that is attached to a device.
	ClaimAfPacket(hostDev string) (swIfIndex uint32, ok bool)
}

// Register adds the kinds of all VPP objects of this package.
func Register(s *scheduler.Scheduler, deps Deps) error {
	if deps.Lane == nil || deps.Index == nil {
		return errors.New("vpp: Deps.Lane and Deps.Index are required")
	}
	k := newKinds(deps)
	deps.Lane.OnBoot(k.newVPP)
	for _, err := range []error{
		scheduler.Register(s, k.tableKind()),
		scheduler.Register(s, k.interfaceKind()),
		scheduler.Register(s, k.ifTableKind()),
		scheduler.Register(s, k.ifPlaceKind()),
		scheduler.Register(s, k.ifAddressKind()),
		scheduler.Register(s, k.ifHasIPKind()),
		scheduler.Register(s, k.ifUnnumberedKind()),
		scheduler.Register(s, k.ifMTUKind()),
		scheduler.Register(s, k.ifRxModesKind()),
		scheduler.Register(s, k.ifPlacementKind()),
		scheduler.Register(s, k.bridgeKind()),
		scheduler.Register(s, k.memberKind()),
		scheduler.Register(s, k.bridgeARPKind()),
		scheduler.Register(s, k.xconnectKind()),
		scheduler.Register(s, k.neighbourKind()),
		scheduler.Register(s, k.fibKind()),
		scheduler.Register(s, k.proxyARPKind()),
		scheduler.Register(s, k.proxyIfKind()),
		scheduler.Register(s, k.proxyRangeKind()),
		scheduler.Register(s, k.scanKind()),
		scheduler.Register(s, k.routeKind()),
		scheduler.Register(s, k.ifDHCPKind()),
		scheduler.Register(s, k.aclKind()),
		scheduler.Register(s, k.aclInterfaceKind()),
		scheduler.Register(s, k.natGlobalKind()),
		scheduler.Register(s, k.natTimeoutsKind()),
		scheduler.Register(s, k.natInterfaceKind()),
		scheduler.Register(s, k.natPoolKind()),
		scheduler.Register(s, k.natAddressKind()),
		scheduler.Register(s, k.dnatKind()),
		scheduler.Register(s, k.natMappingKind()),
		scheduler.Register(s, k.natIdentityKind()),
		k.registerContiv(s),
		scheduler.Register(s, k.ifUpKind()),
	} {
		if err != nil {
			return fmt.Errorf("register the VPP kinds: %w", err)
		}
	}
	return nil
}

// newVPP forgets what was known of another VPP and no dump tells.
func (k *kinds) newVPP() {
	k.idx.clear()
	clear(k.held)
}

func newKinds(deps Deps) *kinds {
	if deps.AfPacket == (AfPacketRings{}) {
		deps.AfPacket = DefaultAfPacketRings()
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	deps.NAT.setDefaults()
	return &kinds{
		lane: deps.Lane, deps: deps, idx: deps.Index, types: ifTypes(),
		long: longNames{}, held: map[tableID]bool{}, sockets: map[string]socketWait{}, uncertain: map[string]suspect{},
		log: deps.Log.With("component", "vpp-kinds"),
		nat: natState{places: map[string][]natBackend{}, inAndOut: map[string]bool{}},
		acl: newACLState(),
	}
}

// Messages are all requests that the kinds send, for the check of compatibility when a VPP is connected; except for those of our own plugin
// (ContivMessages), which VPP need not have.
func Messages() []api.Message {
	return []api.Message{
		&acl.ACLAddReplace{}, &acl.ACLDel{}, &acl.ACLDump{}, &acl.ACLInterfaceListDump{}, &acl.ACLInterfaceSetACLList{},
		&acl.ACLPluginGetConnTableMaxEntries{},
		&af_packet.AfPacketCreateV3{}, &af_packet.AfPacketDelete{}, &af_packet.AfPacketDump{},
		&arp.ProxyArpAddDel{}, &arp.ProxyArpDump{}, &arp.ProxyArpIntfcDump{}, &arp.ProxyArpIntfcEnableDisable{},
		&dhcp.DHCPClientConfig{}, &dhcp.DHCPClientDump{}, &dhcp.DHCPComplEvent{},
		&feature.FeatureEnableDisable{}, &feature.FeatureIsEnabled{},
		&fib.FibSourceDump{},
		&interfaces.CreateLoopbackInstance{}, &interfaces.DeleteLoopback{},
		&interfaces.CreateVlanSubif{}, &interfaces.DeleteSubif{},
		&interfaces.HwInterfaceSetMtu{}, &interfaces.SwInterfaceSetMtu{},
		&interfaces.SwInterfaceAddDelAddress{}, &interfaces.SwInterfaceDump{}, &interfaces.SwInterfaceGetTable{},
		&interfaces.SwInterfaceRxPlacementDump{}, &interfaces.SwInterfaceSetFlags{},
		&interfaces.SwInterfaceSetMacAddress{}, &interfaces.SwInterfaceSetRxMode{},
		&interfaces.SwInterfaceSetRxPlacement{}, &interfaces.SwInterfaceSetTable{},
		&interfaces.SwInterfaceSetUnnumbered{}, &interfaces.SwInterfaceTagAddDel{}, &interfaces.WantInterfaceEvents{},
		&ip.IPAddressDump{}, &ip.IPRouteAddDelV2{}, &ip.IPRouteV2Dump{}, &ip.IPTableAddDelV2{}, &ip.IPTableDump{},
		&ip.IPUnnumberedDump{}, &ip.SetIPFlowHashV3{},
		&ip_neighbor.IPNeighborAddDel{}, &ip_neighbor.IPNeighborConfig{}, &ip_neighbor.IPNeighborConfigGet{},
		&ip_neighbor.IPNeighborDump{},
		&l2.BdIPMacAddDel{}, &l2.BdIPMacDump{}, &l2.BridgeDomainAddDelV2{}, &l2.BridgeDomainDump{},
		&l2.BridgeDomainSetMacAge{}, &l2.BridgeFlags{}, &l2.L2FibTableDump{}, &l2.L2InterfaceVlanTagRewrite{},
		&l2.L2XconnectDump{}, &l2.L2fibAddDel{}, &l2.SwInterfaceSetL2Bridge{}, &l2.SwInterfaceSetL2Xconnect{},
		&memif.MemifCreateV2{}, &memif.MemifDelete{}, &memif.MemifDump{}, &memif.MemifSocketFilenameAddDelV2{},
		&memif.MemifSocketFilenameDump{},
		&nat44_ed.Nat44AddDelAddressRange{}, &nat44_ed.Nat44AddDelIdentityMapping{}, &nat44_ed.Nat44AddDelLbStaticMapping{},
		&nat44_ed.Nat44AddDelStaticMappingV2{}, &nat44_ed.Nat44AddressDump{}, &nat44_ed.Nat44DelSession{},
		&nat44_ed.Nat44EdAddDelOutputInterface{}, &nat44_ed.Nat44EdOutputInterfaceGet{}, &nat44_ed.Nat44EdPluginEnableDisable{},
		&nat44_ed.Nat44ForwardingEnableDisable{}, &nat44_ed.Nat44IdentityMappingDump{}, &nat44_ed.Nat44InterfaceAddDelFeature{},
		&nat44_ed.Nat44InterfaceDump{}, &nat44_ed.Nat44LbStaticMappingAddDelLocal{}, &nat44_ed.Nat44LbStaticMappingDump{},
		&nat44_ed.Nat44ShowRunningConfig{}, &nat44_ed.Nat44StaticMappingDump{}, &nat44_ed.Nat44UserSessionV3Dump{},
		&nat44_ed.NatSetTimeouts{}, &nat44_ed.NatWorkerDump{},
		&pipe.PipeCreate{}, &pipe.PipeDelete{}, &pipe.PipeDump{},
		&tapv2.SwInterfaceTapV2Dump{}, &tapv2.TapCreateV3{}, &tapv2.TapDeleteV2{},
		&vlib.ShowThreads{},
		&vxlan.VxlanAddDelTunnelV3{}, &vxlan.VxlanTunnelV2Dump{},
	}
}
