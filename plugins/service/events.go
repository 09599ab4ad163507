package service

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/service/processor"
)

const zoneLabel = "topology.kubernetes.io/zone"

// Resync implements api.EventHandler.
func (p *Plugin) Resync(_ api.Event, data api.KubeStateData, _ int, txn api.ResyncOperations) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.txn = Txn{resync: txn}
	defer func() { p.txn = Txn{} }()

	nodes := model.Values[*model.Node](data, model.NodeKeyword)
	p.nodes = newAddresses()
	for _, node := range nodes {
		p.nodes.kube[node.GetName()] = addrsOf(node)
	}
	for name, node := range p.NodeSync.GetAllNodes() {
		p.nodes.vpp[name] = vppAddrs(node)
	}
	p.nodes.self = p.selfAddrs()
	own := nodes[model.Key(model.NodeKeyword, "", p.own())]
	p.reportLeaving(own)
	return p.processor.Resync(&processor.Snapshot{
		Services:       maps.Values(model.Values[*model.Service](data, model.ServiceKeyword)),
		Slices:         maps.Values(model.Values[*model.EndpointSlice](data, model.EndpointSliceKeyword)),
		Zone:           own.GetLabels()[zoneLabel],
		Nodes:          p.nodes.all(p.own()),
		NodeInterfaces: p.nodeInterfaces(),
		LocalPods:      p.localPods(nil),
	})
}

// Update implements api.EventHandler.
func (p *Plugin) Update(event api.Event, txn api.UpdateOperations) (change string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.txn = Txn{update: txn}
	defer func() { p.txn = Txn{} }()
	switch ev := event.(type) {
	case *api.KubeStateChange:
		change, err = p.kubeChange(ev)
	case *nodesync.NodeUpdate:
		change, err = p.nodeUpdate(ev)
	case *podmanager.AddPod:
		change, err = p.processor.SetInterfaces(p.nodeInterfaces(), p.localPods(nil))
	case *podmanager.DeletePod:
		change, err = p.processor.SetInterfaces(p.nodeInterfaces(), p.localPods(ev.Attachment))
	}
	if len(p.txn.notes) > 0 {
		change = strings.TrimPrefix(change+": "+strings.Join(p.txn.notes, ", "), ": ")
	}
	return change, err
}

// Revert implements api.EventHandler. Of the events that can be reverted, only AddPod changes state of this plugin. If the ADD repeats an
// earlier one, its pod stays.
func (p *Plugin) Revert(event api.Event) error {
	ev, ok := event.(*podmanager.AddPod)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.txn = Txn{}
	going := ev.Attachment
	if len(going.Addresses) > 0 {
		going = nil
	}
	_, err := p.processor.SetInterfaces(p.nodeInterfaces(), p.localPods(going))
	return err
}

func (p *Plugin) kubeChange(ev *api.KubeStateChange) (change string, err error) {
	switch ev.Resource {
	case model.ServiceKeyword:
		prev, next := model.Change[*model.Service](ev)
		if next == nil {
			return p.processor.DeleteService(svcmodel.ID{Namespace: prev.GetNamespace(), Name: prev.GetName()})
		}
		return p.processor.UpdateService(next)
	case model.EndpointSliceKeyword:
		return p.processor.UpdateSlice(model.Change[*model.EndpointSlice](ev))
	case model.NodeKeyword:
		prev, next := model.Change[*model.Node](ev)
		return p.kubeNode(prev, next)
	}
	return "", nil
}

func (p *Plugin) kubeNode(prev, next *model.Node) (change string, err error) {
	name := next.GetName()
	if next == nil {
		name = prev.GetName()
		delete(p.nodes.kube, name)
	} else {
		p.nodes.kube[name] = addrsOf(next)
	}
	if name == p.own() {
		p.reportLeaving(next)
	}
	change, err = p.processor.SetNode(name, p.nodes.of(name, p.own()))
	if name != p.own() || err != nil {
		return change, err
	}
	zoneChange, err := p.processor.SetZone(next.GetLabels()[zoneLabel])
	return strings.Trim(change+"; "+zoneChange, "; "), err
}

// reportLeaving reports to NodeLeaving whether this node is leaving the cluster; a nil object means that the node has been deleted.
func (p *Plugin) reportLeaving(own *model.Node) {
	if p.NodeLeaving != nil {
		p.NodeLeaving(own == nil || own.GetLeaving())
	}
}

func (p *Plugin) nodeUpdate(ev *nodesync.NodeUpdate) (change string, err error) {
	if ev.NodeName == p.own() {
		p.nodes.self = p.selfAddrs() // the addresses that this node itself reports begin with the host's addresses
	}
	before := p.nodes.of(ev.NodeName, p.own())
	if ev.NewState == nil {
		delete(p.nodes.vpp, ev.NodeName)
	} else {
		p.nodes.vpp[ev.NodeName] = vppAddrs(ev.NewState)
	}
	now := p.nodes.of(ev.NodeName, p.own())
	change, err = p.processor.SetNode(ev.NodeName, now)
	return change, errors.Join(err, p.processor.NodeChanged(append(before, now...)))
}

