package intdataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

func TestWorkloadComesAndGoes(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile())
	empty := b.text()
	b.must(endpoint("a", "calia", 1))
	b.expectStatus(wlKey("a"), "down")
	b.must(ifUp("calia", 7))
	b.expectStatus(wlKey("a"), "up")
	for _, c := range [][2]string{{"1.1.1.1", "10.65.0.1"}, {"2001:db8::1", "fd00:65::1"}} {
		b.expect("in", packet("eth0", "calia", c[0], c[1], 80), "accept")
		b.expect("out", packet("calia", "eth0", c[1], c[0], 80), "accept")
		b.expect("spoofed", packet("calia", "eth0", c[0], c[1], 80), "drop")
	}
	if got, want := b.routes[4].text(),
		"ep/calia: 10.65.0.1/32 dev=calia mac=02:00:00:00:00:01 gw=invalid IP onlink=false type=0"; got != want {
		t.Errorf("routes:\n%s\nwant:\n%s", got, want)
	}
	if !strings.Contains(b.routes[6].text(), "fd00:65::1/128 dev=calia mac=02:00:00:00:00:01") {
		t.Errorf("IPv6 routes: %s", b.routes[6].text())
	}
	b.must(ifDown("calia"))
	b.expectStatus(wlKey("a"), "down")
	b.must(gone("a"), ifGone("calia"))
	if got := b.text(); got != empty {
		t.Errorf("something is left:\n%s\nwas:\n%s", got, empty)
	}
	b.must(gone("a"), gone("never heard of"))
}

func TestWorkloadParameters(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), endpoint("a", "calia", 1), ifUp("eth0", 1), ifUp("caliother", 2))
	for path := range b.sysctls.values {
		if strings.Contains(path, "calia") || strings.Contains(path, "eth0") || strings.Contains(path, "caliother") {
			t.Errorf("%s was written before the interface was up, or for one that is no endpoint's", path)
		}
	}
	b.must(ifUp("calia", 3))
	for path, want := range map[string]string{
		"net/ipv4/conf/calia/rp_filter": "1", "net/ipv4/conf/calia/route_localnet": "0", "net/ipv4/neigh/calia/proxy_delay": "0",
		"net/ipv4/conf/calia/proxy_arp": "1", "net/ipv4/conf/calia/forwarding": "1",
		"net/ipv6/conf/calia/accept_ra": "0", "net/ipv6/conf/calia/autoconf": "0", "net/ipv6/conf/calia/accept_redirects": "0",
		"net/ipv4/conf/calia/accept_redirects": "0",
		"net/ipv6/conf/calia/proxy_ndp":        "1", "net/ipv6/conf/calia/forwarding": "1",
		"net/ipv4/ip_forward": "1", "net/ipv6/conf/all/forwarding": "1",
	} {
		if got := b.sysctls.values[path]; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	// A new interface of the same name starts with the kernel's defaults.
	clear(b.sysctls.values)
	b.must(ifUp("calia", 3))
	if len(b.sysctls.values) > 0 {
		t.Errorf("written again for nothing: %v", b.sysctls.values)
	}
	b.must(ifUp("calia", 4))
	if b.sysctls.values["net/ipv4/conf/calia/rp_filter"] != "1" {
		t.Error("not written for the interface that has replaced another")
	}
}

func TestParametersThatFail(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), endpoint("a", "calia", 1), endpoint("b", "calib", 2), ifUp("calib", 2))
	b.sysctls.fail = func(path string) error {
		if strings.Contains(path, "calia") {
			return errors.New("no such file")
		}
		return nil
	}
	if err := b.step(ifUp("calia", 1)); err != nil {
		t.Fatalf("a fault of one interface affects all: %v", err)
	}
	b.expectStatus(wlKey("a"), "error")
	b.expectStatus(wlKey("b"), "up")
	b.must(ifGone("calia")) // it disappeared meanwhile: the fault ends
	b.expectStatus(wlKey("a"), "down")
	b.sysctls.fail = nil
	b.must(ifUp("calia", 5))
	b.expectStatus(wlKey("a"), "up")
}

