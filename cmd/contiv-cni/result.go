package main

import (
	"encoding/json"
	"net"
	"net/netip"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"contiv.dev/vswitch/internal/cniapi"
)

// prevResult is the result of the preceding plugins, or of the ADD for a CHECK. The fields that we read have the same form in all versions
// that we support. The CNI library does not convert it, because the library assumes that it is well-formed.
type prevResult struct {
	Interfaces []*types100.Interface `json:"interfaces"`
	IPs        []*prevIP             `json:"ips"`
	Routes     []*types.Route        `json:"routes"`
	DNS        types.DNS             `json:"dns"`
}

type prevIP struct {
	Interface *int       `json:"interface"`
	Address   textPrefix `json:"address"`
	Gateway   net.IP     `json:"gateway"`
}

// textPrefix is a netip.Prefix that also accepts text that only Go's netip rejects (leading zeros, zones).
type textPrefix struct{ netip.Prefix }

// UnmarshalJSON implements json.Unmarshaler.
func (p *textPrefix) UnmarshalJSON(data []byte) error {
	var n types.IPNet
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	addr, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if !ok || bits == 0 {
		return &net.ParseError{Type: "CIDR address", Text: string(data)}
	}
	if bits == 32 {
		addr = addr.Unmap()
	}
	p.Prefix = netip.PrefixFrom(addr, ones)
	return nil
}

// forAgent converts the previous result to the form that the agent compares.
func (r *prevResult) forAgent() *cniapi.Result {
	if r == nil {
		return nil
	}
	res := &cniapi.Result{}
	for _, i := range r.Interfaces {
		if i == nil {
			i = &types100.Interface{}
		}
		res.Interfaces = append(res.Interfaces, cniapi.Interface{Name: i.Name, MAC: i.Mac, MTU: i.Mtu, Sandbox: i.Sandbox})
	}
	for _, ip := range r.IPs {
		if ip == nil || !ip.Address.IsValid() {
			continue
		}
		index := -1
		if ip.Interface != nil {
			index = *ip.Interface
		}
		res.IPs = append(res.IPs, cniapi.IP{Interface: index, Address: ip.Address.Prefix})
	}
	return res
}

// mergeResult appends the agent's answer to the results of the preceding plugins.
func mergeResult(prev *prevResult, res *cniapi.Result) *types100.Result {
	out := &types100.Result{CNIVersion: types100.ImplementedSpecVersion}
	offset := 0
	if prev != nil {
		// An index refers to the list as it was passed, so a null entry keeps its place.
		for _, i := range prev.Interfaces {
			if i == nil {
				i = &types100.Interface{}
			}
			out.Interfaces = append(out.Interfaces, i)
		}
		for _, ip := range prev.IPs {
			if ip != nil && ip.Address.IsValid() {
				out.IPs = append(out.IPs, &types100.IPConfig{Interface: ip.Interface, Address: ipNet(ip.Address.Prefix), Gateway: ip.Gateway})
			}
		}
		for _, r := range prev.Routes {
			if r != nil {
				out.Routes = append(out.Routes, r)
			}
		}
		out.DNS = prev.DNS
		offset = len(out.Interfaces)
	}
	for _, i := range res.Interfaces {
		out.Interfaces = append(out.Interfaces, &types100.Interface{Name: i.Name, Mac: i.MAC, Mtu: i.MTU, Sandbox: i.Sandbox})
	}
	for _, ip := range res.IPs {
		out.IPs = append(out.IPs, &types100.IPConfig{
			Interface: types100.Int(ip.Interface + offset), Address: ipNet(ip.Address), Gateway: netIP(ip.Gateway)})
	}
	for _, r := range res.Routes {
		out.Routes = append(out.Routes, &types.Route{Dst: ipNet(r.Dst), GW: netIP(r.GW)})
	}
	if !res.DNS.IsZero() {
		out.DNS = types.DNS(res.DNS)
	}
	return out
}

// ipNet keeps the whole address: masking it would give the pod's network instead of the pod's address.
func ipNet(p netip.Prefix) net.IPNet {
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func netIP(a netip.Addr) net.IP {
	if !a.IsValid() {
		return nil
	}
	return a.AsSlice()
}