func (p *Plugin) own() string { return p.ServiceLabel.GetAgentLabel() }

// addresses holds the addresses of nodes by node name, for each source.
type addresses struct {
	kube, vpp map[string][]netip.Addr
	self      []netip.Addr // found by this node itself: those of VPP and of its host stack
}

func newAddresses() addresses {
	return addresses{kube: map[string][]netip.Addr{}, vpp: map[string][]netip.Addr{}}
}

func (a *addresses) of(name, own string) []netip.Addr {
	out := slices.Concat(a.kube[name], a.vpp[name])
	if name == own {
		out = append(out, a.self...)
	}
	return out
}

func (a *addresses) all(own string) map[string][]netip.Addr {
	out := map[string][]netip.Addr{own: a.of(own, own)}
	for _, names := range []map[string][]netip.Addr{a.kube, a.vpp} {
		for name := range names {
			out[name] = a.of(name, own)
		}
	}
	return out
}

func addrsOf(node *model.Node) []netip.Addr {
	out := make([]netip.Addr, 0, len(node.GetAddresses()))
	for _, text := range node.GetAddresses() {
		if addr, err := netip.ParseAddr(text); err == nil {
			out = append(out, addr)
		}
	}
	return out
}

func vppAddrs(node *nodesync.Node) []netip.Addr {
	out := make([]netip.Addr, 0, len(node.VppIPAddresses)+len(node.MgmtIPAddresses))
	for _, ip := range node.VppIPAddresses {
		out = append(out, ip.Address.Unmap())
	}
	for _, ip := range node.MgmtIPAddresses {
		if addr, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, addr.Unmap())
		}
	}
	return out
}

// selfAddrs returns this node's own addresses without waiting for its own record: NodeUpdate has addresses of VPP for other nodes only.
func (p *Plugin) selfAddrs() []netip.Addr {
	out := p.IPNet.NodeAddresses()
	for _, ip := range p.IPNet.GetHostIPs() {
		if addr, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, addr.Unmap())
		}
	}
	return out
}

// localPods returns the pods of this node except for the attachment but, which is being removed. If a pod has several sandboxes, the newest
// remaining one counts: podmanager reports the attachment that is being removed as the current one until all handlers have handled its
// event.
func (p *Plugin) localPods(but *podmanager.Attachment) []processor.LocalPod {
	all := p.PodManager.LocalAttachments() // the newest one is last
	newest := make(map[podmanager.PodID]podmanager.AttachmentID, len(all))
	for _, a := range all {
		if but == nil || a.ID != but.ID {
			newest[a.Pod] = a.ID
		}
	}
	out := make([]processor.LocalPod, 0, len(newest))
	for _, a := range all {
		if newest[a.Pod] != a.ID {
			continue
		}
		name, ok := p.IPNet.PodInterface(a.ID)
		if !ok {
			continue
		}
		pod := processor.LocalPod{Interface: name}
		for _, prefix := range a.Addresses {
			pod.Addresses = append(pod.Addresses, prefix.Addr())
		}
		out = append(out, pod)
	}
	return out
}

// nodeInterfaces returns the interfaces that lead to other nodes, to the outside and to the host's stack.
func (p *Plugin) nodeInterfaces() (n processor.NodeInterfaces) {
	conf := p.ContivConf.Node()
	main := conf.MainVPPInterface.InterfaceName
	if p.MainInterface != nil {
		main = p.MainInterface()
	}
	bvi, host := p.IPNet.GetVxlanBVIIfName(), p.IPNet.GetHostInterconnectIfName()
	n.Frontends = []string{main, bvi, host}
	for _, other := range conf.OtherVPPInterfaces {
		n.Frontends = append(n.Frontends, other.InterfaceName)
	}
	n.Backends = []string{bvi, host}
	if bvi == "" { // no overlay: other nodes' pods are reached through the uplink
		n.Backends = []string{main, host}
	}
	none := func(name string) bool { return name == "" }
	n.Frontends, n.Backends = slices.DeleteFunc(n.Frontends, none), slices.DeleteFunc(n.Backends, none)
	return n
}

// discard ignores the operations of an event that is being reverted.
type discard struct{}

// Put implements api.ResyncOperations.
func (discard) Put(string, proto.Message) {}

// Get implements api.ResyncOperations.
func (discard) Get(string) proto.Message { return nil }

// Delete implements api.UpdateOperations.
func (discard) Delete(string) {}
