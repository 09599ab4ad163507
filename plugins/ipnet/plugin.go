package ipnet

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/podmanager"
)

// IPNet is the plugin that renders the configuration for IP connectivity between Kubernetes pods and nodes, which the dataplane applies.
type IPNet struct {
	Deps
	*state
}

var (
	_ API              = (*IPNet)(nil)
	_ api.EventHandler = (*IPNet)(nil)
)

// state is the plugin's own state. Only the event loop uses it, except for fields that are marked otherwise.
type state struct {
	hostIPsDump HostLinkIPsDumpClb
	settings    *settings // of the last resync; nil before the first
	leased      netip.Prefix
	watched     string // the interface whose leases are reported
	pods        map[podmanager.AttachmentID]*podLink
	before      *podLink // of the attachment of the last AddPod; nil if it was not connected
	peers       peers
	mesh        []value                    // the values that all peers share
	peerFaults  map[string]string          // why a node is not connected, as logged; by node
	report      atomic.Pointer[ipamReport] // the response of the REST handler; from any goroutine
	hostIf      atomic.Pointer[string]     // from any goroutine

	outbox   *outbox               // from any goroutine
	plugin   pluginState           // from any goroutine
	mtuFault atomic.Pointer[error] // since the last resync; from any goroutine

	hostIPsWait, nicsWait atomic.Bool                    // an event of that kind is in the queue; from any goroutine
	reported              atomic.Pointer[NodeIPv4Change] // the last lease; from any goroutine
	uplink                atomic.Pointer[uplinkState]    // since the last resync; from any goroutine
	others                atomic.Int64                   // the number of other nodes; from any goroutine

	mu   sync.RWMutex // guards the following fields, which are read from any goroutine
	byIf map[string]podmanager.PodID
	keys map[podmanager.AttachmentID][]string // of the values that wire an attachment
}

// hostIPsChange is the event of changed addresses on the host's own interfaces.
type hostIPsChange struct{}

func (hostIPsChange) GetName() string             { return "Host IPs Change" }
func (hostIPsChange) String() string              { return "Host IPs Change" }
func (hostIPsChange) Method() api.EventMethodType { return api.UpstreamResync }
func (hostIPsChange) IsBlocking() bool            { return false }
func (hostIPsChange) Done(error)                  {}

// nicsChange is the event for a change of the NICs, of VPP or of the host, among which the main interface was selected.
type nicsChange struct{}

func (nicsChange) GetName() string             { return "NICs Change" }
func (nicsChange) String() string              { return "NICs Change" }
func (nicsChange) Method() api.EventMethodType { return api.UpstreamResync }
func (nicsChange) IsBlocking() bool            { return false }
func (nicsChange) Done(error)                  {}

// watchLeases subscribes to the leases of the main interface, once.
func (n *IPNet) watchLeases(s *settings) error {
	name := s.mainIf.InterfaceName
	if !s.mainIf.UseDHCP || n.VPPIfPlugin == nil || name == "" || name == n.watched {
		return nil
	}
	err := n.VPPIfPlugin.WatchDHCPLeases(name, func(ip net.IP, network *net.IPNet, gw net.IP) {
		ev := &NodeIPv4Change{NodeIP: ip, NodeIPNet: network, DefaultGw: gw}
		n.reported.Store(ev)
		n.outbox.send(ev, nil)
	})
	if err != nil {
		return fmt.Errorf("watch DHCP leases of %s: %w", name, err)
	}
	n.watched = name
	return nil
}

// Init connects the plugin with its dependencies. The first resync initializes the internal state.
func (n *IPNet) Init() error {
	n.pods = map[podmanager.AttachmentID]*podLink{}
	n.peerFaults = map[string]string{}
	n.byIf = map[string]podmanager.PodID{}
	n.keys = map[podmanager.AttachmentID][]string{}
	n.outbox = newOutbox(func(ev api.Event) error { return n.EventLoop.PushEvent(ev) }, n.Logger())
	if n.LinuxNsPlugin != nil {
		n.hostIPsDump = n.LinuxNsPlugin.HostIPs
		n.LinuxNsPlugin.WatchHostIPs(func() { n.pushOnce(&n.hostIPsWait, hostIPsChange{}) })
	}
	if n.Dataplane == DataplaneVPP && n.ContivConf.Node().NatExternalTraffic &&
		n.ContivConf.Routing().NodeToNodeTransport == contivconf.TransportNoOverlay {
		n.Logger().Info("pods get the node's address towards the outside; machines outside of the cluster cannot connect to pods " +
			"by the pods' own IPv4 addresses (set natExternalTraffic to false if they have to)")
	}
	if n.Uplinks != nil {
		n.Uplinks.Watch(func() { n.pushOnce(&n.nicsWait, nicsChange{}) })
	}
	n.watchPlugin()
	if n.VPPNICs != nil {
		n.VPPNICs.Watch(func() { n.pushOnce(&n.nicsWait, nicsChange{}) })
	}
	if n.HTTPHandlers != nil {
		n.HTTPHandlers.RegisterHTTPHandler(rest.IPAMPath, n.serveIPAM)
	}
	return nil
}

