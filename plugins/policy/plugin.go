package policy

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"contiv.dev/vswitch/internal/infra"
	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/drops"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
)

// Problems is the receiver of reports to users.
type Problems interface {
	Set(o problem.Object, list []problem.Problem, report bool)
}

// Pods reports the pods that this node has connected.
type Pods interface {
	// LocalAttachments returns all attachments of this node in the order of their Seq.
	LocalAttachments() []*podmanager.Attachment
}

// Deps are the dependencies of the plugin.
type Deps struct {
	infra.PluginDeps
	ServiceLabel servicelabel.ReaderAPI
	Problems     Problems
	PodManager   Pods
	HTTPHandlers rest.HTTPHandlers // nil: there is no REST API
	// Renderer is nil where the dataplane does not enforce policies.
	Renderer renderer.Renderer
	// NotEnforced returns the reason why policies have no effect although there is a renderer, or "" if they have an effect. The event loop
	// calls it in each resync. nil means that policies always have an effect.
	NotEnforced func() string
	// Kubernetes is false if there is no Kubernetes: then there are no policies, and all pods are open.
	Kubernetes bool
	// OwnAddresses returns the addresses of this node in the dataplane, in addition to those of its Node object. Event loop only; may be
	// nil.
	OwnAddresses func() []string
	// Denied reports the packets that policy has dropped; nil if the dataplane does not report them.
	Denied Denied
	// Statuses is called with whether this node writes the conditions of ClusterNetworkPolicies, whenever this or one of the policies may
	// have changed; nil means that no conditions are written.
	Statuses func(writes bool)
	// Connections lists open connections; nil if the dataplane cannot list them.
	Connections Connections
	// ParsePolicy parses policies that are to be tried; nil means that policies cannot be tried.
	ParsePolicy ParsePolicy
	// SetLimit is the maximum number of members of a set; 0: model.MaxMembers.
	SetLimit int
}

func (d *Deps) notEnforced() string {
	switch {
	case d.Renderer == nil:
		return "contiv does not enforce network policies: the pods that this policy selects accept and send what it forbids"
	case d.NotEnforced != nil:
		return d.NotEnforced()
	}
	return ""
}

// Plugin is the event handler.
type Plugin struct {
	Deps
	problems problems
	drops    *drops.Store
	trying   sync.Mutex // one policy is tried at a time: a try costs as much as a resync

	mu        sync.RWMutex // guards the following fields; only the event loop writes
	compiler  *compiler.Compiler
	attached  map[podmanager.PodID][]*podmanager.Attachment // sorted by time, the newest one is last
	before    []*podmanager.Attachment                      // of the pod of the AddPod that is being handled, before this event
	sets      map[model.SetID]model.Set
	policies  map[model.PolicyID]model.Policy
	endpoints map[model.EndpointID]model.Endpoint
	objects   map[string]*kube.Policy        // by key
	cluster   map[string]*kube.ClusterPolicy // by key
	nodeAddrs []string                       // of this node
	changed   chan struct{}                  // closed when the object of a pod or namespace has changed; nil: no caller waits
}

var _ api.EventHandler = (*Plugin)(nil)

// New returns the plugin.
func New(deps Deps) *Plugin {
	p := &Plugin{Deps: deps, drops: drops.New()}
	p.problems = newProblems(deps.ServiceLabel, deps.Problems, "", deps.Logger())
	p.reset()
	p.serve()
	return p
}

func (p *Plugin) reset() {
	p.compiler = compiler.New()
	p.compiler.SetLimit(p.SetLimit)
	p.problems.large.version = -1
	p.attached = map[podmanager.PodID][]*podmanager.Attachment{}
	p.sets, p.policies = map[model.SetID]model.Set{}, map[model.PolicyID]model.Policy{}
	p.endpoints, p.objects = map[model.EndpointID]model.Endpoint{}, map[string]*kube.Policy{}
	p.cluster = map[string]*kube.ClusterPolicy{}
}

// String returns the name of the handler.
func (p *Plugin) String() string { return "policy" }