// TestInterfaceWithoutIPv6: if the kernel has no IPv6 on an interface, because the MTU is too small, a workload with only IPv4 addresses
// works, and one with IPv6 addresses does not.
func TestInterfaceWithoutIPv6(t *testing.T) {
	b := newBench(t, both)
	b.sysctls.fail = func(path string) error {
		if strings.Contains(path, "net/ipv6/conf/calia/") {
			return fmt.Errorf("open /proc/sys/%s: %w", path, fs.ErrNotExist)
		}
		return nil
	}
	only4 := endpoint("a", "calia", 1)
	only4.Endpoint.Ipv6Nets = nil
	b.must(openProfile(), only4, ifUp("calia", 1))
	b.expectStatus(wlKey("a"), "up")
	with6 := endpoint("a", "calia", 1)
	with6.Endpoint.Ipv6Nets = []string{"fd00:65::1/128"}
	if err := b.step(with6); err != nil {
		t.Fatal(err)
	}
	b.expectStatus(wlKey("a"), "error")
}

func TestRoutesThatFail(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), ifUp("calia", 1), ifUp("calib", 2), ifUp("calic", 3))
	b.routes[4].fail = errors.Join(errors.New("add route 10.65.0.1/32 dev calia: file exists"),
		errors.New("set neighbour 10.65.0.3 of link calic: no buffer"))
	if err := b.step(endpoint("a", "calia", 1), endpoint("b", "calib", 2), endpoint("c", "calic", 3)); err != nil {
		t.Fatalf("faults of single routes affect all: %v", err)
	}
	b.expectStatus(wlKey("a"), "error")
	b.expectStatus(wlKey("b"), "up")
	b.expectStatus(wlKey("c"), "error")
	b.routes[4].fail = nil
	b.must()
	b.expectStatus(wlKey("a"), "up")
	b.routes[4].fail = errors.New("list routes: timeout")
	if err := b.step(endpoint("d", "calid", 4), ifUp("calid", 4)); err == nil {
		t.Error("the route table does not work, and no error is reported")
	}
	if status, reported := b.status[wlKey("d")]; reported {
		t.Errorf("status %q without routes", status)
	}
}

// TestOrder: packets are filtered before forwarding starts, and the node forwards before workloads are reachable.
func TestOrder(t *testing.T) {
	b := newBench(t, Config{})
	filtered := func(where string) {
		if len(b.chains("cali-fw-calia")) == 0 {
			t.Errorf("%s before the rules", where)
		}
	}
	b.sysctls.order = func(path string) {
		if strings.Contains(path, "calia") {
			filtered(path)
			if len(b.routes[4].kernel) > 0 {
				t.Error("the route came before the parameters")
			}
		}
	}
	b.routes[4].onApply = func() {
		filtered("routes")
		if b.status[wlKey("a")] == "up" {
			t.Error("the status came before the routes")
		}
	}
	b.must(openProfile(), endpoint("a", "calia", 1), ifUp("calia", 1))
	b.expectStatus(wlKey("a"), "up")
}

func TestNothingIsOpenedWithoutRules(t *testing.T) {
	b := newBench(t, both)
	b.fake.Fail = func() error { return errors.New("the kernel is busy") }
	if err := b.step(openProfile(), endpoint("a", "calia", 1), ifUp("calia", 1)); err == nil {
		t.Fatal("no error")
	}
	if len(b.routes[4].kernel) > 0 || len(b.status) > 0 {
		t.Errorf("without rules: routes %v, status %v", b.routes[4].kernel, b.status)
	}
	b.fake.Fail = nil
	b.must()
	b.expectStatus(wlKey("a"), "up")
}

func TestBrokenHookStopsEverything(t *testing.T) {
	for _, object := range []string{"chain v4 filter cali-FORWARD", "chain v6 filter cali-from-wl-dispatch"} {
		b := newBench(t, both)
		b.fake.Break = func(name string) error {
			if name == object {
				return errors.New("refused")
			}
			return nil
		}
		if err := b.step(openProfile(), endpoint("a", "calia", 1), ifUp("calia", 1)); err == nil || len(b.routes[4].kernel) > 0 {
			t.Errorf("%s is broken: error %v, routes %v; want an error and no routes", object, err, b.routes[4].kernel)
		}
	}
}

func TestAdminState(t *testing.T) {
	b := newBench(t, both)
	down := endpoint("a", "calia", 1, func(ep *proto.WorkloadEndpoint) { ep.State = "inactive" })
	b.must(openProfile(), ifUp("calia", 1), down)
	b.expectStatus(wlKey("a"), "down")
	b.expect("admin down", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "drop")
	if len(b.routes[4].kernel) > 0 {
		t.Errorf("routes of an endpoint that is down: %s", b.routes[4].text())
	}
	b.must(endpoint("a", "calia", 1))
	b.expectStatus(wlKey("a"), "up")
	b.must(down)
	if len(b.routes[4].kernel) > 0 {
		t.Errorf("routes of an endpoint that went down: %s", b.routes[4].text())
	}
}

