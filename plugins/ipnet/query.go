package ipnet

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/plugins/podmanager"
)

// GetPodIfNames returns the logical names of the interfaces of the given pod.
func (n *IPNet) GetPodIfNames(podNamespace string, podName string) (vppIfName, linuxIfName, loopIfName string, exists bool) {
	a, ok := n.PodManager.Current(podmanager.PodID{Namespace: podNamespace, Name: podName})
	if !ok {
		return "", "", "", false
	}
	p := n.pods[a.ID]
	if p == nil {
		return "", "", "", false
	}
	return p.names.vpp, p.names.linux, p.names.loop, true
}

// PodInterface returns the logical name of VPP's interface of an attachment, whether or not it is the pod's current attachment.
func (n *IPNet) PodInterface(id podmanager.AttachmentID) (name string, exists bool) {
	p := n.pods[id]
	if p == nil {
		return "", false
	}
	return p.names.vpp, true
}

// GetPodByIf returns the pod that has an interface with the given logical name: any of the names that GetPodIfNames returns. The method may
// be called from any goroutine.
func (n *IPNet) GetPodByIf(ifName string) (podNamespace string, podName string, exists bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	id, ok := n.byIf[ifName]
	return id.Namespace, id.Name, ok
}

// GetNodeIP returns the address of this node and its network; nil before they are known.
func (n *IPNet) GetNodeIP() (ip net.IP, network *net.IPNet) {
	if n.settings == nil || len(n.settings.nodeIPs) == 0 {
		return nil, nil
	}
	first := n.settings.nodeIPs[0]
	return toNetIP(first.Addr()), toIPNet(first)
}

// NodeAddresses returns the addresses of this node's main interface, of both families; none before they are known. Event loop only.
func (n *IPNet) NodeAddresses() []netip.Addr {
	if n.settings == nil {
		return nil
	}
	out := make([]netip.Addr, len(n.settings.nodeIPs))
	for i, p := range n.settings.nodeIPs {
		out[i] = p.Addr()
	}
	return out
}

// GetHostIPs returns all IP addresses of this node present in the host network namespace (Linux).
func (n *IPNet) GetHostIPs() []net.IP {
	if n.settings == nil {
		return nil
	}
	out := make([]net.IP, len(n.settings.hostIPs))
	for i, addr := range n.settings.hostIPs {
		out[i] = toNetIP(addr)
	}
	return out
}

// GetHostInterconnectIfName returns the name of the TAP/AF_PACKET interface interconnecting VPP with the host stack.
func (n *IPNet) GetHostInterconnectIfName() string {
	if n.settings == nil {
		return ""
	}
	return n.settings.wiring.hostIf(n.settings)
}

// HostInterface returns the logical name of the interface that connects VPP with the host's stack; it is empty if there is none, or if it
// is not known yet. The method may be called from any goroutine.
func (n *IPNet) HostInterface() string {
	if name := n.hostIf.Load(); name != nil {
		return *name
	}
	return ""
}

// GetVxlanBVIIfName returns the name of the BVI that faces the VXLAN tunnels to other nodes. It returns an empty string if VXLAN is not
// used (nooverlay).
func (n *IPNet) GetVxlanBVIIfName() string {
	if n.settings == nil {
		return ""
	}
	return n.settings.transport.BVI()
}

// StateToString returns a human-readable representation of the plugin's internal state. It cannot be named String(), which would override
// the Stringer of PluginDeps.
func (n IPNet) StateToString() string {
	var b strings.Builder
	if s := n.settings; s != nil {
		fmt.Fprintf(&b, "node %d %s\n", s.nodeID, s.nodeIPs)
	}
	for _, p := range sortedPods(n.pods) {
		fmt.Fprintf(&b, "pod %s %s %s %v\n", p.attachment.Pod, p.attachment.ID, p.names.all()[0], p.addrs)
	}
	for _, name := range slices.Sorted(maps.Keys(n.peers.byName)) {
		fmt.Fprintf(&b, "peer %s %d %s\n", name, n.peers.byName[name].node.ID, n.peers.byName[name].node.IPs)
	}
	return b.String()
}

// DescribeInternalData implements api.DataDescriber: the controller's verification mode compares updates with resyncs.
func (n *IPNet) DescribeInternalData() string { return n.StateToString() }

// KeysOf returns the keys of the northbound values that connect an attachment. The method may be called from any goroutine.
func (n *IPNet) KeysOf(id podmanager.AttachmentID) []string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.keys[id]
}