// HandlesEvent selects the events on which policy depends. Nodes are included because only some nodes write Events.
func (p *Plugin) HandlesEvent(event api.Event) bool {
	switch ev := event.(type) {
	case *api.KubeStateChange:
		switch ev.Resource {
		case kube.PolicyKeyword, kube.ClusterPolicyKeyword, kube.NodeKeyword, kube.PodKeyword, kube.NamespaceKeyword:
			return true
		}
		return false
	case *podmanager.AddPod, *podmanager.DeletePod:
		return true
	}
	return event.Method().IsResync()
}

// Resync implements api.EventHandler.
func (p *Plugin) Resync(_ api.Event, data api.KubeStateData, _ int, ops api.ResyncOperations) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reset()
	nodes := map[string]bool{}
	p.setNode(p.ServiceLabel.GetAgentLabel(), nil)
	for _, node := range kube.Values[*kube.Node](data, kube.NodeKeyword) {
		nodes[node.GetName()] = true
		p.setNode(node.GetName(), node)
		p.compiler.SetNode(node.GetName(), node)
	}
	p.objects = kube.Values[*kube.Policy](data, kube.PolicyKeyword)
	p.cluster = kube.Values[*kube.ClusterPolicy](data, kube.ClusterPolicyKeyword)
	namespaces := kube.Values[*kube.Namespace](data, kube.NamespaceKeyword)
	p.resyncProblems(nodes, namespaces)
	p.reportStatuses()
	for _, ns := range namespaces {
		p.compiler.SetNamespace(ns.GetName(), ns)
	}
	for _, pod := range kube.Values[*kube.Pod](data, kube.PodKeyword) {
		p.compiler.SetPod(endpointID(pod), pod)
	}
	for _, policy := range p.objects {
		p.compiler.SetPolicy(policy.GetNamespace(), policy.GetName(), policy)
	}
	for _, policy := range p.cluster {
		p.compiler.SetClusterPolicy(policy.GetName(), policy)
	}
	p.announce()
	if p.Renderer == nil {
		return nil
	}
	txn := resyncTxn{ops}
	p.Renderer.Base(txn)
	for _, a := range p.PodManager.LocalAttachments() {
		p.attached[a.Pod] = append(p.attached[a.Pod], a)
	}
	for id := range p.attached {
		p.setEndpoint(id)
	}
	p.render(p.compiler.Flush(), txn)
	p.reportLarge()
	for id := range p.attached {
		p.putEndpoints(id, txn)
	}
	return nil
}

func (p *Plugin) resyncProblems(nodes map[string]bool, namespaces map[string]*kube.Namespace) {
	p.problems.notEnforced = p.notEnforced()
	all := make(map[string]*source, len(p.objects)+len(p.cluster))
	for key, policy := range p.objects {
		all[key] = sourceOf(policy)
	}
	for key, policy := range p.cluster {
		all[key] = sourceOfCluster(policy)
	}
	for key, ns := range namespaces {
		if len(ns.GetProblems()) > 0 {
			all[key] = sourceOfNamespace(ns)
		}
	}
	p.problems.resync(nodes, all)
}

// resyncTxn is a transaction in which nothing has to be deleted.
type resyncTxn struct{ api.ResyncOperations }

func (resyncTxn) Delete(string) {}

func endpointID(pod *kube.Pod) model.EndpointID {
	return model.EndpointID{Namespace: pod.GetNamespace(), Name: pod.GetName()}
}

// Update implements api.EventHandler.
func (p *Plugin) Update(event api.Event, txn api.UpdateOperations) (change string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev := event.(type) {
	case *api.KubeStateChange:
		p.updateObject(ev)
	case *podmanager.AddPod:
		p.before = p.attached[ev.Attachment.Pod]
		p.attach(ev.Attachment.Pod, podmanager.AttachmentID{})
	case *podmanager.DeletePod:
		p.detach(ev.Attachment, txn)
	}
	if p.Renderer == nil {
		return "", nil
	}
	c := p.compiler.Flush()
	p.render(c, txn)
	p.reportLarge()
	if ev, is := event.(*podmanager.AddPod); is {
		p.putEndpoints(ev.Attachment.Pod, txn) // there is one more attachment, although the endpoint may be unchanged
	}
	return describe(c), nil
}

