package processor

import (
	"errors"
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/plugins/service/renderer"
)

// NodeInterfaces holds the logical names of the node's interfaces that do not belong to pods.
type NodeInterfaces struct {
	// Frontends are the interfaces from which clients may connect: uplinks, the tunnel to other nodes, the host's own stack.
	Frontends []string
	// Backends are the interfaces behind which endpoints may be: those to other nodes and to the host's own stack.
	Backends []string
}

// LocalPod is a pod of this node.
type LocalPod struct {
	Interface string
	Addresses []netip.Addr
}

// interfaces computes the interfaces between which service traffic flows. Every pod may be a client; pods that serve a service are
// backends.
type interfaces struct {
	node NodeInterfaces
	pods []LocalPod
	byIP map[netip.Addr]string // interface of the local pod with the address
	used map[netip.Addr]int    // number of services that have the address as a local backend
	live map[string]int        // number of addresses of the interface that are in use; has no zero values
	// backendSet is computed from node and live; nil when these have changed since.
	backendSet renderer.Interfaces
}

func newInterfaces() interfaces {
	return interfaces{byIP: map[netip.Addr]string{}, used: map[netip.Addr]int{}, live: map[string]int{}}
}

// use adds n to the use count of addresses.
func (i *interfaces) use(addrs []netip.Addr, n int) {
	for _, addr := range addrs {
		before := i.used[addr]
		now := before + n
		if i.used[addr] = now; now == 0 {
			delete(i.used, addr)
		}
		if name, local := i.byIP[addr]; local && (before == 0) != (now == 0) {
			i.count(name, now > 0)
		}
	}
}

func (i *interfaces) count(name string, up bool) {
	if up {
		i.live[name]++
		if i.live[name] == 1 {
			i.backendSet = nil
		}
		return
	}
	i.live[name]--
	if i.live[name] == 0 {
		delete(i.live, name)
		i.backendSet = nil
	}
}

// set replaces interfaces and pods.
func (i *interfaces) set(node NodeInterfaces, pods []LocalPod) {
	i.node, i.pods, i.backendSet = node, pods, nil
	i.byIP, i.live = make(map[netip.Addr]string, 2*len(pods)), map[string]int{}
	for _, pod := range pods {
		for _, addr := range pod.Addresses {
			i.byIP[addr] = pod.Interface
			if i.used[addr] > 0 {
				i.live[pod.Interface]++
			}
		}
	}
}

func (i *interfaces) frontends() renderer.Interfaces {
	out := renderer.NewInterfaces(i.node.Frontends...)
	for _, pod := range i.pods {
		out[pod.Interface] = struct{}{}
	}
	delete(out, "")
	return out
}

// backends returns the set of backend interfaces. The set is shared and must not be changed.
func (i *interfaces) backends() renderer.Interfaces {
	if i.backendSet == nil {
		i.backendSet = renderer.NewInterfaces(i.node.Backends...)
		for name := range i.live {
			i.backendSet[name] = struct{}{}
		}
		delete(i.backendSet, "")
	}
	return i.backendSet
}

// SetInterfaces sets the interfaces of the node and the pods that run on it.
func (p *Processor) SetInterfaces(node NodeInterfaces, pods []LocalPod) (change string, err error) {
	oldFront, oldBack := p.ifs.frontends(), p.ifs.backends()
	p.ifs.set(node, slices.Clone(pods))
	front := p.ifs.frontends()
	if !maps.Equal(oldFront, front) {
		change = "frontend interfaces"
		err = p.each(func(r renderer.ServiceRendererAPI) error { return r.UpdateLocalFrontendIfs(oldFront, front) })
	}
	back := p.ifs.backends()
	if !maps.Equal(oldBack, back) {
		change = joinChanges([]string{change, "backend interfaces"})
	}
	return change, errors.Join(err, p.reportBackends(oldBack, back))
}

// reportBackends sends the set of backend interfaces to renderers if it has changed.
func (p *Processor) reportBackends(old, now renderer.Interfaces) error {
	if maps.Equal(old, now) {
		return nil
	}
	return p.each(func(r renderer.ServiceRendererAPI) error { return r.UpdateLocalBackendIfs(old, now) })
}
