package wiring

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hcn"
)

// nodes holds the other nodes of an overlay, from the driver's messages about routes and tunnel endpoints.
type nodes struct {
	blocks map[netip.Prefix]string // the node of a block of pod addresses
	at     map[string][]netip.Addr // the addresses of a node
	owners map[netip.Addr]string   // the inverse of at
}

// Observe handles a message for the driver, to determine the node of each backend. It runs on the scheduler's goroutine, like the feed, which
// must be a backend before w.
func (w *Wiring) Observe(msg any) {
	switch msg := msg.(type) {
	case *proto.RouteUpdate:
		dst, err := netip.ParsePrefix(msg.GetDst())
		if err != nil {
			return // the driver reports the error
		}
		node := msg.GetDstNodeName()
		if !msg.Is(proto.RouteUpdate_TYPES_REMOTE_WORKLOAD) || msg.GetIpPoolType() != proto.IPPoolType_VXLAN {
			node = ""
		}
		w.noteBlock(dst.Masked(), node)
	case *proto.RouteRemove:
		if dst, err := netip.ParsePrefix(msg.GetDst()); err == nil {
			w.noteBlock(dst.Masked(), "")
		}
	case *proto.VXLANTunnelEndpointUpdate:
		var at []netip.Addr
		for _, text := range []string{msg.GetParentDeviceIp(), msg.GetParentDeviceIpv6()} {
			if a, err := netip.ParseAddr(text); err == nil {
				at = append(at, a.Unmap())
			}
		}
		w.noteNode(msg.GetNode(), at)
	case *proto.VXLANTunnelEndpointRemove:
		w.noteNode(msg.GetNode(), nil)
	}
}

func (w *Wiring) noteNode(name string, at []netip.Addr) {
	old := w.nodes.at[name]
	if slices.Equal(old, at) {
		return
	}
	w.balanced = false
	for _, a := range old {
		if w.nodes.owners[a] == name { // otherwise another node has taken over the address
			delete(w.nodes.owners, a)
		}
	}
	for _, a := range at {
		w.nodes.owners[a] = name
	}
	if w.nodes.at[name] = at; len(at) == 0 {
		delete(w.nodes.at, name)
	}
}

func (w *Wiring) noteBlock(dst netip.Prefix, node string) {
	if w.nodes.blocks[dst] == node {
		return
	}
	w.balanced = false
	if w.nodes.blocks[dst] = node; node == "" {
		delete(w.nodes.blocks, dst)
	}
}

// provider returns the address of the node that has a backend. A backend of no node is outside of the cluster: provider returns this node's
// own address, like kube-proxy. The cost does not depend on the number of nodes.
func (n nodes) provider(backend, own netip.Addr) netip.Addr {
	node := n.nodeOf(backend)
	for _, a := range n.at[node] {
		if a.Is6() == backend.Is6() || len(n.at[node]) == 1 {
			return a
		}
	}
	if _, is := n.owners[backend]; is {
		return backend // a pod in the host network of its node
	}
	return own
}

// nodeOf returns the node with the longest block that contains a backend; "": none.
func (n nodes) nodeOf(backend netip.Addr) string {
	for bits := backend.BitLen(); bits >= 0; bits-- {
		block, err := backend.Prefix(bits)
		if err != nil {
			return ""
		}
		if name, is := n.blocks[block]; is {
			return name
		}
	}
	return ""
}

// remoteSpec returns the endpoint of a backend on another node.
func (w *Wiring) remoteSpec(k *known, a netip.Addr) (hcn.Endpoint, error) {
	e := hcn.Endpoint{
		Name: remotePrefix + a.String(), HostComputeNetwork: k.network, Flags: hcn.FlagRemote, SchemaVersion: hcn.V2,
		IPConfigurations: []hcn.IPConfig{ipConfig(a.String(), "")},
	}
	if !k.overlay {
		return e, nil
	}
	e.MacAddress = remoteMAC(a)
	at := w.nodes.provider(a, k.provider)
	if !at.IsValid() {
		return e, fmt.Errorf("backend %s: HNS shows no provider address of this node's own endpoint", a)
	}
	var p policies
	p.add(hcn.TypeProviderAddr, hcn.ProviderAddressSettings{ProviderAddress: at.String()})
	e.Policies = p.list
	return e, p.err
}

// moveRemotes sets the provider addresses of backends that have moved to another node. It reports whether some lost their endpoints because
// HNS did not change them in place; those are made again.
func (w *Wiring) moveRemotes(k *known, want map[string][]balancer, failed *failures) (lost bool) {
	if !k.overlay {
		return false
	}
	users, addrs := usersOf(want)
	for _, a := range addrs {
		id, is := k.remotes[a]
		at := w.nodes.provider(a, k.provider)
		if !is || !at.IsValid() || k.providers[id] == at.String() {
			continue
		}
		object := "backend " + a.String()
		err := w.do(object, func() error { return changeProvider(w.HCN, id, at.String()) })
		if errors.Is(err, errRigid) {
			err = w.do(object, func() error { return gone(w.HCN.DeleteEndpoint(id)) })
			lost = lost || err == nil
		}
		failed.blame(err, users[a]...)
	}
	return lost
}

// changeProvider changes the provider address of an endpoint in place, and checks that HNS has changed it.
func changeProvider(h endpoints, id, at string) error {
	var p policies
	p.add(hcn.TypeProviderAddr, hcn.ProviderAddressSettings{ProviderAddress: at})
	if p.err != nil {
		return p.err
	}
	err := h.UpdateEndpointPolicies(id, p.list...)
	if errors.Is(err, hcn.ErrUnsupported) || errors.Is(err, hcn.ErrInvalid) {
		return fmt.Errorf("%w (%s)", errRigid, err.Error())
	}
	if err != nil {
		return gone(err) // the endpoint is made again after the next read of HNS
	}
	list, err := h.ListEndpoints()
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.ID != id {
			continue
		}
		if is, err := providerOf(e); err != nil || canonical(is) != at {
			return fmt.Errorf("%w (it has provider address %q)", errRigid, is)
		}
	}
	return nil
}
