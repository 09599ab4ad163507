package hnsmem

import (
	"fmt"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
)

func (h V2) ListEndpoints() ([]hcn.Endpoint, error) {
	unlock, err := h.begin("ListEndpoints", "")
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := []hcn.Endpoint{}
	for _, id := range sortedKeys(h.endpoints) {
		e := h.shown(h.endpoints[id])
		h.disorderEndpoint(&e)
		list = append(list, e)
	}
	return shuffled(h.Host, list), nil
}

// shown returns an endpoint in the form of version 2.
func (h *Host) shown(e *endpoint) hcn.Endpoint {
	out := clone(e.Endpoint)
	rules, err := hcn.ACLPolicies(e.acls)
	if err != nil {
		panic(err) // the type is ours
	}
	out.Policies = append(out.Policies, rules...)
	return out
}

// rulesOf splits policies into rules and others.
func (h *Host) rulesOf(policies []hcn.Policy) (acls []hns.ACL, others []hcn.Policy, err error) {
	for _, p := range policies {
		if p.Type != hcn.TypeACL {
			others = append(others, p)
			continue
		}
		if len(p.Settings) < len(`{"A":1}`) {
			return nil, nil, invalid("rule %s", p.Settings)
		}
		raw := append([]byte(`{"Type":"ACL",`), p.Settings[1:]...)
		a, _, err := hns.Decode(raw)
		if err != nil {
			return nil, nil, invalid("%v", err)
		}
		acls = append(acls, a)
	}
	if len(acls) > 0 {
		if err := h.checkACLs(acls); err != nil {
			return nil, nil, err
		}
	}
	for _, p := range others {
		if err := checkEndpointPolicy(p); err != nil {
			return nil, nil, err
		}
	}
	return acls, others, nil
}

func checkEndpointPolicy(p hcn.Policy) error {
	switch p.Type {
	case hcn.TypeOutBoundNAT:
		list, err := hcn.SettingsOf[hcn.OutboundNATSettings]([]hcn.Policy{p}, p.Type)
		if err != nil {
			return invalid("%v", err)
		}
		for _, text := range slices.Concat(list[0].Exceptions, list[0].Destinations) {
			if _, err := netip.ParsePrefix(text); err != nil {
				return invalid("outbound NAT: prefix %q", text)
			}
		}
	case hcn.TypeSDNRoute:
		list, err := hcn.SettingsOf[hcn.SDNRouteSettings]([]hcn.Policy{p}, p.Type)
		if err != nil {
			return invalid("%v", err)
		}
		if _, err := netip.ParsePrefix(list[0].DestinationPrefix); err != nil {
			return invalid("route to %q", list[0].DestinationPrefix)
		}
	case hcn.TypePortMapping:
		list, err := hcn.SettingsOf[hcn.PortMappingSettings]([]hcn.Policy{p}, p.Type)
		if err != nil || list[0].Protocol != 6 && list[0].Protocol != 17 || list[0].InternalPort == 0 || list[0].ExternalPort == 0 {
			return invalid("port mapping %s", p.Settings)
		}
	case hcn.TypeProviderAddr:
	default:
		return invalid("policy %s of an endpoint", p.Type)
	}
	return nil
}

func (h V2) CreateEndpoint(e hcn.Endpoint) (hcn.Endpoint, error) {
	unlock, err := h.begin("CreateEndpoint", e.Name)
	if err != nil {
		return hcn.Endpoint{}, err
	}
	defer unlock()
	return h.createEndpoint(e)
}

func (h *Host) createEndpoint(e hcn.Endpoint) (hcn.Endpoint, error) {
	e = clone(e)
	n := h.networks[e.HostComputeNetwork]
	if n == nil {
		return hcn.Endpoint{}, fmt.Errorf("network %q of endpoint %q: %w", e.HostComputeNetwork, e.Name, hcn.ErrNotFound)
	}
	remote := e.Flags&hcn.FlagRemote != 0
	if err := h.checkAddressesOf(n, e, remote); err != nil {
		return hcn.Endpoint{}, fmt.Errorf("endpoint %q: %w", e.Name, err)
	}
	acls, others, err := h.rulesOf(e.Policies)
	if err != nil {
		return hcn.Endpoint{}, fmt.Errorf("endpoint %q: %w", e.Name, err)
	}
	if remote && n.Type == hcn.Overlay {
		if err := checkRemote(e.MacAddress, others); err != nil {
			return hcn.Endpoint{}, fmt.Errorf("endpoint %q: %w", e.Name, err)
		}
	}
	if e.MacAddress != "" && !isMAC(e.MacAddress) {
		return hcn.Endpoint{}, invalid("endpoint %q: MAC address %q is not of the form 0A-00-00-00-00-01", e.Name, e.MacAddress)
	}
	e.ID, e.Policies = h.newID(), others
	if e.MacAddress == "" {
		e.MacAddress = fmt.Sprintf("00-15-5D-00-%02X-%02X", h.lastID>>8&255, h.lastID&255)
	}
	made := &endpoint{Endpoint: e, acls: acls, state: hns.Created}
	h.endpoints[e.ID] = made
	return h.shown(made), nil
}

