package ipnet

import (
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipam"
	"contiv.dev/vswitch/plugins/ipnet/transport"
	"contiv.dev/vswitch/plugins/podmanager"
)

// With our own plugin (dataplane/vpp/plugin) VPP has the endpoint of each interface, and the addresses of the cluster: pods can send only
// from their own addresses, and nothing to the ports of the tunnels between nodes. The link of a pod stays down until its endpoint is
// configured.

// vxlanPort is the UDP port of VPP's tunnels.
const vxlanPort = 4789

// VPPPlugin reports whether VPP has our own plugin, and its workers.
type VPPPlugin interface {
	// Present reports whether VPP has the plugin; while VPP is not running, it reports the state of the last VPP.
	Present() bool
	// Workers returns the number of worker threads of the VPP that Present describes.
	Workers() int
	// Watch calls callback, from any goroutine, when the result of one of these methods may differ from its last result.
	Watch(callback func())
}

// ErrNoSourceCheck means that pods of the node can send with any source address.
var ErrNoSourceCheck = errors.New("VPP runs without the contiv plugin: pods' source addresses are not checked, and new pods that a network policy " +
	"selects do not start; install contiv_plugin.so with VPP's plugins")

// errNoSegmentation means that the node's VPP lacks a function that its configuration requires.
var errNoSegmentation = errors.New("contiv.conf: enableGSO is true or tcpChecksumOffloadDisabled is false, but VPP runs without the contiv plugin " +
	"and damages packets when it splits them; install contiv_plugin.so with VPP's plugins, or remove the option")

// pluginState is the state of the plugin as of the last resync; it may be used from any goroutine.
type pluginState struct {
	absent atomic.Bool // VPP is the dataplane and lacks the plugin
	wait   atomic.Bool // an event is in the queue
}

// pluginChange is the event for a VPP that has our plugin although the last one had not, or vice versa, or that has another number of
// workers than assumed.
type pluginChange struct{}

func (pluginChange) GetName() string             { return "VPP Plugin Change" }
func (pluginChange) String() string              { return "VPP Plugin Change" }
func (pluginChange) Method() api.EventMethodType { return api.UpstreamResync }
func (pluginChange) IsBlocking() bool            { return false }
func (pluginChange) Done(error)                  {}

// watchPlugin subscribes to the start of another VPP.
func (n *IPNet) watchPlugin() {
	if n.VPPPlugin != nil {
		n.VPPPlugin.Watch(func() { n.pushOnce(&n.plugin.wait, pluginChange{}) })
	}
}

// queryPlugin reports whether this resync is for a VPP with the plugin, and logs a warning when VPP has changed to one without it.
func (n *IPNet) queryPlugin() bool {
	n.plugin.wait.Store(false) // a change from here on may not be part of this resync and needs a new event
	if n.Dataplane != DataplaneVPP || n.VPPPlugin == nil {
		return false
	}
	present := n.VPPPlugin.Present()
	if before := n.plugin.absent.Swap(!present); !before && !present {
		n.Logger().Warn(ErrNoSourceCheck.Error())
	}
	return present
}

// placements returns one receive queue for each worker. A single worker has all queues automatically.
func (s *settings) placements() []*vpp_interfaces.Interface_RxPlacement {
	if s.workers < 2 {
		return nil
	}
	out := make([]*vpp_interfaces.Interface_RxPlacement, s.workers)
	for n := range out {
		out[n] = &vpp_interfaces.Interface_RxPlacement{Queue: uint32(n), Worker: uint32(n)}
	}
	return out
}

// segmentation reports whether TAPs leave segmentation to VPP, which only VPP with the plugin does correctly (docs/adr/0013).
func (n *IPNet) segmentation(ifc contivconf.InterfaceConfig, plugin bool) (bool, error) {
	if n.Dataplane != DataplaneVPP || !ifc.UseTAPInterfaces || !ifc.EnableGSO {
		return false, nil
	}
	if !plugin && !ifc.GSOIsDefault {
		return false, errNoSegmentation
	}
	return plugin, nil
}

// SourcesChecked returns the reason why pods can send with any source address, or nil. It may be called from any goroutine.
func (n *IPNet) SourcesChecked() error {
	if n.plugin.absent.Load() {
		return ErrNoSourceCheck
	}
	return nil
}

// HasPlugin reports whether the last resync was for a VPP with our plugin. Event loop only.
func (n *IPNet) HasPlugin() bool { return n.settings != nil && n.settings.plugin }

