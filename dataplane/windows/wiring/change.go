package wiring

import (
	"errors"
	"fmt"

	windows_hns "contiv.dev/vswitch/dataplane/nb/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hcn"
)

// sameNode compares the settings that depend on the node's own addresses: packets of an overlay have one of them as source, and on an L2
// bridge a pod reaches them through the switch.
func sameNode(a, b *windows_hns.Endpoint) bool {
	return canonical(a.GetProviderAddress()) == canonical(b.GetProviderAddress()) && sameTexts(a.GetThroughSwitch(), b.GetThroughSwitch())
}

// providerOf returns the node's address that carries an endpoint's packets; "": HNS shows none. If there are several, only the first one
// counts.
func providerOf(e hcn.Endpoint) (string, error) {
	list, err := hcn.SettingsOf[hcn.ProviderAddressSettings](e.Policies, hcn.TypeProviderAddr)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].ProviderAddress, nil
}

// readNode reads the settings that depend on the node's addresses.
func readNode(e hcn.Endpoint, v *windows_hns.Endpoint) (err error) {
	if v.ProviderAddress, err = providerOf(e); err != nil {
		return err
	}
	routes, err := hcn.SettingsOf[hcn.SDNRouteSettings](e.Policies, hcn.TypeSDNRoute)
	for _, r := range routes {
		v.ThroughSwitch = append(v.ThroughSwitch, r.DestinationPrefix)
	}
	return err
}

// errRigid means that HNS has not changed in place the settings that depend on the node's addresses.
var errRigid = errors.New("HNS does not change it in place: the endpoint is made again")

// changeEndpoint changes policies in place, so that the pod keeps its endpoint.
func (w *Wiring) changeEndpoint(applied, e *windows_hns.Endpoint) error {
	id := w.endpoints[e.GetName()]
	spec, err := endpointSpec("", e)
	if err != nil {
		return err
	}
	object := "endpoint " + e.GetName()
	if !sameNAT(applied, e) {
		if err := w.do(object, func() error { return setPolicies(w.HCN, id, hcn.TypeOutBoundNAT, spec.Policies) }); err != nil {
			return err
		}
	}
	if sameNode(applied, e) {
		return nil
	}
	err = w.do(object, func() error { return changeNode(w.HCN, id, spec.Policies, e) })
	if errors.Is(err, errRigid) {
		w.rigid = true
		w.Log.Warn("the node has other addresses, and HNS does not change endpoints in place: they are made again", "endpoint", e.GetName(), "error", err)
	}
	return err
}

// changeNode changes the settings that depend on the node's addresses, and checks that HNS has changed them.
func changeNode(h endpoints, id string, want []hcn.Policy, e *windows_hns.Endpoint) error {
	for _, kind := range []hcn.PolicyType{hcn.TypeSDNRoute, hcn.TypeProviderAddr} {
		err := setPolicies(h, id, kind, want)
		if errors.Is(err, hcn.ErrUnsupported) || errors.Is(err, hcn.ErrInvalid) {
			return fmt.Errorf("%w (policy %s: %s)", errRigid, kind, err.Error()) // as text: a wrapped cause would make the error permanent
		}
		if err != nil {
			return err
		}
	}
	list, err := h.ListEndpoints()
	if err != nil {
		return err
	}
	for _, have := range list {
		if have.ID != id {
			continue
		}
		var is windows_hns.Endpoint
		if err := readNode(have, &is); err != nil {
			return err
		}
		if !sameNode(&is, e) {
			return fmt.Errorf("%w (it has provider address %q, routes to %v)", errRigid, is.GetProviderAddress(), is.GetThroughSwitch())
		}
	}
	return nil
}

// setPolicies replaces an endpoint's policies of one type by the desired ones.
func setPolicies(h endpoints, id string, kind hcn.PolicyType, want []hcn.Policy) error {
	if list := ofType(want, kind); len(list) > 0 {
		return h.UpdateEndpointPolicies(id, list...)
	}
	list, err := h.ListEndpoints()
	if err != nil {
		return err
	}
	for _, have := range list {
		if old := ofType(have.Policies, kind); have.ID == id && len(old) > 0 {
			return h.RemoveEndpointPolicies(id, old...)
		}
	}
	return nil
}

func ofType(list []hcn.Policy, kind hcn.PolicyType) (out []hcn.Policy) {
	for _, p := range list {
		if p.Type == kind {
			out = append(out, p)
		}
	}
	return out
}