// pushOnce pushes an event unless one of its kind is already queued: a resync that has not begun takes all changes into account.
func (n *IPNet) pushOnce(waits *atomic.Bool, ev api.Event) {
	if waits.CompareAndSwap(false, true) {
		n.outbox.send(ev, waits.Load)
	}
}

// Close is called when the agent stops. It removes nothing from the dataplane: pods stay connected while the agent is not running.
func (n *IPNet) Close() error {
	if n.outbox == nil {
		return nil
	}
	return n.outbox.close()
}

// HandlesEvent selects:
//   - any Resync event (extra action for NodeIPv4Change)
//   - AddPod and DeletePod (CNI)
//   - POD k8s state changes
//   - NodeUpdate for other nodes
//   - Shutdown event
func (n *IPNet) HandlesEvent(event api.Event) bool {
	if event.Method().IsResync() {
		return true
	}
	switch ev := event.(type) {
	case *podmanager.AddPod, *podmanager.DeletePod:
		return true
	case *api.KubeStateChange:
		return ev.Resource == model.PodKeyword
	case *nodesync.NodeUpdate:
		return ev.NodeName != n.ServiceLabel.GetAgentLabel()
	}
	return event.GetName() == shutdownEvent
}

// Resync is called by the controller for an event that requires a full resync. resyncCount is 1 for the start-up resync and higher for
// later ones.
func (n *IPNet) Resync(event api.Event, _ api.KubeStateData, _ int, txn api.ResyncOperations) error {
	if change, ok := event.(*NodeIPv4Change); ok {
		n.leased = leasedPrefix(change)
	}
	if reported := n.reported.Load(); reported != nil { // the event with this lease may have found the queue full, and each lease is reported only once
		n.leased = leasedPrefix(reported)
	}
	n.hostIPsWait.Store(false) // a change from here on may not be part of this resync and needs a new event
	n.nicsWait.Store(false)
	s, err := n.gather()
	if err != nil {
		return err
	}
	n.noteUplink(s)
	if err := n.watchLeases(s); err != nil {
		return err
	}
	base, err := s.wiring.node(s)
	if err != nil {
		return err
	}
	pods, podErr := n.renderPods(s)
	peers, mesh, peerErr := n.renderPeers(s)
	for _, v := range slices.Concat(base, mesh) {
		txn.Put(v.key, v.msg)
	}
	for key, v := range peers.values() {
		txn.Put(key, v)
	}
	for _, p := range sortedPods(pods) {
		for _, v := range p.values {
			txn.Put(v.key, v.msg)
		}
	}
	n.settings, n.peers, n.mesh = s, peers, mesh
	n.others.Store(int64(len(peers.byName)))
	n.setPods(pods)
	n.noteMTU(s)
	n.report.Store(s.ipamReport())
	hostIf := s.wiring.hostIf(s)
	n.hostIf.Store(&hostIf)
	n.publish(s)
	return errors.Join(podErr, peerErr)
}

// leasedPrefix returns the address of a lease with its network, or the zero value if the lease has ended.
func leasedPrefix(change *NodeIPv4Change) netip.Prefix {
	addr, ok := netip.AddrFromSlice(change.NodeIP)
	if !ok || change.NodeIPNet == nil {
		return netip.Prefix{}
	}
	ones, _ := change.NodeIPNet.Mask.Size()
	return netip.PrefixFrom(addr.Unmap(), ones)
}

// renderPods renders every attachment that has addresses. An attachment without addresses was interrupted before it got any: the runtime
// repeats its ADD or sends its DEL.
func (n *IPNet) renderPods(s *settings) (map[podmanager.AttachmentID]*podLink, error) {
	pods := map[podmanager.AttachmentID]*podLink{}
	var failed []string
	for _, a := range n.PodManager.LocalAttachments() {
		addrs := n.IPAM.PodIPs(a.ID)
		if len(addrs) == 0 {
			continue
		}
		p, err := s.newPodLink(a, addrs)
		if err != nil {
			failed = append(failed, fmt.Sprintf("pod %s: %v", a.Pod, err))
			continue
		}
		pods[a.ID] = p
	}
	if len(failed) > 0 {
		return pods, fmt.Errorf("pods not rendered: %s", strings.Join(failed, "; "))
	}
	return pods, nil
}

func sortedPods(pods map[podmanager.AttachmentID]*podLink) []*podLink {
	return slices.SortedFunc(maps.Values(pods), func(a, b *podLink) int {
		return strings.Compare(a.attachment.ID.String(), b.attachment.ID.String())
	})
}

