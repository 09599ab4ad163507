package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/podmanager"
)

// NodeSync is the part of nodesync that ipam uses.
type NodeSync interface {
	// GetNodeID returns this node's ID.
	GetNodeID() uint32
}

// PodManager is the part of podmanager that ipam uses.
type PodManager interface {
	// LocalAttachments returns all attachments of this node in the order of their Seq.
	LocalAttachments() []*podmanager.Attachment
}

// Deps are the dependencies of IPAM.
type Deps struct {
	infra.PluginDeps
	ContivConf contivconf.API
	NodeSync   NodeSync
	PodManager PodManager
	// Node is the name of this node; addresses of lost pods are not held if it is empty.
	Node string
	// HTTPHandlers may be nil.
	HTTPHandlers rest.HTTPHandlers
}

// IPAM implements API and is a handler of the event loop. Its query methods may be called from other goroutines as well.
type IPAM struct {
	Deps
	families []subnets
	cluster  ClusterSubnets
	excluded []netip.Addr

	mu     sync.Mutex // guards the following fields; handlers write them, the REST handler reads them
	alloc  *allocations
	pods   map[podmanager.AttachmentID]podmanager.PodID
	nodeID uint32

	adding *addition                   // of the last AddPod; only the event loop uses it
	lost   map[string]podmanager.PodID // lost pods by the key of their object (lost.go); only the event loop uses it
	found  *found                      // the lost pod that the last AddPod has added, if any; only the event loop uses it
}

// addition is the state of an attachment before its AddPod.
type addition struct {
	id  podmanager.AttachmentID
	had []netip.Addr // its addresses; none unless the AddPod repeats an earlier one
}

var (
	_ API               = (*IPAM)(nil)
	_ api.EventHandler  = (*IPAM)(nil)
	_ api.DataDescriber = (*IPAM)(nil)
)

// NewPlugin returns an IPAM that has the networks of all nodes, and registers its handler. It allocates addresses only after the start-up resync.
func NewPlugin(deps Deps) *IPAM {
	if deps.PluginName == "" {
		deps.SetName("ipam")
	}
	conf := deps.ContivConf.IPAM()
	p := &IPAM{
		Deps: deps,
		cluster: ClusterSubnets{
			Pods: conf.PodSubnetCIDR, VPPHost: conf.VPPHostSubnetCIDR, NodeInterconnect: conf.NodeInterconnectCIDR,
			Vxlan: conf.VxlanCIDR, Services: conf.ServiceCIDR,
		},
		excluded: conf.DefaultGateway,
		alloc:    newAllocations(nil),
		pods:     map[podmanager.AttachmentID]podmanager.PodID{},
	}
	for _, v := range conf.Families() {
		f, _ := conf.Family(v)
		p.families = append(p.families, subnets{conf: f})
	}
	if deps.HTTPHandlers != nil {
		deps.HTTPHandlers.RegisterHTTPHandler(allocationsPath, p.serveAllocations)
	}
	return p
}

// HandlesEvent selects resyncs and the events of pods, and changes of pod objects while there are lost pods.
func (p *IPAM) HandlesEvent(event api.Event) bool {
	switch ev := event.(type) {
	case *podmanager.AddPod, *podmanager.DeletePod:
		return true
	case *api.KubeStateChange:
		return ev.Resource == model.PodKeyword && len(p.lost) > 0
	}
	return event.Method().IsResync()
}

// Resync reads the allocated addresses from the attachments that podmanager has stored. An attachment with an address that it must not have
// (after a change of subnets) is reported, and keeps the address unless another attachment has it, too: an error would prevent the start of
// the whole node, and so also the DEL that removes the attachment.
func (p *IPAM) Resync(_ api.Event, state api.KubeStateData, resyncCount int, _ api.ResyncOperations) error {
	nodeID := p.NodeSync.GetNodeID()
	own, err := p.PodSubnets(nodeID)
	if err != nil {
		return fmt.Errorf("pod subnet of this node: %w", err)
	}
	p.adding, p.found = nil, nil
	next := newAllocations(own)
	pods := map[podmanager.AttachmentID]podmanager.PodID{}
	for _, a := range p.PodManager.LocalAttachments() {
		if len(a.Addresses) == 0 {
			continue
		}
		if err := next.recordAddresses(a.ID, a.Addresses); err != nil {
			p.Logger().Error("the pod has an unexpected address: delete it, so that it is created again", "pod", a.Pod.String(), "error", err)
		}
		pods[a.ID] = a.Pod
		next.goOnAfter(next.byID[a.ID]) // the last one counts: attachments are in the order in which they were added
	}

	p.holdLost(next, pods, state)

	p.mu.Lock()
	defer p.mu.Unlock()
	if resyncCount > 1 {
		next.inherit(p.alloc)
	}
	p.alloc, p.pods, p.nodeID = next, pods, nodeID
	return nil
}

// Update records the addresses that the attachment has before AddPod, and releases those of DeletePod.
func (p *IPAM) Update(event api.Event, _ api.UpdateOperations) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev := event.(type) {
	case *podmanager.AddPod:
		p.found = nil
		p.adding = &addition{id: ev.Attachment.ID, had: slices.Clone(p.alloc.byID[ev.Attachment.ID])}
		p.lostAdded(ev.Attachment.ID, ev.Attachment.Pod)
		p.pods[ev.Attachment.ID] = ev.Attachment.Pod
	case *podmanager.DeletePod:
		delete(p.pods, ev.Attachment.ID)
		if addrs := p.alloc.release(ev.Attachment.ID); len(addrs) > 0 {
			return "release " + joinAddrs(addrs), nil
		}
	case *api.KubeStateChange:
		return p.lostGone(ev), nil
	}
	return "", nil
}