func TestInterfaceNameChanges(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), endpoint("a", "calia", 1), ifUp("calia", 1), ifUp("calix", 2))
	b.must(endpoint("a", "calix", 1))
	b.expect("old name", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "drop")
	b.expect("new name", packet("eth0", "calix", "1.1.1.1", "10.65.0.1", 80), "accept")
	if text := b.text(); strings.Contains(text, "cali-tw-calia") || strings.Contains(text, "dev=calia ") {
		t.Errorf("something of the old name is left:\n%s", text)
	}
	b.expectStatus(wlKey("a"), "up")
}

func TestAddressChanges(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), endpoint("a", "calia", 1), ifUp("calia", 1))
	b.must(endpoint("a", "calia", 9))
	b.expect("old source", packet("calia", "eth0", "10.65.0.1", "1.1.1.1", 80), "drop")
	b.expect("new source", packet("calia", "eth0", "10.65.0.9", "1.1.1.1", 80), "accept")
	if text := b.routes[4].text(); strings.Contains(text, "10.65.0.1/32") || !strings.Contains(text, "10.65.0.9/32") {
		t.Errorf("routes: %s", text)
	}
}

func TestAllowedSpoofing(t *testing.T) {
	b := newBench(t, both)
	const reversePath = "net/ipv4/conf/calia/rp_filter"
	spoofs := func(ep *proto.WorkloadEndpoint) {
		ep.AllowSpoofedSourcePrefixes = []string{"172.16.0.0/12", "2001:db8::/32"}
	}
	for _, step := range []struct {
		msg  any
		want string
	}{{endpoint("a", "calia", 1), "1"}, {endpoint("a", "calia", 1, spoofs), "0"}, {endpoint("a", "calia", 1), "1"}, {endpoint("a", "calia", 1, spoofs), "0"}} {
		if b.must(openProfile(), ifUp("calia", 1), step.msg); b.sysctls.values[reversePath] != step.want {
			t.Errorf("%s is %s, want %s", reversePath, b.sysctls.values[reversePath], step.want)
		}
	}
	b.expect("allowed", packet("calia", "eth0", "172.16.1.1", "1.1.1.1", 80), "accept")
	b.expect("allowed", packet("calia", "eth0", "2001:db8::9", "2001:db9::1", 80), "accept")
	b.expect("not allowed", packet("calia", "eth0", "172.33.1.1", "1.1.1.1", 80), "drop")
}

func TestTwoEndpointsOnOneInterface(t *testing.T) {
	first, second := endpoint("a", "calix", 1), endpoint("b", "calix", 2, withTiers(ingress("p")))
	ready := func(t *testing.T) *bench {
		b := newBench(t, both)
		b.must(openProfile(), policy("p", tcpPort("allow", 80)), ifUp("calix", 1))
		return b
	}
	has := func(b *bench, owner, other string, route string) {
		b.t.Helper()
		b.expectStatus(wlKey(owner), "up")
		b.expectStatus(wlKey(other), "down")
		if text := b.routes[4].text(); !strings.Contains(text, route) || strings.Count(text, "\n") > 0 {
			b.t.Errorf("routes %s, want %s only", text, route)
		}
	}
	t.Run("lowest id has it", func(t *testing.T) {
		b := ready(t)
		b.must(first, second)
		has(b, "a", "b", "10.65.0.1/32")
		b.must(gone("b"))
		b.expectStatus(wlKey("a"), "up")
	})
	t.Run("whoever came first", func(t *testing.T) {
		b := ready(t)
		b.must(second)
		b.expectStatus(wlKey("b"), "up")
		b.must(first)
		has(b, "a", "b", "10.65.0.1/32")
	})
	t.Run("the other takes over", func(t *testing.T) {
		b := ready(t)
		b.must(first)
		b.must(second)
		b.must(gone("a"))
		b.expectStatus(wlKey("b"), "up")
		b.expect("with its own policy", packet("eth0", "calix", "1.1.1.1", "10.65.0.2", 80), "accept")
		b.expect("with its own policy", packet("eth0", "calix", "1.1.1.1", "10.65.0.2", 81), "drop")
		if text := b.routes[4].text(); !strings.Contains(text, "10.65.0.2/32") || strings.Contains(text, "10.65.0.1/32") {
			t.Errorf("routes %s", text)
		}
	})
	t.Run("an update of the one that waits", func(t *testing.T) {
		b := ready(t)
		b.must(first, second)
		b.must(endpoint("b", "calix", 3))
		has(b, "a", "b", "10.65.0.1/32")
		b.must(endpoint("b", "caliy", 3), ifUp("caliy", 2))
		b.expectStatus(wlKey("b"), "up")
		b.expectStatus(wlKey("a"), "up")
	})
}