func (n *IPNet) setPods(pods map[podmanager.AttachmentID]*podLink) {
	byIf := make(map[string]podmanager.PodID, 4*len(pods))
	keys := make(map[podmanager.AttachmentID][]string, len(pods))
	for id, p := range pods {
		for _, name := range p.names.all() {
			byIf[name] = p.attachment.Pod
		}
		keys[id] = p.keys()
	}
	n.pods = pods
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byIf, n.keys = byIf, keys
}

// publish sends this node's addresses to the other nodes; it sends nothing if they have not changed.
func (n *IPNet) publish(s *settings) {
	for _, version := range []contivconf.IPVersion{contivconf.IPv4, contivconf.IPv6} {
		var ips contivconf.IPsWithNetworks
		for _, p := range s.nodeIPs {
			if contivconf.VersionOf(p.Addr()) == version {
				ips = append(ips, &contivconf.IPWithNetwork{Version: version, Address: p.Addr(), Network: p.Masked()})
			}
		}
		if err := n.NodeSync.PublishNodeIPs(ips, version); err != nil {
			n.Logger().Warn("addresses of this node not published", "version", version.String(), "error", err)
		}
	}
	if n.MgmtIPs == nil {
		return
	}
	if err := n.MgmtIPs.PublishMgmtIPs(s.hostIPs); err != nil {
		n.Logger().Warn("addresses of this node's host not published", "error", err)
	}
}

// shutdownEvent is the name of the controller's last event.
const shutdownEvent = "Shutdown"

// Update is called for:
//   - AddPod and DeletePod (CNI)
//   - POD k8s state changes, which change nothing: the interfaces of a pod do not depend on the pod object
//   - NodeUpdate for other nodes
//   - Shutdown event, which changes nothing: pods stay connected while the agent is not running
func (n *IPNet) Update(event api.Event, txn api.UpdateOperations) (change string, err error) {
	switch ev := event.(type) {
	case *podmanager.AddPod:
		return n.addPod(ev, txn)
	case *podmanager.DeletePod:
		return n.deletePod(ev, txn), nil
	case *nodesync.NodeUpdate:
		return n.updatePeer(ev, txn)
	}
	return "", nil
}

// addPod connects an attachment. A repeated ADD renders the same values again, which changes nothing in the dataplane.
func (n *IPNet) addPod(ev *podmanager.AddPod, txn api.UpdateOperations) (string, error) {
	a := ev.Attachment
	n.before = n.pods[a.ID]
	addrs, err := n.IPAM.AllocatePodIPs(a.ID)
	if err != nil {
		return "", fmt.Errorf("pod %s: allocate addresses: %w: %w", a.Pod, podmanager.ErrTryAgain, err)
	}
	prefixes := make([]netip.Prefix, len(addrs))
	for i, addr := range addrs {
		prefixes[i] = ipaddr.HostPrefix(addr)
	}
	if !slices.Equal(a.Addresses, prefixes) {
		// This comes before the dataplane is changed: the record of an address that is in use must survive a crash.
		if err := n.PodManager.SetAddresses(a.ID, prefixes); err != nil {
			return "", fmt.Errorf("pod %s: record its addresses: %w", a.Pod, err)
		}
	}
	p, err := n.settings.newPodLink(a, addrs)
	if err != nil {
		return "", fmt.Errorf("pod %s: %w", a.Pod, err)
	}
	for _, v := range p.values {
		txn.Put(v.key, v.msg)
	}
	n.addPodLink(p)
	if a.MTU != 0 {
		n.noteMTU(n.settings)
	}
	n.settings.fill(ev, p)
	return fmt.Sprintf("connect pod %s with %v", a.Pod, addrs), nil
}

func (n *IPNet) deletePod(ev *podmanager.DeletePod, txn api.UpdateOperations) string {
	p := n.pods[ev.Attachment.ID]
	if p == nil {
		return ""
	}
	for _, v := range p.values {
		txn.Delete(v.key)
	}
	n.removePodLink(p)
	if p.attachment.MTU != 0 {
		n.noteMTU(n.settings)
	}
	return "disconnect pod " + ev.Attachment.Pod.String()
}

func (n *IPNet) addPodLink(p *podLink) {
	n.pods[p.attachment.ID] = p
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range p.names.all() {
		n.byIf[name] = p.attachment.Pod
	}
	n.keys[p.attachment.ID] = p.keys()
}

func (n *IPNet) removePodLink(p *podLink) {
	delete(n.pods, p.attachment.ID)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range p.names.all() {
		delete(n.byIf, name)
	}
	delete(n.keys, p.attachment.ID)
}

// Revert is called for AddPod. If the ADD was a repeated one, the pod was already connected and stays connected as before.
func (n *IPNet) Revert(event api.Event) error {
	ev, ok := event.(*podmanager.AddPod)
	if !ok {
		return nil
	}
	if p := n.pods[ev.Attachment.ID]; p != nil && p != n.before {
		n.removePodLink(p)
		if n.before != nil {
			n.addPodLink(n.before)
		}
	}
	n.before = nil
	return nil
}
