package ipam

import (
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/podmanager"
)

// A pod is lost if the API server has it on this node with an address of this node, and podmanager has no record of it: the file was
// removed or damaged, or the node was rebooted and the pod has not been added again. The resync removes the interface of such a pod, so
// that no traffic of the pod bypasses policies and services. Its address is held while the API server reports it for the pod: no other pod
// gets the address, since services, policies and other nodes still assign it to the lost pod. An ADD of the same pod gets it, so that what they
// assign becomes true again; if the ADD is reverted, the address is held again.

// lostID returns the attachment ID under which the addresses of a lost pod are held. No runtime creates such an ID: it contains a slash.
func lostID(pod podmanager.PodID) podmanager.AttachmentID {
	return podmanager.AttachmentID{ContainerID: "lost:" + pod.String()}
}

// holdLost holds the addresses of lost pods and reports them.
func (p *IPAM) holdLost(next *allocations, known map[podmanager.AttachmentID]podmanager.PodID, state api.KubeStateData) {
	recorded := map[podmanager.PodID]bool{}
	for _, pod := range known {
		recorded[pod] = true
	}
	p.lost = map[string]podmanager.PodID{}
	if p.Node == "" {
		return
	}
	for key, value := range state[model.PodKeyword] {
		pod, ok := value.(*model.Pod)
		id := podmanager.PodID{Namespace: pod.GetNamespace(), Name: pod.GetName()}
		if !ok || pod.GetNodeName() != p.Node || pod.GetHostNetwork() || recorded[id] {
			continue
		}
		held := next.hold(lostID(id), pod.GetIps())
		if len(held) == 0 {
			continue
		}
		p.lost[key] = id
		if !pod.GetTerminating() { // a terminating pod may have been removed from the node already
			p.Logger().Error("a pod of this node has no record here, so it has no interface, and its addresses are held: unless the node has just been rebooted, "+
				"delete the pod, so that it is created again", "pod", id.String(), "addresses", joinAddrs(held))
		}
	}
}

// lostGone frees the addresses of a lost pod that the API server has deleted, or that has other addresses now.
func (p *IPAM) lostGone(change *api.KubeStateChange) string {
	id, ok := p.lost[change.Key]
	if !ok || samePodIPs(change.PrevValue, change.NewValue) {
		return ""
	}
	delete(p.lost, change.Key)
	if addrs := p.alloc.release(lostID(id)); len(addrs) > 0 {
		return "release " + joinAddrs(addrs) + " of a lost pod"
	}
	return ""
}

// found is a lost pod that the event in progress adds again.
type found struct {
	key   string // of its object
	pod   podmanager.PodID
	addrs []netip.Addr // the addresses that were held
}

// lostAdded gives an attachment the addresses of its pod if the pod was lost.
func (p *IPAM) lostAdded(id podmanager.AttachmentID, pod podmanager.PodID) {
	for key, lost := range p.lost {
		if lost != pod {
			continue
		}
		delete(p.lost, key)
		p.found = &found{key, pod, p.alloc.byID[lostID(pod)]}
		if len(p.alloc.byID[id]) > 0 { // the attachment has addresses that no resync has seen
			p.alloc.release(lostID(pod))
		} else {
			p.alloc.move(lostID(pod), id)
		}
	}
}

// lostAgain holds the addresses again after the ADD that has found a pod was reverted and its addresses were released.
func (p *IPAM) lostAgain() {
	f := p.found
	if p.found = nil; f == nil {
		return
	}
	for _, addr := range f.addrs {
		if _, taken := p.alloc.byIP[addr]; !taken && p.alloc.take(addr) {
			p.alloc.assign(lostID(f.pod), addr)
		}
	}
	if len(p.alloc.byID[lostID(f.pod)]) > 0 {
		p.lost[f.key] = f.pod
	}
}

func samePodIPs(before, after proto.Message) bool {
	a, _ := before.(*model.Pod)
	b, ok := after.(*model.Pod)
	return ok && slices.Equal(a.GetIps(), b.GetIps())
}

// hold reserves those of the addresses that this node can allocate and that are free.
func (a *allocations) hold(id podmanager.AttachmentID, ips []string) []netip.Addr {
	for _, text := range ips {
		addr, err := netip.ParseAddr(text)
		if _, taken := a.byIP[addr]; err != nil || taken || !a.take(addr) {
			continue
		}
		a.assign(id, addr)
	}
	return a.byID[id]
}

// assign records the owner of an address that was taken from its pool.
func (a *allocations) assign(id podmanager.AttachmentID, addr netip.Addr) {
	a.byIP[addr] = id
	a.byID[id] = append(a.byID[id], addr)
}

// move gives the addresses of one attachment to another one, which has none.
func (a *allocations) move(from, to podmanager.AttachmentID) {
	addrs := a.byID[from]
	delete(a.byID, from)
	for _, addr := range addrs {
		a.assign(to, addr)
	}
}