// pluginNode puts the plugin's data of this node, except for pods.
func (s *settings) pluginNode(v *values) {
	if !s.plugin {
		return
	}
	hostIf, _ := s.hostLinkNames()
	s.answersByHost(v, hostIf)
	v.put(&vpp_contiv.Endpoint{
		Interface: hostIf, Role: vpp_contiv.Endpoint_HOST, Name: "host", Addresses: s.ownAddresses(), AnswerVrf: s.answerVRF(),
	})
	if s.mainIf.InterfaceName != "" {
		s.endpoint(v, s.mainIf.InterfaceName, vpp_contiv.Endpoint_UPLINK, "uplink")
	}
	for _, other := range s.otherIfs {
		s.endpoint(v, other.InterfaceName, vpp_contiv.Endpoint_UPLINK, "uplink")
	}
	config := &vpp_contiv.Config{}
	if bvi := s.transport.BVI(); bvi != "" {
		s.endpoint(v, bvi, vpp_contiv.Endpoint_OVERLAY, "overlay")
		config.TunnelPorts = []uint32{vxlanPort}
	}
	v.put(config)
	s.pluginNetworks(v)
	s.sourceNAT(v)
	s.forwarded(v)
}

// answerVRF returns the table for answers of services to clients for which the host forwards: the first number that has no other use.
func (s *settings) answerVRF() uint32 {
	vrf := uint32(2)
	for vrf == s.mainVRF || vrf == s.podVRF {
		vrf++
	}
	return vrf
}

// answersByHost puts that table. All its routes lead to the host: the host has changed the destination of the requests, so its connection
// tracking must see the answers (dataplane/hostports).
func (s *settings) answersByHost(v *values, hostIf string) {
	v.vrfTable(s.answerVRF(), vrfAnswers)
	for _, l := range s.hostLinks {
		v.route(s.answerVRF(), anyPrefix(l.Host.Addr()), l.Host.Addr(), hostIf)
	}
}

func (s *settings) endpoint(v *values, ifName string, role vpp_contiv.Endpoint_Role, name string) {
	v.put(&vpp_contiv.Endpoint{Interface: ifName, Role: role, Name: name})
}

// pluginNetworks puts the networks of the cluster and the addresses of this node.
func (s *settings) pluginNetworks(v *values) {
	seen := map[netip.Prefix]bool{}
	put := func(class vpp_contiv.Network_Class, list ...netip.Prefix) {
		for _, p := range list {
			if p = p.Masked(); !seen[p] {
				seen[p] = true
				v.put(&vpp_contiv.Network{Prefix: p.String(), Class: class})
			}
		}
	}
	put(vpp_contiv.Network_POD, s.cluster.Pods...)
	put(vpp_contiv.Network_NODE, s.cluster.VPPHost...)
	for _, p := range slices.Concat(s.nodeIPs, s.local.Overlay) {
		put(vpp_contiv.Network_NODE, ipaddr.HostPrefix(p.Addr()))
	}
	for _, addr := range s.hostIPs {
		put(vpp_contiv.Network_NODE, ipaddr.HostPrefix(addr))
	}
}

// Source NAT IDs of the plugin.
const (
	masqueradeSNAT = 0 // of services, for backends in the cluster
	nodeSNAT       = 1 // towards the outside
)

// sourceNAT puts the addresses that replace sources. For services it is an address of this node's pod network that no pod has; pods on
// other nodes answer to it through the pod network. For traffic to the outside it is the node's own address.
func (s *settings) sourceNAT(v *values) {
	if !s.pluginNAT {
		return
	}
	masquerade := &vpp_contiv.SourceNAT{Id: masqueradeSNAT, Name: "masquerade"}
	for _, p := range s.podSubnets {
		setSource(masquerade, p.NATLoopback)
	}
	node := &vpp_contiv.SourceNAT{Id: nodeSNAT, Name: "node"}
	for _, p := range s.nodeIPs {
		setSource(node, p.Addr())
	}
	v.put(masquerade)
	if s.translatesOutside() {
		v.put(node)
	}
}

// setSource sets the first address of each family.
func setSource(nat *vpp_contiv.SourceNAT, addr netip.Addr) {
	switch {
	case addr.Is4() && nat.Ipv4Address == "":
		nat.Ipv4Address = addr.String()
	case addr.Is6() && nat.Ipv6Address == "":
		nat.Ipv6Address = addr.String()
	}
}

