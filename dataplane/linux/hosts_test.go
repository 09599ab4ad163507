package intdataplane

import (
	"testing"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/proto"
)

func hostEndpoint(id, iface string, change ...func(*proto.HostEndpoint)) *proto.HostEndpointUpdate {
	ep := &proto.HostEndpoint{Name: iface}
	for _, f := range change {
		f(ep)
	}
	return &proto.HostEndpointUpdate{Id: &proto.HostEndpointID{EndpointId: id}, Endpoint: ep}
}

func hostGone(id string) *proto.HostEndpointRemove {
	return &proto.HostEndpointRemove{Id: &proto.HostEndpointID{EndpointId: id}}
}

func expecting(addrs ...string) func(*proto.HostEndpoint) {
	return func(ep *proto.HostEndpoint) { ep.ExpectedIpv4Addrs = addrs }
}

func hostPolicy(name string) func(*proto.HostEndpoint) {
	return func(ep *proto.HostEndpoint) { ep.Tiers = []*proto.TierInfo{ingress(name)} }
}

func TestHostEndpointByName(t *testing.T) {
	b := newBench(t, both)
	b.must(policy("p", tcpPort("allow", 443)), hostEndpoint("h", "eth0", hostPolicy("p")))
	b.expectStatus(epstate.HostID("h"), "error") // no interface yet
	b.must(ifAddrs("eth0", "192.0.2.1"), ifAddrs("eth1", "192.0.2.9"))
	b.expectStatus(epstate.HostID("h"), "down")
	b.must(ifUp("eth0", 1))
	b.expectStatus(epstate.HostID("h"), "up")
	b.expect("allowed", packet("eth0", "", "1.1.1.1", "192.0.2.1", 443), "accept")
	b.expect("denied", packet("eth0", "", "1.1.1.1", "192.0.2.1", 80), "drop")
	b.expect("failsafe", packet("eth0", "", "1.1.1.1", "192.0.2.1", 22), "accept")
	b.expect("another interface", packet("eth1", "", "1.1.1.1", "192.0.2.9", 80), "pass")
	b.must(ifGone("eth0"), &ifaceAddrs{Name: "eth0"})
	b.expectStatus(epstate.HostID("h"), "error")
	b.expect("without the interface's endpoint", packet("eth0", "", "1.1.1.1", "192.0.2.1", 80), "pass")
	b.must(ifAddrs("eth0", "192.0.2.1"), ifUp("eth0", 2), hostGone("h"))
	if _, reported := b.status[epstate.HostID("h")]; reported {
		t.Error("the status of an endpoint that is gone was not removed")
	}
	if got := b.chains("eth0"); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

func TestHostEndpointResolution(t *testing.T) {
	for name, c := range map[string]struct {
		endpoints []any
		want      map[string]string // by interface
	}{
		"by address": {[]any{hostEndpoint("h", "", expecting("192.0.2.1"))}, map[string]string{"eth0": "h"}},
		"by IPv6 address": {[]any{hostEndpoint("h", "",
			func(ep *proto.HostEndpoint) { ep.ExpectedIpv6Addrs = []string{"2001:db8::2"} })}, map[string]string{"eth1": "h"}},
		"by address of two": {[]any{hostEndpoint("h", "", expecting("192.0.2.1", "192.0.2.2"))},
			map[string]string{"eth0": "h", "eth1": "h"}},
		"another name, fitting addr": {[]any{hostEndpoint("h", "eth7", expecting("192.0.2.1"))}, map[string]string{}},
		"lowest id by name": {[]any{hostEndpoint("h2", "eth0"), hostEndpoint("h1", "eth0")},
			map[string]string{"eth0": "h1"}},
		"lowest id by address": {[]any{hostEndpoint("h2", "eth0"), hostEndpoint("h1", "", expecting("192.0.2.1"))},
			map[string]string{"eth0": "h1"}},
		"lowest id by name again": {[]any{hostEndpoint("h1", "eth0"), hostEndpoint("h2", "", expecting("192.0.2.1"))},
			map[string]string{"eth0": "h1"}},
		"interface without address": {[]any{hostEndpoint("h", "eth9")}, map[string]string{"eth9": "h"}},
		"unknown interface":         {[]any{hostEndpoint("h", "eth8")}, map[string]string{}},
		"workload's interface":      {[]any{hostEndpoint("h", "cali1")}, map[string]string{}},
		"all":                       {[]any{hostEndpoint("h", "*"), hostEndpoint("g", "*")}, map[string]string{"*": "g"}},
	} {
		b := newBench(t, both)
		b.must(ifAddrs("eth0", "192.0.2.1"), ifAddrs("eth1", "192.0.2.2", "2001:db8::2"), ifAddrs("eth9"), ifAddrs("cali1",
			"10.0.0.1"))
		b.must(c.endpoints...)
		for _, family := range b.d.families {
			got := family.endpoints.resolved
			same := len(got) == len(c.want)
			for iface, id := range c.want {
				same = same && string(got[iface]) == id
			}
			if !same {
				t.Errorf("%s, v%d: %v, want %v", name, family.family, got, c.want)
			}
		}
	}
}

func TestHostEndpointWithTwoInterfaces(t *testing.T) {
	b := newBench(t, both)
	b.must(hostEndpoint("h", "", expecting("192.0.2.1", "192.0.2.2")), ifAddrs("eth0", "192.0.2.1"), ifAddrs("eth1",
		"192.0.2.2"), ifUp("eth0", 1))
	b.expectStatus(epstate.HostID("h"), "down")
	b.must(ifUp("eth1", 2))
	b.expectStatus(epstate.HostID("h"), "up")
}

func TestHostEndpointTakesOver(t *testing.T) {
	b := newBench(t, both)
	b.must(policy("p", tcpPort("allow", 443)), ifAddrs("eth0", "192.0.2.1"), ifUp("eth0", 1), hostEndpoint("h2", "eth0"),
		hostEndpoint("h1", "eth0", hostPolicy("p")))
	b.expect("lowest id's policy", packet("eth0", "", "1.1.1.1", "192.0.2.1", 443), "accept")
	b.expectStatus(epstate.HostID("h2"), "error")
	b.must(hostGone("h1"))
	b.expect("the other's: none", packet("eth0", "", "1.1.1.1", "192.0.2.1", 443), "drop")
	b.expectStatus(epstate.HostID("h2"), "up")
}

func TestHostEndpointForAllInterfaces(t *testing.T) {
	b := newBench(t, both)
	b.must(policy("p", tcpPort("deny", 30000)), hostEndpoint("all", "*", func(ep *proto.HostEndpoint) {
		ep.PreDnatTiers = []*proto.TierInfo{ingress("p")}
		ep.Tiers = []*proto.TierInfo{ingress("p")} // not used
	}))
	b.expectStatus(epstate.HostID("all"), "up")
	b.expect("before DNAT", packet("eth5", "", "1.1.1.1", "192.0.2.1", 30000), "drop")
	b.expect("nothing else", packet("eth5", "", "1.1.1.1", "192.0.2.1", 80), "pass")
}

func TestHostEndpointUntrackedAndForward(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), policy("u", tcpPort("allow", 5000), tcpPort("deny", 5001)), policy("f", tcpPort("allow", 80)),
		ifAddrs("eth0", "192.0.2.1"), endpoint("a", "calia", 1),
		hostEndpoint("h", "eth0", func(ep *proto.HostEndpoint) {
			ep.ProfileIds = []string{"open"}
			ep.UntrackedTiers = []*proto.TierInfo{ingress("u")}
			ep.ForwardTiers = []*proto.TierInfo{ingress("f")}
		}))
	out, err := b.fake.Send(packet("eth0", "", "1.1.1.1", "192.0.2.1", 5000))
	if err != nil || !out.Packet.Untracked || out.Verdict != "accept" {
		t.Errorf("%v, %+v: want accepted untracked", err, out)
	}
	b.expect("untracked deny", packet("eth0", "", "1.1.1.1", "192.0.2.1", 5001), "drop")
	b.expect("profile", packet("eth0", "", "1.1.1.1", "192.0.2.1", 9), "accept")
	b.expect("forward allowed", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "accept")
	b.expect("forward denied", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 81), "drop")
	b.must(hostEndpoint("h", "eth0", func(ep *proto.HostEndpoint) { ep.ProfileIds = []string{"open"} }))
	b.expect("untracked policy gone", packet("eth0", "", "1.1.1.1", "192.0.2.1", 5001), "accept")
	b.expect("forward policy gone", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 81), "accept")
	if got := append(b.chains("raw cali-fh-"), b.chains("-pi-u")...); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}
