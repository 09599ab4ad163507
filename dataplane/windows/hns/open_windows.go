package hns

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/Microsoft/hcsshim"
)

// Open returns the HNS of this machine.
func Open() (API, error) { return windows{}, nil }

// windows is HNS by hcsshim; it has no state.
type windows struct{}

func (windows) SupportedFeatures() Features {
	f := hcsshim.GetHNSSupportedFeatures().Acl
	return Features{AddressLists: f.AclAddressLists, PortRanges: f.AclPortRanges, RuleIDs: f.AclRuleId,
		NoHostRulePriority: f.AclNoHostRulePriority}
}

func (windows) ListEndpoints() ([]Endpoint, error) {
	list, err := hcsshim.HNSListEndpointRequest()
	if err != nil {
		return nil, fmt.Errorf("list HNS endpoints: %w", err)
	}
	out := make([]Endpoint, 0, len(list))
	for _, e := range list {
		out = append(out, endpointOf(e))
	}
	return out, nil
}

func endpointOf(e hcsshim.HNSEndpoint) Endpoint {
	out := Endpoint{ID: e.Id, Name: e.Name, Network: e.VirtualNetwork, NetworkName: e.VirtualNetworkName, MAC: e.MacAddress,
		IPv4: addrOf(e.IPAddress), IPv6: addrOf(e.IPv6Address), Remote: e.IsRemoteEndpoint, State: State(e.State),
		Containers: e.SharedContainers}
	if e.Namespace != nil {
		out.Namespace = e.Namespace.ID
	}
	for _, raw := range e.Policies {
		acl, is, err := Decode(raw)
		switch {
		case !is:
		case err != nil:
			out.Unreadable++
		default:
			out.ACLs = append(out.ACLs, acl)
		}
	}
	return out
}

func addrOf(ip net.IP) netip.Addr {
	a, ok := netip.AddrFromSlice(ip)
	if !ok || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a.Unmap()
}

// ApplyACLs identifies the endpoint by its ID only, so the request has only the given policies.
func (windows) ApplyACLs(endpointID string, acls []ACL) error {
	if len(acls) == 0 {
		return errors.New("an access control list without a rule would allow everything, so it is not sent")
	}
	policies := make([]*hcsshim.ACLPolicy, 0, len(acls))
	for _, a := range acls {
		raw, err := Encode(a)
		if err != nil {
			return err
		}
		p := &hcsshim.ACLPolicy{}
		if err := json.Unmarshal(raw, p); err != nil {
			return fmt.Errorf("rule %s as hcsshim has it: %w", a.ID, err)
		}
		policies = append(policies, p)
	}
	endpoint := &hcsshim.HNSEndpoint{Id: endpointID}
	if err := endpoint.ApplyACLPolicy(policies...); err != nil {
		return fmt.Errorf("apply %d rules to HNS endpoint %s: %w", len(acls), endpointID, withSentinel(err))
	}
	return nil
}

// withSentinel adds ErrNotFound to an error that means it. Version 1 of HNS returns only texts and codes.
func withSentinel(err error) error {
	text := strings.ToLower(err.Error())
	for _, sign := range []string{"not found", "0x803b0002", "0x490"} { // HCN_E_ENDPOINT_NOT_FOUND, ERROR_NOT_FOUND
		if strings.Contains(text, sign) {
			return errors.Join(ErrNotFound, err)
		}
	}
	return err
}
