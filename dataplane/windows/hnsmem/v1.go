package hnsmem

import (
	"fmt"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/windows/hns"
)

// V1 returns version 1 of the machine's HNS.
func (h *Host) V1() hns.API { return v1{h, nil} }

type v1 struct {
	*Host
	client *Client
}

func (h v1) SupportedFeatures() hns.Features {
	unlock, err := h.begin("SupportedFeatures", "")
	if err != nil {
		return hns.Features{} // as hcsshim does
	}
	defer unlock()
	return h.acl
}

func (h v1) ListEndpoints() ([]hns.Endpoint, error) {
	unlock, err := h.begin("ListEndpoints", "")
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := make([]hns.Endpoint, 0, len(h.endpoints))
	for _, id := range sortedKeys(h.endpoints) {
		e := h.endpoints[id]
		out := hns.Endpoint{ID: e.ID, Name: e.Name, Network: e.HostComputeNetwork, MAC: e.MacAddress,
			Namespace: e.HostComputeNamespace, Remote: e.Flags&1 != 0, State: e.state, Containers: slices.Clone(e.containers), ACLs: clone(e.acls)}
		h.disorderRules(out.ACLs)
		if n := h.networks[e.HostComputeNetwork]; n != nil {
			out.NetworkName = n.Name
		}
		for _, c := range e.IPConfigurations {
			switch a := netip.MustParseAddr(c.IPAddress); {
			case a.Is4():
				out.IPv4 = a
			default:
				out.IPv6 = a
			}
		}
		list = append(list, out)
	}
	return shuffled(h.Host, list), nil
}

func (h v1) ApplyACLs(endpointID string, acls []hns.ACL) error {
	unlock, err := h.begin("ApplyACLs", endpointID)
	if err != nil {
		return err
	}
	defer unlock()
	e := h.endpoints[endpointID]
	if e == nil {
		return fmt.Errorf("HNS endpoint %s: %w", endpointID, hns.ErrNotFound)
	}
	decoded, err := h.throughJSON(acls)
	if err != nil {
		return err
	}
	if err := h.checkACLs(decoded); err != nil {
		return fmt.Errorf("endpoint %s: %w", endpointID, err)
	}
	e.acls = decoded
	return nil
}

// throughJSON encodes and decodes rules, as on their way to HNS and back.
func (h *Host) throughJSON(acls []hns.ACL) ([]hns.ACL, error) {
	var out []hns.ACL
	for _, a := range acls {
		raw, err := hns.Encode(a)
		if err != nil {
			return nil, err
		}
		back, _, err := hns.Decode(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, back)
	}
	return out, nil
}
