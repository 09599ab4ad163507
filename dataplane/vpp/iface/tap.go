package iface

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/tapv2"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

const (
	tapRing       = 256 // VPP's default
	tapRingMax    = 32768
	namespaceMax  = 63
	netnsDirRun   = "/run/netns/"
	netnsDirVar   = "/var/run/netns/"
	tapNamePrefix = "cvt-"
)

// tapType returns the type of TAPs. A TAP's Linux end is made in the network namespace that tap.to_microservice names (a path, or a name
// below /run/netns), under the name tap.host_if_name; otherwise in VPP's own namespace, from which the Linux side moves it. A device made
// in place needs no move, which takes up to 20 ms of RCU grace periods in the kernel. The Linux side makes the device and VPP attaches to
// it (Deps.MakeTap).
//
// TAPs are persistent: when VPP dies the pod keeps its device, with addresses and routes, and the new VPP attaches to it. Deleting a TAP
// also removes the device.
//
// A TAP with tap.enable_gso receives packets of 64 kB whose checksums are not computed yet. Only our own plugin in VPP handles these
// correctly; it also checks the headers, which a pod may have forged. Any other TAP has no offloads: the pod's kernel segments the packets
// of the pod and computes their checksums, so VPP receives complete packets of at most the MTU (docs/adr/0013).
func tapType() *ifType {
	return &ifType{
		mtu:      9000,
		rxMode:   interface_types.RX_MODE_API_INTERRUPT,
		validate: validateTap,
		create:   createTap,
		equal:    equalTap,
		read:     readTap,
		remove: func(k *Descriptors, e *ifEntry, _ *vpp_interfaces.Interface, done func(error)) {
			conn.Call(k.Lane, &tapv2.TapDeleteV2{SwIfIndex: interface_types.InterfaceIndex(e.Index)},
				func(_ *tapv2.TapDeleteV2Reply, err error) { done(err) })
		},
	}
}

func validateTap(v *vpp_interfaces.Interface, f *kit.Faults) {
	t := v.GetTap()
	f.Device("tap.host_if_name", t.GetHostIfName())
	for field, n := range map[string]uint32{"tap.rx_ring_size": t.GetRxRingSize(), "tap.tx_ring_size": t.GetTxRingSize()} {
		if !kit.IsPowerOf2(n) || n > tapRingMax {
			f.Add(field, "%d is not a power of two up to %d", n, tapRingMax)
		}
	}
	if ns := t.GetToMicroservice(); len(shortNamespace(ns)) > namespaceMax {
		f.Add("tap.to_microservice", "the path of the network namespace %s is longer than the %d bytes that VPP keeps", ns, namespaceMax)
	}
	if t.GetVersion() > 2 {
		f.Add("tap.version", "%d: VPP has version 2 only", t.GetVersion())
	}
	if t.GetEnableGso() && t.GetEnableTunnel() {
		f.Add("tap.enable_gso", "not supported for a tunnel (tap.enable_tunnel): VPP does not check its packets (docs/adr/0013)")
	}
	if t.GetEnableTunnel() && v.PhysAddress != "" {
		f.Add("phys_address", "not supported for a tunnel (tap.enable_tunnel)")
	}
}

// errNoSegmentation disappears with the resync after another VPP process has been connected.
var errNoSegmentation = errors.New("tap.enable_gso: VPP runs without the contiv plugin, and damages packets when it splits them (docs/adr/0013)")

// tapSpec holds the properties of a TAP that its creation needs.
type tapSpec struct {
	rxRing, txRing uint32
	rxQueues       uint32 // from Linux; VPP creates one queue to Linux for each of its threads
	tunnel, gso    bool
}

// tapSpecOf returns the properties of a TAP's value, with VPP's defaults filled in.
func tapSpecOf(v *vpp_interfaces.Interface) tapSpec {
	t := v.GetTap()
	s := tapSpec{
		rxRing: t.GetRxRingSize(), txRing: t.GetTxRingSize(), rxQueues: rxQueues(v), tunnel: t.GetEnableTunnel(), gso: t.GetEnableGso(),
	}
	if s.rxRing == 0 {
		s.rxRing = tapRing
	}
	if s.txRing == 0 {
		s.txRing = tapRing
	}
	if s.rxQueues == 0 {
		s.rxQueues = 1
	}
	return s
}

