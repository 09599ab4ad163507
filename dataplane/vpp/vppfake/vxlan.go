package vppfake

import (
	"fmt"
	"net/netip"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vxlan"
)

// vxlans holds the tunnels by VPP's lookup key, and the instances in use.
type vxlans struct {
	tunnels   map[vxlanKey]*iface
	devices   pool
	instances pool
}

// vxlanKey is the key of a tunnel. For IPv6 VPP's key has no source address: two tunnels to one peer with one VNI collide.
type vxlanKey struct {
	src, dst netip.Addr
	port     uint16
	vrf, vni uint32
}

// vxlanTunnel is VPP's record of a tunnel.
type vxlanTunnel struct {
	key              vxlanKey
	src, dst         netip.Addr
	srcPort, dstPort uint16
	instance, device uint32
	mcast            uint32
	decapNext        uint32
	table            *fib
	l3               bool
}

// vxlanPort is the UDP port of VXLAN; vxlanDecapL2 is the next node of decapsulation for layer 2, vxlanDecapMax the highest one.
const (
	vxlanPort     = 4789
	vxlanDecapL2  = 1
	vxlanDecapMax = 3
)

func (v *vxlans) start() { v.tunnels = map[vxlanKey]*iface{} }

func registerVxlan(t *table) {
	on(t, writes, vxlanAddDel)
	dump(t, func(c *call, q *vxlan.VxlanTunnelV2Dump, send func(*vxlan.VxlanTunnelV2Details)) {
		c.eachVxlan(q.SwIfIndex, func(i *iface, t *vxlanTunnel) {
			send(&vxlan.VxlanTunnelV2Details{SwIfIndex: interface_types.InterfaceIndex(i.index), Instance: t.instance,
				SrcAddress: apiAddress(t.src), DstAddress: apiAddress(t.dst), SrcPort: t.srcPort, DstPort: t.dstPort,
				McastSwIfIndex: interface_types.InterfaceIndex(t.mcast), EncapVrfID: t.table.id, DecapNextIndex: t.decapNext, Vni: t.key.vni})
		})
	})
	dump(t, func(c *call, q *vxlan.VxlanTunnelDump, send func(*vxlan.VxlanTunnelDetails)) {
		c.eachVxlan(q.SwIfIndex, func(i *iface, t *vxlanTunnel) {
			send(&vxlan.VxlanTunnelDetails{SwIfIndex: interface_types.InterfaceIndex(i.index), Instance: t.instance,
				SrcAddress: apiAddress(t.src), DstAddress: apiAddress(t.dst), McastSwIfIndex: interface_types.InterfaceIndex(t.mcast),
				EncapVrfID: t.table.id, DecapNextIndex: t.decapNext, Vni: t.key.vni})
		})
	})
}

func (st *state) eachVxlan(index interface_types.InterfaceIndex, f func(*iface, *vxlanTunnel)) {
	for _, i := range st.live() {
		if t, ok := i.hw.driver.detail.(*vxlanTunnel); ok && i.sub == nil && (uint32(index) == none || uint32(index) == i.index) {
			f(i, t)
		}
	}
}

func vxlanAddDel(c *call, q *vxlan.VxlanAddDelTunnelV3) *vxlan.VxlanAddDelTunnelV3Reply {
	t, rv := c.parseVxlan(q)
	index := none
	if rv == 0 && q.IsAdd {
		rv, index = c.addVxlan(t, q.Instance)
	} else if rv == 0 {
		rv, index = c.delVxlan(t)
	}
	return &vxlan.VxlanAddDelTunnelV3Reply{Retval: rv, SwIfIndex: interface_types.InterfaceIndex(index)}
}

func (st *state) parseVxlan(q *vxlan.VxlanAddDelTunnelV3) (*vxlanTunnel, int32) {
	t := &vxlanTunnel{src: netAddr(q.SrcAddress), dst: netAddr(q.DstAddress), srcPort: q.SrcPort, dstPort: q.DstPort,
		mcast: uint32(q.McastSwIfIndex), decapNext: q.DecapNextIndex, l3: q.IsL3}
	t.table = st.ip.tables[family(t.src)][q.EncapVrfID]
	switch {
	case t.table == nil:
		return nil, rvNoSuchFIB
	case t.src.Is4() != t.dst.Is4():
		return nil, rvInvalidValue
	case t.src == t.dst:
		return nil, rvSameSrcDst
	case t.dst.IsMulticast() && st.iface(q.McastSwIfIndex) == nil:
		return nil, rvInvalidSwIfIndex
	}
	if t.srcPort == 0 {
		t.srcPort = vxlanPort
	}
	if t.dstPort == 0 {
		t.dstPort = vxlanPort
	}
	t.key = vxlanKey{src: t.src, dst: t.dst, port: t.srcPort, vrf: q.EncapVrfID, vni: q.Vni}
	if t.src.Is6() || t.dst.IsMulticast() {
		t.key.src = netip.Addr{}
	}
	return t, 0
}

func (st *state) addVxlan(t *vxlanTunnel, instance uint32) (rv int32, index uint32) {
	if st.vxlan.tunnels[t.key] != nil {
		return rvTunnelExists, none
	}
	if t.decapNext == none {
		t.decapNext = vxlanDecapL2
	} else if t.decapNext > vxlanDecapMax {
		return rvInvalidDecapNext, none
	}
	t.device = st.vxlan.devices.lowest()
	if t.instance = instance; instance == none {
		t.instance = t.device
	}
	if !st.vxlan.instances.take(t.instance) {
		st.vxlan.devices.free(t.device)
		return rvInstanceInUse, none
	}
	hw := &hardware{devType: "VXLAN", ethernet: !t.l3, driver: driver{linkFollowsAdmin: true, setMTU: true, flags: true, detail: t,
		remove: removeVxlan, describe: func(*iface) []string {
			return []string{fmt.Sprintf("%s -> %s vni %d vrf %d", t.src, t.dst, t.key.vni, t.table.id)}
		}}}
	if hw.ethernet {
		hw.mac = st.randomMAC()
	}
	i := st.create(&iface{name: fmt.Sprintf("vxlan_tunnel%d", t.instance), hw: hw})
	st.vxlan.tunnels[t.key] = i
	st.setAdmin(i, true)
	if !t.dst.IsMulticast() {
		t.table.track(t.dst)
	}
	return 0, i.index
}

func (st *state) delVxlan(t *vxlanTunnel) (rv int32, index uint32) {
	i := st.vxlan.tunnels[t.key]
	if i == nil {
		return rvNoSuchEntry, none
	}
	st.delete(i)
	return 0, i.index
}

func removeVxlan(st *state, i *iface) {
	t := i.hw.driver.detail.(*vxlanTunnel)
	delete(st.vxlan.tunnels, t.key)
	st.vxlan.devices.free(t.device)
	st.vxlan.instances.free(t.instance)
	if !t.dst.IsMulticast() {
		t.table.untrack(t.dst)
	}
}
