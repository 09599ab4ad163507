package iface

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/dhcp"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/memif"
	"go.fd.io/govpp/binapi/tapv2"
	"go.fd.io/govpp/binapi/vxlan"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// Snapshot holds the data that VPP reports about our interfaces. The descriptors of an interface and of its items share one
// snapshot in a dump.
type Snapshot struct {
	Ours    []*ifState // ascending sw_if_index
	ByIndex map[uint32]*ifState
	// leftovers are also ours, but incomplete: see leftovers.go. Their items are not collected.
	leftovers []*ifState

	all        map[uint32]*interfaces.SwInterfaceDetails
	taps       map[uint32]*tapv2.SwInterfaceTapV2Details
	afPackets  map[uint32]string
	memifs     map[uint32]*memif.MemifDetails
	sockets    map[uint32]string
	vxlans     map[uint32]*vxlan.VxlanTunnelV2Details
	unnumbered map[uint32]uint32
	queues     map[uint32][]*interfaces.SwInterfaceRxPlacementDetails
	dhcp       map[uint32]*dhcp.DHCPClientDetails
	pipes      map[uint32]*pipeEnd
}

// ifState is one interface of ours in VPP.
type ifState struct {
	Name    string
	kind    ifKind
	Details *interfaces.SwInterfaceDetails

	hostDev    string // of an af_packet interface or a TAP
	tap        *tapv2.SwInterfaceTapV2Details
	memif      *memif.MemifDetails
	socketFile string
	vxlan      *vxlan.VxlanTunnelV2Details
	pipe       *pipeEnd

	dhcp  bool // the interface has a client
	Lease netip.Prefix

	vrf4, vrf6 uint32
	Addresses  []netip.Prefix
	unnumbered string // the interface whose addresses it borrows
	queues     []*interfaces.SwInterfaceRxPlacementDetails
}

func (s *ifState) Up() bool { return s.Details.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0 }

// mtu returns the MTU, or 0 if it is VPP's default.
func (s *ifState) mtu(t *ifType) uint32 {
	if s.Details.Mtu[0] == t.mtu {
		return 0
	}
	return s.Details.Mtu[0]
}

// snapshots keeps the snapshot of the current resync, so that all descriptors can share it.
type snapshots struct {
	ctx     context.Context
	current *Snapshot
	waiting []func(*Snapshot, error)
}

// invalidate drops the snapshot. It is called before anything is written.
func (s *snapshots) invalidate() { s.ctx, s.current = nil, nil }

// Snapshot takes a snapshot, or shares the one that was taken in the same resync.
func (k *Descriptors) Snapshot(op *scheduler.DumpOp, done func(*Snapshot, error)) {
	if op.Partial() {
		k.partialSnapshot(op, done)
		return
	}
	ctx := op.Context()
	if k.snap.current != nil && k.snap.ctx == ctx && ctx.Done() != nil {
		done(k.snap.current, nil)
		return
	}
	k.snap.waiting = append(k.snap.waiting, done)
	if len(k.snap.waiting) > 1 {
		return
	}
	k.snap.invalidate()
	s := newIfSnapshot()
	k.collect(s, func(err error) {
		waiting := k.snap.waiting
		k.snap.waiting = nil
		if err != nil {
			s, err = nil, fmt.Errorf("vpp: dump interfaces: %w", err)
		} else {
			k.snap.ctx, k.snap.current = ctx, s
		}
		for _, done := range waiting {
			done(s, err)
		}
	})
}

func newIfSnapshot() *Snapshot {
	return &Snapshot{
		ByIndex: map[uint32]*ifState{}, all: map[uint32]*interfaces.SwInterfaceDetails{},
		taps: map[uint32]*tapv2.SwInterfaceTapV2Details{}, afPackets: map[uint32]string{},
		memifs: map[uint32]*memif.MemifDetails{}, sockets: map[uint32]string{},
		vxlans: map[uint32]*vxlan.VxlanTunnelV2Details{}, unnumbered: map[uint32]uint32{},
		queues: map[uint32][]*interfaces.SwInterfaceRxPlacementDetails{}, dhcp: map[uint32]*dhcp.DHCPClientDetails{},
		pipes: map[uint32]*pipeEnd{},
	}
}