func (p *Plugin) updateObject(ev *api.KubeStateChange) {
	switch ev.Resource {
	case kube.NodeKeyword:
		prev, next := kube.Change[*kube.Node](ev)
		p.problems.node(prev.GetName(), next.GetName())
		if prev.GetName() != next.GetName() {
			p.reportStatuses()
		}
		p.setNode(prev.GetName(), nil)
		p.setNode(next.GetName(), next)
		if next == nil {
			p.compiler.SetNode(prev.GetName(), nil)
		} else {
			p.compiler.SetNode(next.GetName(), next)
		}
	case kube.NamespaceKeyword:
		prev, next := kube.Change[*kube.Namespace](ev)
		if next == nil {
			p.compiler.SetNamespace(prev.GetName(), nil)
		} else {
			p.compiler.SetNamespace(next.GetName(), next)
		}
		p.announce()
		p.problems.set(ev.Key, sourceOfNamespace(next))
	case kube.PodKeyword:
		prev, next := kube.Change[*kube.Pod](ev)
		if next == nil {
			p.compiler.SetPod(endpointID(prev), nil)
		} else {
			p.compiler.SetPod(endpointID(next), next)
		}
		p.announce()
	case kube.PolicyKeyword:
		prev, next := kube.Change[*kube.Policy](ev)
		if next == nil {
			p.compiler.SetPolicy(prev.GetNamespace(), prev.GetName(), nil)
			delete(p.objects, ev.Key)
		} else {
			p.compiler.SetPolicy(next.GetNamespace(), next.GetName(), next)
			p.objects[ev.Key] = next
		}
		p.problems.set(ev.Key, sourceOf(next))
	case kube.ClusterPolicyKeyword:
		prev, next := kube.Change[*kube.ClusterPolicy](ev)
		if next == nil {
			p.compiler.SetClusterPolicy(prev.GetName(), nil)
			delete(p.cluster, ev.Key)
		} else {
			p.compiler.SetClusterPolicy(next.GetName(), next)
			p.cluster[ev.Key] = next
		}
		p.problems.set(ev.Key, sourceOfCluster(next))
		p.reportStatuses()
	}
}

// setNode stores the addresses of this node. They are used for explanations only.
func (p *Plugin) setNode(name string, node *kube.Node) {
	if name == p.ServiceLabel.GetAgentLabel() {
		p.nodeAddrs = slices.Clone(node.GetAddresses())
		if p.OwnAddresses != nil {
			p.nodeAddrs = append(p.nodeAddrs, p.OwnAddresses()...)
		}
	}
}

// render passes changes to the renderer and records them.
func (p *Plugin) render(c model.Change, txn renderer.Txn) {
	for _, s := range c.Sets {
		p.sets[s.ID] = s
		p.Renderer.PutSet(s, txn)
	}
	for _, m := range c.Members {
		p.Renderer.ChangeMembers(m, txn)
	}
	for _, policy := range c.Policies {
		p.policies[policy.ID] = policy
		p.Renderer.PutPolicy(policy, txn)
	}
	for _, e := range c.Endpoints {
		p.endpoints[e.ID] = e
		p.putEndpoints(podmanager.PodID(e.ID), txn)
	}
	for _, id := range c.EndpointsGone {
		delete(p.endpoints, id)
	}
	for _, id := range c.PoliciesGone {
		delete(p.policies, id)
		p.Renderer.DeletePolicy(id, txn)
	}
	for _, id := range c.SetsGone {
		delete(p.sets, id)
		p.Renderer.DeleteSet(id, txn)
	}
}

// Revert implements api.EventHandler. The transaction restores the values; Revert restores the compiler.
func (p *Plugin) Revert(event api.Event) error {
	ev, is := event.(*podmanager.AddPod)
	if !is || p.Renderer == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setAttached(ev.Attachment.Pod, p.before)
	p.render(p.compiler.Flush(), nowhere{})
	p.reportLarge()
	return nil
}

// nowhere discards changes that a reverted transaction has already restored.
type nowhere struct{ resyncTxn }

func describe(c model.Change) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(len(c.Endpoints), "endpoints")
	add(len(c.Policies)+len(c.PoliciesGone), "policies")
	add(len(c.Sets)+len(c.SetsGone), "sets")
	add(len(c.Members), "sets' members")
	if len(parts) == 0 {
		return ""
	}
	return "change " + strings.Join(parts, ", ")
}