// checkRemote checks a remote endpoint: an overlay sends to it by the address of its node, and by a MAC address.
func checkRemote(mac string, policies []hcn.Policy) error {
	list, err := hcn.SettingsOf[hcn.ProviderAddressSettings](policies, hcn.TypeProviderAddr)
	if err != nil || len(list) != 1 || mac == "" {
		return invalid("a remote endpoint of an overlay needs a MAC address and one provider address, and has %q, %d (%v)", mac, len(list), err)
	}
	if _, err := netip.ParseAddr(list[0].ProviderAddress); err != nil {
		return invalid("provider address %q", list[0].ProviderAddress)
	}
	return nil
}

func (h *Host) checkAddressesOf(n *hcn.Network, e hcn.Endpoint, remote bool) error {
	if len(e.IPConfigurations) == 0 {
		return invalid("no address") // our code always gives an address
	}
	for _, c := range e.IPConfigurations {
		a, err := netip.ParseAddr(c.IPAddress)
		if err != nil {
			return invalid("address %q", c.IPAddress)
		}
		if a.Is6() && !h.features.IPv6DualStack {
			return fmt.Errorf("IPv6: %w", hcn.ErrUnsupported)
		}
		if !remote && !inSubnets(n, a) {
			return invalid("address %s is in no subnet of network %s", a, n.Name)
		}
		for _, other := range h.endpoints {
			if other.HostComputeNetwork != n.ID {
				continue
			}
			for _, taken := range other.IPConfigurations {
				if taken.IPAddress == a.String() {
					return fmt.Errorf("address %s is endpoint %s's: %w", a, other.Name, hcn.ErrExists)
				}
			}
		}
	}
	return nil
}

func inSubnets(n *hcn.Network, a netip.Addr) bool {
	for _, pool := range n.IPAMs {
		for _, s := range pool.Subnets {
			if net, err := netip.ParsePrefix(s.IPAddressPrefix); err == nil && net.Contains(a) {
				return true
			}
		}
	}
	return false
}

func (h V2) DeleteEndpoint(id string) error {
	unlock, err := h.begin("DeleteEndpoint", id)
	if err != nil {
		return err
	}
	defer unlock()
	if err := checkIDs(id); err != nil {
		return err
	}
	if h.endpoints[id] == nil {
		return fmt.Errorf("endpoint %s: %w", id, hcn.ErrNotFound)
	}
	h.removeEndpoint(id)
	return nil
}

// removeEndpoint removes an endpoint from all objects that refer to it. It also removes a load balancer without endpoints, unless
// KeepBalancers was called.
func (h *Host) removeEndpoint(id string) {
	if e := h.endpoints[id]; e != nil && e.HostComputeNamespace != "" {
		h.detach(e)
	}
	delete(h.endpoints, id)
	if h.keepBalancers {
		return
	}
	for lbID, lb := range h.balancers {
		lb.HostComputeEndpoints = slices.DeleteFunc(lb.HostComputeEndpoints, func(e string) bool { return e == id })
		if len(lb.HostComputeEndpoints) == 0 {
			delete(h.balancers, lbID)
		}
	}
}

func (h V2) AddEndpointPolicies(id string, policies ...hcn.Policy) error {
	return h.changePolicies("AddEndpointPolicies", id, policies, func(e *endpoint, acls []hns.ACL, others []hcn.Policy) error {
		e.acls = append(e.acls, acls...)
		e.Policies = append(e.Policies, others...)
		return nil
	})
}

func (h V2) RemoveEndpointPolicies(id string, policies ...hcn.Policy) error {
	return h.changePolicies("RemoveEndpointPolicies", id, policies, func(e *endpoint, acls []hns.ACL, others []hcn.Policy) error {
		left, err := without(e.Policies, others)
		if err != nil {
			return err
		}
		e.Policies = left
		e.acls = slices.DeleteFunc(e.acls, func(a hns.ACL) bool { return slices.ContainsFunc(acls, a.Equal) })
		return nil
	})
}

func (h V2) UpdateEndpointPolicies(id string, policies ...hcn.Policy) error {
	return h.changePolicies("UpdateEndpointPolicies", id, policies, func(e *endpoint, acls []hns.ACL, others []hcn.Policy) error {
		if len(acls) > 0 {
			e.acls = acls
		}
		e.Policies = slices.DeleteFunc(e.Policies, func(old hcn.Policy) bool {
			return slices.ContainsFunc(others, func(p hcn.Policy) bool { return p.Type == old.Type })
		})
		e.Policies = append(e.Policies, others...)
		return nil
	})
}

func (h V2) changePolicies(op, id string, policies []hcn.Policy, change func(*endpoint, []hns.ACL, []hcn.Policy) error) error {
	unlock, err := h.begin(op, id)
	if err != nil {
		return err
	}
	defer unlock()
	e := h.endpoints[id]
	if e == nil {
		return fmt.Errorf("endpoint %s: %w", id, hcn.ErrNotFound)
	}
	acls, others, err := h.rulesOf(policies)
	if err != nil {
		return fmt.Errorf("endpoint %s: %w", id, err)
	}
	return change(e, acls, clone(others))
}
