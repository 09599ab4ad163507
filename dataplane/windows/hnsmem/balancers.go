package hnsmem

import (
	"fmt"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/windows/hcn"
)

func (h V2) ListLoadBalancers() ([]hcn.LoadBalancer, error) {
	unlock, err := h.begin("ListLoadBalancers", "")
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := []hcn.LoadBalancer{}
	for _, id := range sortedKeys(h.balancers) {
		lb := clone(*h.balancers[id])
		h.disorderBalancer(&lb)
		list = append(list, lb)
	}
	return shuffled(h.Host, list), nil
}

func (h V2) CreateLoadBalancer(lb hcn.LoadBalancer) (hcn.LoadBalancer, error) {
	unlock, err := h.begin("CreateLoadBalancer", "")
	if err != nil {
		return hcn.LoadBalancer{}, err
	}
	defer unlock()
	if err := h.checkBalancer("", lb); err != nil {
		return hcn.LoadBalancer{}, fmt.Errorf("load balancer %v: %w", lb.FrontendVIPs, err)
	}
	lb = clone(lb)
	lb.ID = h.newID()
	h.balancers[lb.ID] = &lb
	return clone(lb), nil
}

func (h V2) UpdateLoadBalancer(id string, lb hcn.LoadBalancer) (hcn.LoadBalancer, error) {
	unlock, err := h.begin("UpdateLoadBalancer", id)
	if err != nil {
		return hcn.LoadBalancer{}, err
	}
	defer unlock()
	switch {
	case !h.features.ModifyLoadbalancer:
		return hcn.LoadBalancer{}, fmt.Errorf("change a load balancer in place: %w", hcn.ErrUnsupported)
	case h.balancers[id] == nil:
		return hcn.LoadBalancer{}, fmt.Errorf("load balancer %s: %w", id, hcn.ErrNotFound)
	}
	if err := h.checkBalancer(id, lb); err != nil {
		return hcn.LoadBalancer{}, fmt.Errorf("load balancer %s: %w", id, err)
	}
	lb = clone(lb)
	lb.ID = id
	h.balancers[id] = &lb
	return clone(lb), nil
}

func (h V2) DeleteLoadBalancer(id string) error {
	unlock, err := h.begin("DeleteLoadBalancer", id)
	if err != nil {
		return err
	}
	defer unlock()
	if err := checkIDs(id); err != nil {
		return err
	}
	if h.balancers[id] == nil {
		return fmt.Errorf("load balancer %s: %w", id, hcn.ErrNotFound)
	}
	delete(h.balancers, id)
	return nil
}

// checkBalancer checks a load balancer before it is created or changed; id is its ID if it already exists.
func (h *Host) checkBalancer(id string, lb hcn.LoadBalancer) error {
	if len(lb.HostComputeEndpoints) == 0 {
		return invalid("no endpoint")
	}
	network := ""
	for i, ep := range lb.HostComputeEndpoints {
		e := h.endpoints[ep]
		switch {
		case e == nil:
			return fmt.Errorf("endpoint %s: %w", ep, hcn.ErrNotFound)
		case slices.Contains(lb.HostComputeEndpoints[:i], ep):
			return invalid("endpoint %s twice", ep)
		case network != "" && network != e.HostComputeNetwork:
			return invalid("endpoints of two networks")
		}
		network = e.HostComputeNetwork
	}
	if lb.Flags&hcn.LBFlagDSR != 0 && !h.features.DSR {
		return fmt.Errorf("direct server return: %w", hcn.ErrUnsupported)
	}
	if lb.SourceVIP != "" {
		if _, err := netip.ParseAddr(lb.SourceVIP); err != nil {
			return invalid("source VIP %q", lb.SourceVIP)
		}
	}
	for _, vip := range lb.FrontendVIPs {
		a, err := netip.ParseAddr(vip)
		if err != nil || a.Is6() != (lb.Flags&hcn.LBFlagIPv6 != 0) {
			return invalid("VIP %q, or the flag IPv6", vip)
		}
	}
	return h.checkMappings(id, lb)
}

func (h *Host) checkMappings(id string, lb hcn.LoadBalancer) error {
	if len(lb.PortMappings) == 0 {
		return invalid("no port")
	}
	for _, m := range lb.PortMappings {
		switch {
		case m.Protocol != 6 && m.Protocol != 17:
			return invalid("protocol %d", m.Protocol)
		case m.InternalPort == 0 || m.ExternalPort == 0:
			return invalid("port %d to %d", m.ExternalPort, m.InternalPort)
		case m.DistributionType > hcn.LBDistributeSourceIP:
			return invalid("distribution %d", m.DistributionType)
		case m.DistributionType != 0 && !h.features.SessionAffinity:
			return fmt.Errorf("session affinity: %w", hcn.ErrUnsupported)
		}
		for otherID, other := range h.balancers {
			if otherID != id && h.clash(m, lb, other) {
				return fmt.Errorf("port %d/%d of %v is load balancer %s's: %w", m.Protocol, m.ExternalPort, lb.FrontendVIPs, otherID,
					hcn.ErrExists)
			}
		}
	}
	return nil
}

// clash reports whether a port of one load balancer belongs to another one on the same addresses.
func (h *Host) clash(m hcn.LBPortMapping, lb hcn.LoadBalancer, other *hcn.LoadBalancer) bool {
	same := len(lb.FrontendVIPs) == 0 && len(other.FrontendVIPs) == 0 && lb.Flags&hcn.LBFlagIPv6 == other.Flags&hcn.LBFlagIPv6
	for _, vip := range lb.FrontendVIPs {
		same = same || slices.Contains(other.FrontendVIPs, vip)
	}
	return same && slices.ContainsFunc(other.PortMappings, func(o hcn.LBPortMapping) bool {
		return o.Protocol == m.Protocol && o.ExternalPort == m.ExternalPort
	})
}