// tapRequest returns the request for a persistent TAP with a Linux device called dev in VPP's network namespace.
func tapRequest(spec tapSpec, dev, tag string) *tapv2.TapCreateV3 {
	flags := tapv2.TAP_API_FLAG_PERSIST
	if spec.tunnel {
		flags |= tapv2.TAP_API_FLAG_TUN
	}
	if spec.gso {
		flags |= tapv2.TAP_API_FLAG_GSO // this flag also enables checksum offload
	}
	return &tapv2.TapCreateV3{
		ID: kit.None, UseRandomMac: true, NumRxQueues: uint16(max(1, spec.rxQueues)), NumTxQueues: 1,
		RxRingSz: uint16(spec.rxRing), TxRingSz: uint16(spec.txRing),
		TapFlags: flags, HostIfNameSet: true, HostIfName: dev,
		// VPP stores the tag without a terminating zero, and dumps the memory behind it, too.
		Tag: tag + "\x00",
	}
}

func createTap(k *Descriptors, v *vpp_interfaces.Interface, done func(made, error)) {
	link := v.GetTap()
	spec := tapSpecOf(v)
	if spec.gso && (k.deps.Segments == nil || !k.deps.Segments()) {
		done(made{}, errNoSegmentation)
		return
	}
	dev := link.GetHostIfName()
	end, attach := k.tapEnd(v.Name)
	if dev == "" {
		dev = tapDeviceName(v.Name)
	}
	req := tapRequest(spec, dev, kit.TagOf(v.Name))
	if v.PhysAddress != "" {
		req.UseRandomMac, req.MacAddress = false, kit.MAC(v.PhysAddress)
	}
	m := made{hostDev: dev, hasMAC: v.PhysAddress != ""}
	if ns := link.GetToMicroservice(); ns != "" && !attach {
		req.HostNamespaceSet, req.HostNamespace, m.moved = true, shortNamespace(ns), true
	}
	if attach {
		if err := end.addTo(req); err != nil {
			done(made{}, err)
			return
		}
		m.hostDev, m.moved = end.device, end.namespace != ""
	}
	k.clearDevice(v.Name, req.HostIfName)
	drop, err := k.makeTapEnd(req, !attach)
	if err != nil {
		done(made{}, err)
		return
	}
	conn.Call(k.Lane, req, func(r *tapv2.TapCreateV3Reply, err error) {
		if err != nil {
			byPod := req.HostNamespaceSet && causedByPod(err)
			if err = errors.Join(explainTap(err), drop()); byPod {
				err = scheduler.PodOnly(err)
			}
			done(made{hostDev: m.hostDev}, err)
			return
		}
		m.index, m.tagged = uint32(r.SwIfIndex), true
		done(m, nil)
	})
}

// makeTapEnd makes the device that VPP would otherwise make in another namespace. VPP finds the device there and configures it like its
// own. drop removes the device again, unless VPP has attached to it.
func (k *Descriptors) makeTapEnd(req *tapv2.TapCreateV3, isNew bool) (drop func() error, err error) {
	drop = func() error { return nil }
	if !isNew || !req.HostNamespaceSet || k.deps.MakeTap == nil {
		return drop, nil
	}
	made, err := k.deps.MakeTap(req.HostNamespace, req.HostIfName, req.TapFlags&tapv2.TAP_API_FLAG_TUN != 0)
	if err != nil || !made {
		return drop, err
	}
	return func() error { return k.deps.DropTap(req.HostNamespace, req.HostIfName) }, nil
}

// tapEnd is the Linux end of a TAP that a previous VPP process has left.
type tapEnd struct {
	namespace string // path; empty for VPP's own namespace
	device    string
	mac       net.HardwareAddr
}

func (k *Descriptors) tapEnd(name string) (end tapEnd, ok bool) {
	if k.deps.LinuxTap == nil {
		return end, false
	}
	end.namespace, end.device, ok = k.deps.LinuxTap(name)
	if !ok || end.device == "" {
		return end, false
	}
	if k.deps.LinuxTapMAC != nil {
		end.mac, _ = k.deps.LinuxTapMAC(name)
	}
	if end.mac == nil && end.namespace == "" {
		if dev, err := net.InterfaceByName(end.device); err == nil {
			end.mac = dev.HardwareAddr
		}
	}
	return end, true
}

