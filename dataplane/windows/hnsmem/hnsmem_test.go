package hnsmem_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

func must[T any](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func policyOf(t *testing.T, kind hcn.PolicyType, settings any) hcn.Policy {
	t.Helper()
	p, err := hcn.NewPolicy(kind, settings)
	return must(t, p, err)
}

func network(t *testing.T, h *hnsmem.Host, name string, kind hcn.NetworkType, policies ...hcn.Policy) hcn.Network {
	t.Helper()
	s := hcn.Subnet{IPAddressPrefix: "10.65.0.0/16", Routes: []hcn.Route{{NextHop: "10.65.255.254", DestinationPrefix: "0.0.0.0/0"}}}
	if kind == hcn.Overlay {
		s.Policies = []hcn.Policy{policyOf(t, hcn.TypeVSID, hcn.VSIDSettings{IsolationID: 4097})}
	}
	n, err := h.V2().CreateNetwork(hcn.Network{Name: name, Type: kind, IPAMs: []hcn.IPAM{{Subnets: []hcn.Subnet{s}}}, Policies: policies})
	return must(t, n, err)
}

func rule(change func(*hns.ACL)) hns.ACL {
	a := hns.ACL{Protocol: hns.AnyProtocol, Action: hns.Allow, Direction: hns.In, RuleType: hns.Switch, Priority: 1000}
	if change != nil {
		change(&a)
	}
	return a
}

// TestRefusedRules: HNS rejects each of the rules; a list that contains one leaves the endpoint unchanged.
func TestRefusedRules(t *testing.T) {
	h := hnsmem.New()
	network(t, h, "net", hcn.L2Bridge)
	id, err := h.Pod("net", "a", netip.MustParseAddr("10.65.0.1"))
	must(t, id, err)
	good := rule(nil)
	if err := h.V1().ApplyACLs(id, []hns.ACL{good}); err != nil {
		t.Fatal(err)
	}
	net := netip.MustParsePrefix
	for name, change := range map[string]func(*hns.ACL){
		"no action":     func(a *hns.ACL) { a.Action = "" },
		"no direction":  func(a *hns.ACL) { a.Direction = "" },
		"no type":       func(a *hns.ACL) { a.RuleType = "" },
		"protocol":      func(a *hns.ACL) { a.Protocol = 300 },
		"priority low":  func(a *hns.ACL) { a.Priority = 1 },
		"priority high": func(a *hns.ACL) { a.Priority = 65001 },
		"ports of any":  func(a *hns.ACL) { a.LocalPorts = []hns.PortRange{{First: 80, Last: 80}} },
		"ports of SCTP": func(a *hns.ACL) { a.Protocol, a.RemotePorts = 132, []hns.PortRange{{First: 80, Last: 80}} },
		"two families":  func(a *hns.ACL) { a.LocalAddresses = []netip.Prefix{net("10.0.0.0/8"), net("fd00::/8")} },
		"family by side": func(a *hns.ACL) {
			a.LocalAddresses, a.RemoteAddresses = []netip.Prefix{net("10.0.0.0/8")}, []netip.Prefix{net("fd00::/8")}
		},
		"many addresses": func(a *hns.ACL) { a.RemoteAddresses = many(hns.MaxAddresses + 1) },
		"many ports": func(a *hns.ACL) {
			a.Protocol, a.LocalPorts = 6, slices.Repeat([]hns.PortRange{{First: 1, Last: 1}}, hns.MaxPorts+1)
		},
		"host's priority": func(a *hns.ACL) { a.RuleType = hns.Host },
	} {
		if err := h.V1().ApplyACLs(id, []hns.ACL{good, rule(change)}); !errors.Is(err, hcn.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if err := h.V1().ApplyACLs(id, nil); !errors.Is(err, hcn.ErrInvalid) {
		t.Errorf("a list without rules: %v", err)
	}
	if got := h.ACLs(id); len(got) != 1 || !got[0].Equal(good) {
		t.Errorf("after refused lists the endpoint has %v", got)
	}
	if err := h.V1().ApplyACLs("nowhere", []hns.ACL{good}); !errors.Is(err, hns.ErrNotFound) {
		t.Errorf("unknown endpoint: %v", err)
	}
	h.SetFeatures(hns.Features{}, hcn.Features{})
	for name, change := range map[string]func(*hns.ACL){
		"address list": func(a *hns.ACL) { a.RemoteAddresses = many(2) },
		"port range":   func(a *hns.ACL) { a.Protocol, a.LocalPorts = 6, []hns.PortRange{{First: 1, Last: 2}} },
		"port list": func(a *hns.ACL) {
			a.Protocol, a.LocalPorts = 6, []hns.PortRange{{First: 1, Last: 1}, {First: 3, Last: 3}}
		},
		"ID":            func(a *hns.ACL) { a.ID = "x" },
		"IPv6":          func(a *hns.ACL) { a.RemoteAddresses = []netip.Prefix{net("fd00::/8")} },
		"host priority": func(a *hns.ACL) { a.RuleType, a.Priority = hns.Host, 0 },
	} {
		if err := h.V1().ApplyACLs(id, []hns.ACL{rule(change)}); !errors.Is(err, hcn.ErrInvalid) {
			t.Errorf("old Windows: %s: %v, want ErrInvalid", name, err)
		}
	}
}

func many(n int) []netip.Prefix {
	var list []netip.Prefix
	a := netip.MustParseAddr("10.0.0.1")
	for range n {
		list = append(list, netip.PrefixFrom(a, 32))
		a = a.Next()
	}
	return list
}

func TestWalk(t *testing.T) {
	packet := hnsmem.Packet{Protocol: 6, Local: netip.MustParseAddr("10.65.0.1"), Remote: netip.MustParseAddr("192.0.2.1"),
		LocalPort: 80, RemotePort: 40000}
	web := func(a *hns.ACL) { a.Protocol, a.LocalPorts = 6, []hns.PortRange{{First: 80, Last: 81}} }
	block := func(a *hns.ACL) { web(a); a.Action = hns.Block }
	later := func(a *hns.ACL) { block(a); a.Priority = 1001 }
	for _, c := range []struct {
		name  string
		rules []hns.ACL
		want  bool
		wrong bool
	}{
		{"no rule at all", nil, true, false},
		{"a rule of the other direction", []hns.ACL{rule(func(a *hns.ACL) { a.Direction = hns.Out })}, false, false},
		{"only a host rule", []hns.ACL{rule(func(a *hns.ACL) { a.RuleType = hns.Host })}, true, false},
		{"allowed", []hns.ACL{rule(web), rule(later)}, true, false},
		{"the order of the list does not count", []hns.ACL{rule(later), rule(web)}, true, false},
		{"contradiction", []hns.ACL{rule(web), rule(block)}, false, true},
		{"other port", []hns.ACL{rule(func(a *hns.ACL) { web(a); a.LocalPorts[0].First = 81 })}, false, false},
		{"other remote", []hns.ACL{rule(func(a *hns.ACL) { a.RemoteAddresses = many(1) })}, false, false},
	} {
		got, err := hnsmem.Walk(c.rules, hns.In, packet)
		if got != c.want || (err != nil) != c.wrong {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

// TestNetworks: policies and addresses that do not fit the kind of network are rejected, and so are conflicts between two objects.
func TestNetworks(t *testing.T) {
	h := hnsmem.New()
	bridge := network(t, h, "bridge", hcn.L2Bridge)
	remote := policyOf(t, hcn.TypeRemoteSubnet, hcn.RemoteSubnetSettings{DestinationPrefix: "10.66.0.0/24", IsolationID: 4097,
		ProviderAddress: "192.0.2.2", DistributedRouterMacAddress: "66-00-00-00-00-02"})
	if err := h.V2().AddNetworkPolicies(bridge.ID, remote); !errors.Is(err, hcn.ErrUnsupported) {
		t.Errorf("remote subnet on a bridge: %v", err)
	}
	overlay := network(t, h, "overlay", hcn.Overlay)
	if err := h.V2().AddNetworkPolicies(overlay.ID, remote); err != nil {
		t.Error(err)
	}
	if err := h.V2().AddNetworkPolicies(overlay.ID, remote); !errors.Is(err, hcn.ErrExists) {
		t.Errorf("remote subnet twice: %v", err)
	}
	if err := h.V2().RemoveNetworkPolicies(overlay.ID, remote); err != nil {
		t.Error(err)
	}
	if err := h.V2().RemoveNetworkPolicies(overlay.ID, remote); !errors.Is(err, hcn.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	for name, s := range map[string]hcn.RemoteSubnetSettings{
		"VNI":     {DestinationPrefix: "10.66.0.0/24", IsolationID: 10, ProviderAddress: "192.0.2.2", DistributedRouterMacAddress: "66-00-00-00-00-02"},
		"MAC":     {DestinationPrefix: "10.66.0.0/24", IsolationID: 4096, ProviderAddress: "192.0.2.2", DistributedRouterMacAddress: "66:00:00:00:00:02"},
		"address": {DestinationPrefix: "10.66.0.0/24", IsolationID: 4096, ProviderAddress: "node", DistributedRouterMacAddress: "66-00-00-00-00-02"},
		"prefix":  {DestinationPrefix: "10.66.0.1/24", IsolationID: 4096, ProviderAddress: "192.0.2.2", DistributedRouterMacAddress: "66-00-00-00-00-02"},
	} {
		if err := h.V2().AddNetworkPolicies(overlay.ID, policyOf(t, hcn.TypeRemoteSubnet, s)); !errors.Is(err, hcn.ErrInvalid) {
			t.Errorf("remote subnet with a wrong %s: %v", name, err)
		}
	}
	id, err := h.Pod("bridge", "a", netip.MustParseAddr("10.65.0.1"))
	must(t, id, err)
	if _, err := h.Pod("bridge", "b", netip.MustParseAddr("10.65.0.1")); !errors.Is(err, hcn.ErrExists) {
		t.Errorf("an address twice: %v", err)
	}
	if _, err := h.Pod("bridge", "b", netip.MustParseAddr("10.99.0.1")); !errors.Is(err, hcn.ErrInvalid) {
		t.Errorf("an address of no subnet: %v", err)
	}
}

func TestBalancersAndVanishing(t *testing.T) {
	h := hnsmem.New()
	network(t, h, "net", hcn.L2Bridge)
	id, err := h.Pod("net", "a", netip.MustParseAddr("10.65.0.1"))
	must(t, id, err)
	lb := hcn.LoadBalancer{HostComputeEndpoints: []string{id}, FrontendVIPs: []string{"10.96.0.1"},
		PortMappings: []hcn.LBPortMapping{{Protocol: 6, ExternalPort: 80, InternalPort: 8080}}}
	made, err := h.V2().CreateLoadBalancer(lb)
	must(t, made, err)
	if _, err := h.V2().CreateLoadBalancer(lb); !errors.Is(err, hcn.ErrExists) {
		t.Errorf("the port twice: %v", err)
	}
	lb.PortMappings[0].InternalPort = 8081
	if _, err := h.V2().UpdateLoadBalancer(made.ID, lb); err != nil {
		t.Errorf("change in place: %v", err)
	}
	if _, err := h.V2().CreateLoadBalancer(hcn.LoadBalancer{FrontendVIPs: []string{"10.96.0.2"}, PortMappings: lb.PortMappings}); !errors.Is(err, hcn.ErrInvalid) {
		t.Errorf("no endpoint: %v", err)
	}
	h.Vanish(id)
	if list, err := h.V2().ListLoadBalancers(); err != nil || len(list) > 0 {
		t.Errorf("load balancers of an endpoint that vanished: %v, %v", list, err)
	}
	if err := h.V2().DeleteEndpoint(id); !errors.Is(err, hcn.ErrNotFound) {
		t.Errorf("delete what vanished: %v", err)
	}
}

// TestBothVersionsShowTheSame: version 1 lists an endpoint that version 2 has made and attached to a namespace.
func TestBothVersionsShowTheSame(t *testing.T) {
	h := hnsmem.New()
	n := network(t, h, "net", hcn.L2Bridge)
	acl := policyOf(t, hcn.TypeACL, hcn.ACLSettings{Protocols: "6", Action: "Block", Direction: "In", LocalPorts: "80,90-99",
		RemoteAddresses: "10.0.0.0/8,192.0.2.1", RuleType: "Switch", Priority: 200})
	e, err := h.V2().CreateEndpoint(hcn.Endpoint{Name: "e", HostComputeNetwork: n.ID, Policies: []hcn.Policy{acl,
		policyOf(t, hcn.TypeOutBoundNAT, hcn.OutboundNATSettings{Exceptions: []string{"10.0.0.0/8"}})},
		IPConfigurations: []hcn.IPConfig{{IPAddress: "10.65.0.9", PrefixLength: 16}}})
	must(t, e, err)
	ns, err := h.V2().CreateNamespace(hcn.Namespace{Type: hcn.NamespaceGuest})
	must(t, ns, err)
	if err := h.V2().AttachEndpoint(ns.ID, e.ID); err != nil {
		t.Fatal(err)
	}
	list, err := h.V1().ListEndpoints()
	must(t, list, err)
	if len(list) != 1 || list[0].ID != e.ID || list[0].NetworkName != "net" || !list[0].InUse() ||
		list[0].IPv4 != netip.MustParseAddr("10.65.0.9") || len(list[0].ACLs) != 1 {
		t.Fatalf("%+v", list)
	}
	got := list[0].ACLs[0]
	if got.Protocol != 6 || got.Priority != 200 || len(got.RemoteAddresses) != 2 || got.LocalPorts[1] != (hns.PortRange{First: 90, Last: 99}) {
		t.Errorf("%+v", got)
	}
	if err := h.V1().ApplyACLs(e.ID, []hns.ACL{rule(nil)}); err != nil {
		t.Fatal(err)
	}
	back, err := h.V2().ListEndpoints()
	must(t, back, err)
	if nat, err := hcn.SettingsOf[hcn.OutboundNATSettings](back[0].Policies, hcn.TypeOutBoundNAT); err != nil || len(nat) != 1 {
		t.Errorf("outbound NAT after new rules: %v, %v", nat, err)
	}
	if acls, err := hcn.SettingsOf[hcn.ACLSettings](back[0].Policies, hcn.TypeACL); err != nil || len(acls) != 1 || acls[0].Action != "Allow" {
		t.Errorf("rules: %v, %v", acls, err)
	}
}

func TestHookAndCalls(t *testing.T) {
	h := hnsmem.New()
	h.Hook(func(c hnsmem.Call) error {
		if c.Op == "ListEndpoints" {
			return errors.New("no luck")
		}
		return nil
	})
	if _, err := h.V1().ListEndpoints(); err == nil {
		t.Error("no error")
	}
	network(t, h, "net", hcn.L2Bridge)
	calls := h.Calls()
	if len(calls) != 2 || calls[0].Writes() || !calls[1].Writes() || len(h.Calls()) != 0 {
		t.Errorf("%v", calls)
	}
}