func TestInvalidEndpoints(t *testing.T) {
	for name, change := range map[string]func(*proto.WorkloadEndpoint){
		"foreign interface":   func(ep *proto.WorkloadEndpoint) { ep.Name = "eth0" },
		"no interface":        func(ep *proto.WorkloadEndpoint) { ep.Name = "" },
		"name too long":       func(ep *proto.WorkloadEndpoint) { ep.Name = "cali012345678901" },
		"name leaves /proc":   func(ep *proto.WorkloadEndpoint) { ep.Name = "cali/../../x" },
		"net":                 func(ep *proto.WorkloadEndpoint) { ep.Ipv4Nets = []string{"10.65.0.300/32"} },
		"net of other family": func(ep *proto.WorkloadEndpoint) { ep.Ipv4Nets = []string{"fd00::1/128"} },
		"MAC":                 func(ep *proto.WorkloadEndpoint) { ep.Mac = "zz" },
		"floating IP":         func(ep *proto.WorkloadEndpoint) { ep.Ipv4Nat = []*proto.NatInfo{{ExtIp: "x", IntIp: "10.65.0.1"}} },
	} {
		b := newBench(t, both)
		b.must(openProfile(), endpoint("a", "calia", 1, change), endpoint("b", "calib", 2), ifUp("calia", 1), ifUp("calib", 2),
			ifUp("eth0", 3))
		if b.status[wlKey("a")] != "error" || b.status[wlKey("b")] != "up" {
			t.Errorf("%s: status %v, want error, and up for the other endpoint", name, b.status)
		}
		if text := b.routes[4].text(); !strings.Contains(text, "ep/calib") || strings.Contains(text, "\n") {
			t.Errorf("%s: routes %s", name, text)
		}
		b.expect(name, packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "drop")
		for path := range b.sysctls.values {
			if strings.Contains(path, "..") {
				t.Errorf("%s: wrote %s", name, path)
			}
		}
		b.must(endpoint("a", "calia", 1))
		b.expectStatus(wlKey("a"), "up")
	}
}

func TestFamiliesAreIndependent(t *testing.T) {
	b := newBench(t, Config{})
	b.must(openProfile(), endpoint("a", "calia", 1), ifUp("calia", 1))
	b.expectStatus(wlKey("a"), "up")
	if b.routes[table.IPv6] != nil && len(b.routes[table.IPv6].kernel) > 0 {
		t.Error("IPv6 routes without IPv6Enabled")
	}
	if got := b.chains(" v6 "); len(got) > 0 {
		t.Errorf("IPv6 chains without IPv6Enabled: %v", got)
	}
}

func TestKubeIPVSMarks(t *testing.T) {
	b := newBench(t, ipvsConfig)
	b.must(openProfile(), endpoint("a", "calia", 1), endpoint("b", "calib", 2), ifAddrs("eth0", "192.0.2.1"),
		hostEndpoint("h", "eth0"))
	service := packet("calia", "", "10.65.0.1", "10.96.0.1", 80)
	out, err := b.fake.Send(service)
	if err != nil || out.Packet.Mark == 0 {
		t.Fatalf("%v, %+v: want a mark", err, out)
	}
	next := rulestest.Packet{Out: "calib", Src: addr("10.65.0.1"), Dst: addr("10.65.0.2"), Proto: 6, DstPort: 80,
		Mark: out.Packet.Mark}
	through, err := b.fake.SendFrom(table.Filter, next)
	if err != nil || through.Verdict != "accept" {
		t.Errorf("%v, %+v: want accept", err, through)
	}
	b.must(gone("a"))
	if got := b.chains("cali-sm-calia"); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
	if got := b.chains("cali-sm-eth0"); len(got) != 2 {
		t.Errorf("host endpoint's mark chains: %v, want one per family", got)
	}
}