// collect runs the dumps that cover all interfaces, and then the requests that are needed for each interface of ours.
func (k *Descriptors) collect(s *Snapshot, done func(error)) {
	const dumps = 10
	part := kit.Join(dumps, func(err error) {
		if err != nil {
			done(err)
			return
		}
		k.build(s)
		k.collectEach(s, done)
	})
	optional := func(err error) { // for plugins that may not be loaded
		if errors.Is(err, conn.ErrUnknownMessage) {
			err = nil
		}
		part(err)
	}
	all := interface_types.InterfaceIndex(kit.None)
	conn.Dump(k.Lane, &interfaces.SwInterfaceDump{SwIfIndex: all},
		func(d *interfaces.SwInterfaceDetails) { s.all[uint32(d.SwIfIndex)] = d }, part)
	conn.Dump(k.Lane, &tapv2.SwInterfaceTapV2Dump{SwIfIndex: all},
		func(d *tapv2.SwInterfaceTapV2Details) { s.taps[d.SwIfIndex] = d }, part)
	k.collectAfPackets(s, optional)
	conn.Dump(k.Lane, &memif.MemifDump{},
		func(d *memif.MemifDetails) { s.memifs[uint32(d.SwIfIndex)] = d }, optional)
	conn.Dump(k.Lane, &memif.MemifSocketFilenameDump{},
		func(d *memif.MemifSocketFilenameDetails) { s.sockets[d.SocketID] = d.SocketFilename }, optional)
	conn.Dump(k.Lane, &vxlan.VxlanTunnelV2Dump{SwIfIndex: all},
		func(d *vxlan.VxlanTunnelV2Details) { s.vxlans[uint32(d.SwIfIndex)] = d }, optional)
	k.collectDHCP(s, optional)
	k.collectPipes(s, optional)
	conn.Dump(k.Lane, &ip.IPUnnumberedDump{SwIfIndex: all},
		func(d *ip.IPUnnumberedDetails) { s.unnumbered[uint32(d.SwIfIndex)] = uint32(d.IPSwIfIndex) }, part)
	conn.Dump(k.Lane, &interfaces.SwInterfaceRxPlacementDump{SwIfIndex: all},
		func(d *interfaces.SwInterfaceRxPlacementDetails) {
			s.queues[uint32(d.SwIfIndex)] = append(s.queues[uint32(d.SwIfIndex)], d)
		}, part)
}

func (k *Descriptors) collectAfPackets(s *Snapshot, done func(error)) {
	conn.Dump(k.Lane, &af_packet.AfPacketDump{},
		func(d *af_packet.AfPacketDetails) { s.afPackets[uint32(d.SwIfIndex)] = d.HostIfName }, done)
}

func (k *Descriptors) collectDHCP(s *Snapshot, done func(error)) {
	conn.Dump(k.Lane, &dhcp.DHCPClientDump{},
		func(d *dhcp.DHCPClientDetails) { s.dhcp[uint32(d.Client.SwIfIndex)] = d }, done)
}

// build finds our interfaces and updates the index.
func (k *Descriptors) build(s *Snapshot) {
	var entries []*ifEntry
	for index, d := range s.all {
		short, ours := kit.NameOfTag(d.Tag)
		if !ours || index == 0 {
			continue
		}
		st := s.state(k.Names.Full(short), index, d)
		s.ByIndex[index] = st
		s.Ours = append(s.Ours, st)
		entries = append(entries, s.entry(st))
	}
	slices.SortFunc(s.Ours, func(a, b *ifState) int { return int(a.Details.SwIfIndex) - int(b.Details.SwIfIndex) })
	k.idx.replace(entries)
	k.findLeftovers(s)
	for index, from := range s.unnumbered {
		if st := s.ByIndex[index]; st != nil {
			st.unnumbered, _ = k.idx.NameByIndex(from)
		}
	}
}

