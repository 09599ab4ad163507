package intdataplane

import (
	"net/netip"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

const (
	cluster  = proto.BalancedFrontend_CLUSTER
	external = proto.BalancedFrontend_EXTERNAL
	local    = proto.BalancedFrontend_EXTERNAL_LOCAL
)

// TestServiceSources: which backends serve which clients, and the source address that backends see.
func TestServiceSources(t *testing.T) {
	withServices(t, func(t *testing.T, n *node) {
		web := newLB("web")
		bothFamilies(func(f table.Family) {
			web.port(f, n.pods(f, 2, 3), n.pods(f, 3), front(cluster, vip(f, 1), 80), front(external, vip(f, 2), 80),
				front(local, vip(f, 3), 80), front(external, n.Host.Addr(f), 30080), front(local, n.Host.Addr(f), 30081))
		})
		hereOnly, self := newLB("here-only"), newLB("self")
		bothFamilies(func(f table.Family) {
			inside := front(cluster, vip(f, 4), 80)
			inside.HereOnly = true
			hereOnly.port(f, nil, n.pods(f, 1), inside)
			self.port(f, n.pods(f, 1), nil, front(cluster, vip(f, 5), 80))
		})
		n.apply(web.m, hereOnly.m, self.m)
		bothFamilies(func(f table.Family) {
			pod1, host, out := n.Pods[0], n.Host, n.Outside
			both, three := []string{"pod2", "pod3"}, []string{"pod3"}
			asPod, asHost, asOut := []netip.Addr{n.addr(1, f)}, []netip.Addr{host.Addr(f)}, []netip.Addr{out.Addr(f)}
			at := func(i int) netip.AddrPort { return netip.AddrPortFrom(vip(f, i), 80) }
			np := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(host.Addr(f), port) }
			n.expect("cluster IP from a pod", pod1, at(1), want{by: both, all: true, seen: asPod})
			n.expect("cluster IP from the node", host, at(1), want{by: both, all: true, seen: asHost})
			n.expect("cluster IP from outside", out, at(1), want{by: both, all: true, seen: asHost})
			n.expect("external IP from a pod", pod1, at(2), want{by: both, all: true, seen: asHost})
			n.expect("external IP from outside", out, at(2), want{by: both, all: true, seen: asHost})
			n.expect("local external IP from a pod", pod1, at(3), want{by: both, all: true, seen: asPod})
			n.expect("local external IP from the node", host, at(3), want{by: both, all: true, seen: asHost})
			n.expect("local external IP from outside", out, at(3), want{by: three, seen: asOut})
			n.expect("node port from a pod", pod1, np(30080), want{by: both, all: true, seen: asHost})
			n.expect("node port from the node", host, np(30080), want{by: both, all: true, seen: asHost})
			n.expect("node port from outside", out, np(30080), want{by: both, all: true, seen: asHost})
			n.expect("local node port from outside", out, np(30081), want{by: three, seen: asOut})
			n.expect("local node port from a pod", pod1, np(30081), want{by: both, all: true, seen: asPod})
			n.expect("internal policy local", n.Pods[1], at(4), want{by: []string{"pod1"}})
			n.expect("a pod that is its own backend", pod1, at(5), want{by: []string{"pod1"}, seen: asHost})
		})
	})
}

// TestServiceRefusals: packets to a frontend without backends are rejected or dropped, and go nowhere else.
func TestServiceRefusals(t *testing.T) {
	withServices(t, func(t *testing.T, n *node) {
		reject, drop := newLB("reject"), newLB("drop")
		ranges := newLB("ranges")
		bothFamilies(func(f table.Family) {
			reject.port(f, noBackend(proto.BalancedGroup_REJECT), nil, front(cluster, vip(f, 1), 80), front(external, vip(f, 2), 80),
				front(external, n.Host.Addr(f), 30080))
			drop.port(f, n.pods(f, 2), noBackend(proto.BalancedGroup_DROP), front(cluster, vip(f, 3), 80),
				front(local, n.Host.Addr(f), 30081))
			restricted := front(external, vip(f, 4), 80)
			restricted.Restricted, restricted.SourceRanges = true, []string{"192.168.7.0/24", "203.0.113.8/29"}
			if f == table.IPv6 {
				restricted.SourceRanges = []string{"fd00:7::/64", "fd00:203::8/125"}
			}
			ranges.port(f, n.pods(f, 2), nil, restricted)
		})
		n.apply(reject.m, drop.m, ranges.m)
		bothFamilies(func(f table.Family) {
			pod1, host, out := n.Pods[0], n.Host, n.Outside
			refused, silence, two := want{err: errRefused}, want{err: errSilence}, want{by: []string{"pod2"}}
			at := func(i int, port uint16) netip.AddrPort { return netip.AddrPortFrom(vip(f, i), port) }
			n.expect("no backends, from a pod", pod1, at(1, 80), refused)
			n.expect("no backends, from the node", host, at(1, 80), refused)
			n.expect("no backends, from outside", out, at(1, 80), refused)
			n.expect("no backends, external", out, at(2, 80), refused)
			n.expect("no backends, node port", out, netip.AddrPortFrom(host.Addr(f), 30080), refused)
			n.expect("a port that the cluster IP does not have", pod1, at(3, 81), refused)
			n.expect("the same, from the node", host, at(3, 81), refused)
			n.expect("no local backends", out, netip.AddrPortFrom(host.Addr(f), 30081), silence)
			n.expect("no local backends, from a pod", pod1, netip.AddrPortFrom(host.Addr(f), 30081), two)
			anywhere := []netip.Addr{netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("203.0.113.16")}
			if f == table.IPv6 {
				anywhere = []netip.Addr{netip.MustParseAddr("fd00:203::9"), netip.MustParseAddr("fd00:203::10")}
			}
			n.expect("source range", out, at(4, 80), two)
			n.expect("other source range", out, at(4, 80), two, anywhere[0])
			n.expect("out of the source ranges", out, at(4, 80), silence, anywhere[1])
			n.expect("a pod that is not in the source ranges", pod1, at(4, 80), silence)
		})
	})
}