// addTo makes a request attach to the device instead of making one. Without an address in the request VPP sets a random hardware address
// on the device, which would invalidate the static neighbour entries for it.
func (e tapEnd) addTo(req *tapv2.TapCreateV3) error {
	ns := shortNamespace(e.namespace)
	if len(ns) > namespaceMax {
		return fmt.Errorf("the path of the network namespace %s is longer than the %d bytes that VPP keeps", ns, namespaceMax)
	}
	req.TapFlags |= tapv2.TAP_API_FLAG_ATTACH
	req.HostIfName = e.device
	if ns != "" {
		req.HostNamespaceSet, req.HostNamespace = true, ns
	}
	if len(e.mac) == 6 {
		req.HostMacAddrSet, req.HostMacAddr = true, ethernet_types.NewMacAddress(e.mac)
	}
	return nil
}

// shortNamespace removes the directory where VPP looks up names.
func shortNamespace(path string) string {
	for _, dir := range []string{netnsDirVar, netnsDirRun} {
		if name, ok := strings.CutPrefix(path, dir); ok && !strings.Contains(name, "/") {
			return name
		}
	}
	return path
}

// noVhostNet is VPP's return code if it cannot open /dev/vhost-net.
const noVhostNet = api.SYSCALL_ERROR_1

// causedByPod reports whether a TAP that VPP makes in a pod's namespace failed because of the state of that namespace: it has disappeared, another
// device has the name, or the device was renamed, moved or removed before VPP had configured it. All other return codes have causes on the node, such
// as a vhost-net without a necessary feature. VPP returns the first two codes also if /dev/net/tun does not work; then the node's own TAPs fail, too.
func causedByPod(err error) bool {
	return conn.IsRetval(err, api.SYSCALL_ERROR_2, api.SYSCALL_ERROR_3, api.NETLINK_ERROR)
}

func explainTap(err error) error {
	if conn.IsRetval(err, noVhostNet) {
		return fmt.Errorf("%w: VPP could not open /dev/vhost-net: load the kernel module vhost_net and give the vswitch "+
			"container the device, or set useTAPInterfaces: false", err)
	}
	return err
}

// tapDeviceName returns a device name that no other interface has: the Linux side renames the device when it moves it into the pod.
func tapDeviceName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return tapNamePrefix + hex.EncodeToString(sum[:])[:15-len(tapNamePrefix)]
}

func equalTap(_ *Descriptors, desired, applied *vpp_interfaces.Interface) bool {
	d, a := desired.GetTap(), applied.GetTap()
	if d == a && rxQueues(desired) == rxQueues(applied) {
		return true
	}
	if tapSpecOf(desired) != tapSpecOf(applied) {
		return false
	}
	if ns := a.GetToMicroservice(); ns != "" {
		// If the desired value has no namespace, the Linux side has moved the device there, and may have renamed it.
		return d.GetToMicroservice() == "" ||
			shortNamespace(ns) == shortNamespace(d.GetToMicroservice()) &&
				(d.GetHostIfName() == "" || d.GetHostIfName() == a.GetHostIfName())
	}
	return d.GetToMicroservice() != "" ||
		(d.GetHostIfName() == "" || a.GetHostIfName() == "" || d.GetHostIfName() == a.GetHostIfName())
}

func readTap(_ *Descriptors, s *ifState, v *vpp_interfaces.Interface) bool {
	if s.tap == nil {
		return false
	}
	link := &vpp_interfaces.TapLink{
		Version:      2,
		RxRingSize:   uint32(s.tap.RxRingSz),
		TxRingSize:   uint32(s.tap.TxRingSz),
		EnableGso:    s.tap.TapFlags&(tapv2.TAP_API_FLAG_GSO|tapv2.TAP_API_FLAG_CSUM_OFFLOAD) != 0,
		EnableTunnel: s.tap.TapFlags&tapv2.TAP_API_FLAG_TUN != 0,
	}
	link.HostIfName, link.ToMicroservice = s.tap.HostIfName, s.tap.HostNamespace
	if link.EnableTunnel {
		v.PhysAddress = ""
	}
	v.RxPlacements = s.placements()
	v.Link = &vpp_interfaces.Interface_Tap{Tap: link}
	return true
}
