package main

import (
	"encoding/json"
	"net"
	"net/netip"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"contiv.dev/vswitch/internal/cniapi"
)

// prevResult is the result of the plugins before us, or of the ADD when CHECKing. What we read of it is written alike in all
// versions that we support; it is not converted by the CNI library, which takes it for well-formed.
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

// textPrefix is netip.Prefix without the refusal of what only Go finds wrong (leading zeros, zones).
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

// forAgent is the previous result as the agent compares it.
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

// mergeResult puts what the agent answered behind what the plugins before us had done.
func mergeResult(prev *prevResult, res *cniapi.Result) *types100.Result {
	out := &types100.Result{CNIVersion: types100.ImplementedSpecVersion}
	offset := 0
	if prev != nil {
		// An index counts in the list as it was given, so even a null keeps its place.
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

// ipNet keeps the address: masking it would give the pod's network instead of the pod's address.
func ipNet(p netip.Prefix) net.IPNet {
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func netIP(a netip.Addr) net.IP {
	if !a.IsValid() {
		return nil
	}
	return a.AsSlice()
}