// entry returns the index entry of an interface.
func (s *Snapshot) entry(st *ifState) *ifEntry {
	d := st.Details
	e := &ifEntry{name: st.Name, Index: uint32(d.SwIfIndex), kind: st.kind, hostDev: st.hostDev}
	if st.tap != nil {
		e.moved = st.tap.HostNamespace != ""
	}
	if st.memif != nil {
		e.socket = st.memif.SocketID
	}
	if st.kind == vpp_interfaces.Interface_SUB_INTERFACE {
		e.Rewrite = tagRewrite(e.Index, &vpp_interfaces.SubInterface{
			TagRwOption: vpp_interfaces.SubInterface_TagRewriteOptions(d.VtrOp),
			PushDot1Q:   d.VtrPushDot1q != 0, Tag1: d.VtrTag1, Tag2: d.VtrTag2,
		})
	}
	return e
}

func (s *Snapshot) state(name string, index uint32, d *interfaces.SwInterfaceDetails) *ifState {
	st := &ifState{Name: name, Details: d, queues: s.queues[index], kind: vpp_interfaces.Interface_UNDEFINED_TYPE}
	if client := s.dhcp[index]; client != nil {
		st.dhcp, st.Lease = true, leasedPrefix(&client.Lease)
	}
	switch {
	case kit.IsNICTag(d.Tag):
		st.kind = vpp_interfaces.Interface_DPDK
	case d.Type == interface_types.IF_API_TYPE_SUB:
		st.kind = vpp_interfaces.Interface_SUB_INTERFACE
	case d.InterfaceDevType == loopbackDevice:
		st.kind = vpp_interfaces.Interface_SOFTWARE_LOOPBACK
	case s.taps[index] != nil:
		st.kind, st.tap, st.hostDev = kindTap, s.taps[index], s.taps[index].HostIfName
	case s.afPackets[index] != "":
		st.kind, st.hostDev = vpp_interfaces.Interface_AF_PACKET, s.afPackets[index]
	case s.memifs[index] != nil:
		st.kind, st.memif = vpp_interfaces.Interface_MEMIF, s.memifs[index]
		if st.memif.SocketID != 0 {
			st.socketFile = s.sockets[st.memif.SocketID]
		}
	case s.vxlans[index] != nil:
		st.kind, st.vxlan = vpp_interfaces.Interface_VXLAN_TUNNEL, s.vxlans[index]
	case s.pipes[index] != nil:
		st.kind, st.pipe = vpp_interfaces.Interface_PIPE, s.pipes[index]
	}
	return st
}

// collectEach requests tables and addresses, which VPP reports only per interface.
func (k *Descriptors) collectEach(s *Snapshot, done func(error)) {
	if len(s.Ours) == 0 {
		done(nil)
		return
	}
	part := kit.Join(4*len(s.Ours), done)
	still := func(err error) { // the interface may have been deleted since
		if conn.IsRetval(err, api.INVALID_SW_IF_INDEX) {
			err = nil
		}
		part(err)
	}
	for _, st := range s.Ours {
		index := st.Details.SwIfIndex
		for _, v6 := range []bool{false, true} {
			conn.Call(k.Lane, &interfaces.SwInterfaceGetTable{SwIfIndex: index, IsIPv6: v6},
				func(r *interfaces.SwInterfaceGetTableReply, err error) {
					if err == nil {
						st.setTable(v6, r.VrfID)
					}
					still(err)
				})
			conn.Dump(k.Lane, &ip.IPAddressDump{SwIfIndex: index, IsIPv6: v6},
				func(d *ip.IPAddressDetails) {
					// The client may have got its address after the dump of the clients: every IPv4 address belongs
					// to the client.
					if p := kit.FromPrefix(ip_types.Prefix(d.Prefix)); !st.dhcp || p.Addr().Is6() {
						st.Addresses = append(st.Addresses, p)
					}
				}, still)
		}
	}
}

func (s *ifState) setTable(v6 bool, id uint32) {
	if v6 {
		s.vrf6 = id
	} else {
		s.vrf4 = id
	}
}
