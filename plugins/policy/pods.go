package policy

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
)

// objectWait is how long an ADD waits for the objects of the pod and of its namespace. After that the pod starts closed.
const objectWait = time.Second

// Put implements renderer.Txn.
func (nowhere) Put(string, proto.Message) {}

// attach sets the attachments of a pod from podmanager, except for one that is deleted or is being deleted.
func (p *Plugin) attach(pod podmanager.PodID, without podmanager.AttachmentID) {
	if p.Renderer == nil {
		return
	}
	var list []*podmanager.Attachment
	for _, a := range p.PodManager.LocalAttachments() {
		if a.Pod == pod && a.ID != without {
			list = append(list, a)
		}
	}
	p.setAttached(pod, list)
}

func (p *Plugin) setAttached(pod podmanager.PodID, list []*podmanager.Attachment) {
	if p.attached[pod] = list; len(list) == 0 {
		delete(p.attached, pod)
	}
	p.setEndpoint(pod)
}

func (p *Plugin) detach(a *podmanager.Attachment, txn renderer.Txn) {
	if p.Renderer == nil {
		return
	}
	p.attach(a.Pod, a.ID)
	p.Renderer.DeleteEndpoint(a, txn)
}

// governs reports whether network policy may apply to a pod. kubelet sets a namespace for each of its pods; a pod without a namespace does
// not come from Kubernetes, such as a test pod of `contiv-netctl connectivity test`, and policy cannot select it.
func (p *Plugin) governs(pod podmanager.PodID) bool { return p.Kubernetes && pod.Namespace != "" }

// setEndpoint passes a pod, with its newest attachment, to the compiler.
func (p *Plugin) setEndpoint(pod podmanager.PodID) {
	if !p.governs(pod) {
		return
	}
	list := p.attached[pod]
	if len(list) == 0 {
		p.compiler.DeleteEndpoint(model.EndpointID(pod))
		return
	}
	newest := list[len(list)-1]
	l := compiler.Local{ID: model.EndpointID(pod), UID: newest.PodUID}
	for _, prefix := range newest.Addresses {
		l.Addresses = append(l.Addresses, prefix.Addr())
	}
	slices.SortFunc(l.Addresses, netip.Addr.Compare)
	p.compiler.SetEndpoint(l)
}

// putEndpoints puts the endpoint of each attachment of a pod. An older attachment that belongs to another pod of the same name is closed.
func (p *Plugin) putEndpoints(pod podmanager.PodID, txn renderer.Txn) {
	list := p.attached[pod]
	for _, a := range list {
		e, known := p.endpoints[model.EndpointID(pod)]
		switch {
		case !p.governs(pod):
			open := model.Direction{Default: model.Allow}
			e = model.Endpoint{ID: model.EndpointID(pod), Ingress: open, Egress: open}
		case !known || a.PodUID != list[len(list)-1].PodUID:
			e = model.Closed(model.EndpointID(pod))
		}
		p.Renderer.PutEndpoint(a, e, txn)
	}
}

// announce wakes the callers that wait for the objects of pods and namespaces.
func (p *Plugin) announce() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// AwaitPod waits until the objects of a pod and of its namespace are known, at most for objectWait: after that the pod has to start closed. It
// may be called from any goroutine.
func (p *Plugin) AwaitPod(ctx context.Context, pod podmanager.PodID, uid string) {
	if p.Renderer == nil || !p.governs(pod) {
		return
	}
	timeout := time.NewTimer(objectWait)
	defer timeout.Stop()
	for {
		known, changed := p.knows(pod, uid)
		if known {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-timeout.C:
			p.Logger().Warn("the pod starts closed: the agent does not have its object or that of its namespace; only this node reaches the pod until they arrive", "pod", pod.String())
			return
		}
	}
}

func (p *Plugin) knows(pod podmanager.PodID, uid string) (known bool, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.compiler.HasPod(model.EndpointID(pod), uid), p.changed
}
