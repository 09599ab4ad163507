package hnsmem

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
)

// Disorder makes lists appear in another order each time, addresses and nets in another spelling, and references to objects in lower case.
// Windows does not guarantee any of these. nil: no disorder.
func (h *Host) Disorder(order *rand.Rand) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.order = order
}

// shuffled changes the order in place.
func shuffled[T any](h *Host, list []T) []T {
	if h.order != nil {
		h.order.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return list
}

// respell returns an equivalent spelling of an address or a net.
func (h *Host) respell(text string) string {
	if h.order == nil || h.order.IntN(2) == 0 {
		return text
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return strings.ToUpper(a.StringExpanded())
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return fmt.Sprintf("%s/%d", strings.ToUpper(p.Addr().StringExpanded()), p.Bits())
	}
	return text
}

func (h *Host) respellAll(texts []string) {
	for i := range texts {
		texts[i] = h.respell(texts[i])
	}
	shuffled(h, texts)
}

// reference returns the ID of another object, possibly in lower case.
func (h *Host) reference(id string) string {
	if h.order == nil || h.order.IntN(2) == 0 {
		return id
	}
	return strings.ToLower(id)
}

func (h *Host) disorderNetwork(n *hcn.Network) {
	for _, pool := range shuffled(h, n.IPAMs) {
		for i := range shuffled(h, pool.Subnets) {
			s := &pool.Subnets[i]
			s.IPAddressPrefix = h.respell(s.IPAddressPrefix)
			for j := range s.Routes {
				s.Routes[j].NextHop = h.respell(s.Routes[j].NextHop)
			}
		}
	}
	shuffled(h, n.Policies)
}

func (h *Host) disorderEndpoint(e *hcn.Endpoint) {
	if h.order == nil {
		return
	}
	e.HostComputeNetwork, e.MacAddress = h.reference(e.HostComputeNetwork), strings.ToLower(e.MacAddress)
	for i := range shuffled(h, e.IPConfigurations) {
		c := &e.IPConfigurations[i]
		c.IPAddress = h.respell(c.IPAddress)
	}
	for i, p := range shuffled(h, e.Policies) {
		nat, err := hcn.SettingsOf[hcn.OutboundNATSettings]([]hcn.Policy{p}, hcn.TypeOutBoundNAT)
		if err != nil || len(nat) == 0 {
			continue
		}
		h.respellAll(nat[0].Exceptions)
		raw, err := json.Marshal(nat[0])
		if err != nil {
			panic(err) // the type is ours
		}
		e.Policies[i].Settings = raw
	}
}

func (h *Host) disorderBalancer(lb *hcn.LoadBalancer) {
	h.respellAll(lb.FrontendVIPs)
	for i, id := range shuffled(h, lb.HostComputeEndpoints) {
		lb.HostComputeEndpoints[i] = h.reference(id)
	}
	lb.SourceVIP = h.respell(lb.SourceVIP)
}

func (h *Host) disorderRules(acls []hns.ACL) {
	for _, a := range shuffled(h, acls) {
		shuffled(h, a.LocalAddresses)
		shuffled(h, a.RemoteAddresses)
		shuffled(h, a.LocalPorts)
		shuffled(h, a.RemotePorts)
	}
}