// Revert releases the addresses that were allocated while the failed AddPod was handled. An ADD that repeated an earlier one keeps those of
// the earlier one: the pod still uses them. Those of a pod that was lost before are held again.
func (p *IPAM) Revert(event api.Event) error {
	ev, ok := event.(*podmanager.AddPod)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.adding != nil && p.adding.id == ev.Attachment.ID {
		p.alloc.restore(p.adding.id, p.adding.had)
		if len(p.adding.had) == 0 {
			delete(p.pods, ev.Attachment.ID)
		}
		p.lostAgain()
	}
	p.adding, p.found = nil, nil
	return nil
}

// Available returns an error with the subnet that has no address left for another pod. It may be called from any goroutine.
func (p *IPAM) Available() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pool := range p.alloc.pools {
		if pool.used >= pool.size {
			return fmt.Errorf("%w: pod subnet %s", ErrExhausted, pool.subnet)
		}
	}
	return nil
}

// Usage holds the numbers of used and free addresses in one of this node's pod subnets.
type Usage struct {
	Subnet     netip.Prefix
	Used, Free int
}

// Usage returns the usage of this node's pod subnets, one for each family. It may be called from any goroutine.
func (p *IPAM) Usage() []Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Usage, 0, len(p.alloc.pools))
	for _, pool := range p.alloc.pools {
		out = append(out, Usage{Subnet: pool.subnet, Used: pool.used, Free: pool.size - pool.used})
	}
	return out
}

// DescribeInternalData lists the allocations, for the comparison after a verification resync.
func (p *IPAM) DescribeInternalData() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := make([]string, 0, len(p.alloc.byID))
	for id, addrs := range p.alloc.byID {
		lines = append(lines, id.String()+" "+joinAddrs(addrs))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func joinAddrs(addrs []netip.Addr) string {
	parts := make([]string, 0, len(addrs))
	for _, a := range addrs {
		parts = append(parts, a.String())
	}
	return strings.Join(parts, ", ")
}

// NodeIPs implements NodeSubnets.
func (p *IPAM) NodeIPs(nodeID uint32) ([]netip.Prefix, error) {
	return perFamily(p.families, func(s subnets) (netip.Prefix, bool, error) {
		if !s.conf.NodeInterconnectCIDR.IsValid() {
			return netip.Prefix{}, false, nil // DHCP
		}
		ip, err := s.nodeIP(nodeID, p.excluded...)
		return ip, true, err
	})
}

// VxlanIPs implements NodeSubnets.
func (p *IPAM) VxlanIPs(nodeID uint32) ([]netip.Prefix, error) {
	return perFamily(p.families, func(s subnets) (netip.Prefix, bool, error) {
		ip, err := s.vxlanIP(nodeID)
		return ip, true, err
	})
}

// HostInterconnect implements NodeSubnets.
func (p *IPAM) HostInterconnect(nodeID uint32) ([]HostLink, error) {
	return perFamily(p.families, func(s subnets) (HostLink, bool, error) {
		link, err := s.hostLink(nodeID)
		return link, true, err
	})
}

// PodSubnets implements NodeSubnets.
func (p *IPAM) PodSubnets(nodeID uint32) ([]PodSubnet, error) {
	return perFamily(p.families, func(s subnets) (PodSubnet, bool, error) {
		subnet, err := s.podSubnet(nodeID)
		return subnet, true, err
	})
}

// perFamily collects one value of each family, except for families that have none.
func perFamily[T any](families []subnets, value func(subnets) (v T, has bool, err error)) ([]T, error) {
	out := make([]T, 0, len(families))
	for _, s := range families {
		v, has, err := value(s)
		if err != nil {
			return nil, err
		}
		if has {
			out = append(out, v)
		}
	}
	return out, nil
}

// ClusterSubnets implements NodeSubnets. The caller must not change the lists.
func (p *IPAM) ClusterSubnets() ClusterSubnets { return p.cluster }

// NodeIDOf implements NodeSubnets.
func (p *IPAM) NodeIDOf(podIP netip.Addr) (uint32, bool) {
	for _, s := range p.families {
		if id, ok := s.nodeIDOf(podIP.Unmap()); ok {
			return id, true
		}
	}
	return 0, false
}

// AllocatePodIPs implements PodAddresses.
func (p *IPAM) AllocatePodIPs(id podmanager.AttachmentID) ([]netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.alloc.pools) == 0 {
		return nil, fmt.Errorf("address for %s: the start-up resync has not run yet: %w", id, podmanager.ErrTryAgain)
	}
	addrs, err := p.alloc.allocate(id)
	if err != nil {
		return nil, fmt.Errorf("address for %s: %w", id, err)
	}
	return slices.Clone(addrs), nil
}

// ReleasePodIPs implements PodAddresses.
func (p *IPAM) ReleasePodIPs(id podmanager.AttachmentID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alloc.release(id)
}

// PodIPs implements PodAddresses.
func (p *IPAM) PodIPs(id podmanager.AttachmentID) []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.alloc.byID[id])
}

// AttachmentOf implements PodAddresses.
func (p *IPAM) AttachmentOf(ip netip.Addr) (podmanager.AttachmentID, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, ok := p.alloc.byIP[ip.Unmap()]
	return id, ok
}