// translatesOutside reports whether the plugin translates traffic to the outside and the node has an address for it.
func (s *settings) translatesOutside() bool {
	return s.pluginNAT && s.mainIf.InterfaceName != "" && len(s.nodeIPs) > 0
}

// egress returns the ID of the source NAT for pods' packets to the outside, or 0.
func (s *settings) egress() uint32 {
	if s.nat && s.translatesOutside() {
		return nodeSNAT
	}
	return 0
}

// pluginPeer puts the addresses of another node.
func (s *settings) pluginPeer(v *values, p *transport.Node) {
	if !s.plugin {
		return
	}
	var all []netip.Addr
	for _, ip := range slices.Concat(p.IPs, p.Overlay) {
		all = append(all, ip.Addr())
	}
	all = append(all, p.MgmtIPs...)
	slices.SortFunc(all, netip.Addr.Compare)
	for _, addr := range slices.Compact(all) {
		if s.isOwn(addr) {
			continue // the network of an own address must remain when the peer is removed
		}
		v.put(&vpp_contiv.Network{Prefix: ipaddr.HostPrefix(addr).String(), Class: vpp_contiv.Network_NODE})
	}
}

// isOwn reports whether this node has the address itself.
func (s *settings) isOwn(addr netip.Addr) bool {
	return slices.Contains(s.hostIPs, addr) || slices.ContainsFunc(slices.Concat(s.nodeIPs, s.local.Overlay),
		func(p netip.Prefix) bool { return p.Addr() == addr })
}

// podEndpoint puts the plugin's data of a pod; the pod's link waits for it.
func (s *settings) podEndpoint(v *values, p *podLink) {
	if !s.plugin {
		return
	}
	e := &vpp_contiv.Endpoint{Interface: p.names.vpp, Role: vpp_contiv.Endpoint_POD, Name: p.attachment.Pod.String(), Egress: s.egress()}
	for _, addr := range p.addrs {
		e.Addresses = append(e.Addresses, addr.String())
	}
	v.put(e)
}

// upAfter returns the keys of the values for which the link of an interface that leads to a pod waits.
func (s *settings) upAfter(ifName string) (keys []string) {
	if s.plugin {
		keys = append(keys, nb.ContivEndpointKey(ifName))
	}
	if s.policy {
		keys = append(keys, nb.ContivEndpointPolicyKey(ifName))
	}
	return keys
}

// AttachmentInterface returns the name of VPP's interface for an attachment, connected or not. Event loop only, after a resync.
func (n *IPNet) AttachmentInterface(a *podmanager.Attachment) string {
	return podNames(a.ID, n.settings.useTAP).vpp
}

// OwnAddresses returns the addresses of this node's host and VPP. Event loop only.
func (n *IPNet) OwnAddresses() []string {
	if n.settings == nil {
		return nil
	}
	return n.settings.ownAddresses()
}

// ownAddresses returns this node's own addresses, which network policy never separates from its pods. If there are too many, some of the
// host's other interfaces are left out.
func (s *settings) ownAddresses() []string {
	var all []netip.Addr
	put := func(addr netip.Addr) {
		if addr.IsGlobalUnicast() && len(all) < maxOwnAddresses && !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	for _, l := range s.hostLinks {
		put(l.VPP.Addr())
		put(s.hostAddress(l))
	}
	for _, p := range s.podSubnets {
		put(p.Gateway)
	}
	for _, p := range slices.Concat(s.nodeIPs, s.local.Overlay, s.local.Hosts) {
		put(p.Addr())
	}
	for _, addr := range slices.SortedFunc(slices.Values(s.hostIPs), netip.Addr.Compare) {
		put(addr)
	}
	slices.SortFunc(all, netip.Addr.Compare)
	out := make([]string, len(all))
	for i, addr := range all {
		out[i] = addr.String()
	}
	return out
}

// hostAddress returns the address by which VPP recognises traffic of the host's own processes. Without nft, other programs may give the
// link's address to traffic that the host forwards. It is the zero address if there is no address for the host alone: then no traffic
// counts as the host's.
func (s *settings) hostAddress(l ipam.HostLink) netip.Addr {
	if !s.hostByIPTables {
		return l.Host.Addr()
	}
	_, _, self := forwardedAs(l)
	return self
}

// maxOwnAddresses is the maximum number of addresses of an endpoint of the plugin.
const maxOwnAddresses = 32
