package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/connectivity"
	"contiv.dev/vswitch/internal/diag"
)

const (
	// probes is how many probes of each kind are sent.
	probes = 3
	// ipv4Header, ipv6Header and icmpHeader are the sizes of the headers of an echo request, in bytes.
	ipv4Header, ipv6Header, icmpHeader = 20, 40, 8
)

// run runs all tests, one address family after the other.
func (t *connectivityTest) run(ctx context.Context) {
	for _, ipv6 := range []bool{false, true} {
		if !t.client.addr(ipv6).IsValid() {
			continue
		}
		t.pods(ctx, "the same node", t.same, ipv6)
		if t.other == nil {
			t.add("pod to pod on another node, "+family(ipv6), t.alone, errSkipped)
		} else {
			t.pods(ctx, "another node", t.other, ipv6)
		}
		t.hosts(ctx, ipv6)
		t.services(ctx, ipv6)
		t.bulk(ctx, ipv6)
	}
	t.resolves(ctx)
	t.leaves(ctx)
}

func family(ipv6 bool) string { return either(ipv6, "IPv6", "IPv4") }

// pods tests the path between two pods.
func (t *connectivityTest) pods(ctx context.Context, where string, to *side, ipv6 bool) {
	name := "pod to pod on " + where + ", " + family(ipv6)
	t.probe(ctx, name, t.client, diag.ProbeRequest{To: to.addr(ipv6), Proto: "icmp"})
	t.probe(ctx, name+", TCP", t.client, diag.ProbeRequest{To: to.addr(ipv6), Proto: "tcp", Port: connectivity.Port})
	t.probe(ctx, name+", UDP", t.client, diag.ProbeRequest{To: to.addr(ipv6), Proto: "udp", Port: connectivity.Port})
	header := ipv4Header
	if ipv6 {
		header = ipv6Header
	}
	if mtu := min(t.client.pod.MTU, to.pod.MTU); mtu > 0 {
		t.probe(ctx, fmt.Sprintf("%s, packets of %d bytes", name, mtu), t.client,
			diag.ProbeRequest{To: to.addr(ipv6), Proto: "icmp", Size: mtu - header - icmpHeader})
	}
}

// hosts tests the paths between pods and nodes.
func (t *connectivityTest) hosts(ctx context.Context, ipv6 bool) {
	for _, to := range []*side{t.same, t.other} {
		if to == nil {
			continue
		}
		where := either(to == t.same, "its own node", "another node")
		if addr := ofFamily(to.node.addrs, ipv6); addr.IsValid() {
			t.probe(ctx, "pod to "+where+", "+family(ipv6), t.client, diag.ProbeRequest{To: addr, Proto: "icmp"})
		} else {
			t.add("pod to "+where+", "+family(ipv6), "the node has no address of this family", errSkipped)
		}
		t.probe(ctx, "node to a pod on "+where+", "+family(ipv6), &side{agent: t.client.agent}, diag.ProbeRequest{To: to.addr(ipv6), Proto: "icmp"})
	}
}

// probe sends a few probes; the test passes if all are answered.
func (t *connectivityTest) probe(ctx context.Context, name string, from *side, req diag.ProbeRequest) {
	req.Pod, req.Count, req.TimeoutMs = from.pod.Name, probes, 2000
	var res diag.ProbeResult
	err := from.agent.Post(ctx, diag.ProbePath, req, &res)
	if err == nil && res.Received < res.Sent {
		err = fmt.Errorf("%d of %d answered by %s: %s", res.Received, res.Sent, req.To, strings.Join(res.Errors, "; "))
	}
	text := ""
	if len(res.RTTMs) > 0 {
		text = fmt.Sprintf("%d of %d, %.2f ms", res.Received, res.Sent, slices.Min(res.RTTMs))
	}
	t.add(name, text, err)
}

// find returns a service's address of the family and its port for the protocol.
func (t *connectivityTest) find(ctx context.Context, namespace, name, protocol string, ipv6 bool) (netip.AddrPort, error) {
	var rows []serviceRow
	if err := t.client.agent.Get(ctx, servicesPath, &rows); err != nil {
		return netip.AddrPort{}, err
	}
	for _, s := range rows {
		if s.Namespace != namespace || s.Name != name {
			continue
		}
		for _, text := range s.ClusterIPs {
			addr, err := netip.ParseAddr(text)
			if err != nil || addr.Is6() != ipv6 {
				continue
			}
			for _, p := range s.Ports {
				if strings.EqualFold(p.Protocol, protocol) && len(p.Backends) > 0 {
					return netip.AddrPortFrom(addr, p.Port), nil
				}
			}
		}
	}
	return netip.AddrPort{}, errSkipped
}

// services tests the services that every cluster has.
func (t *connectivityTest) services(ctx context.Context, ipv6 bool) {
	name := "pod to service default/kubernetes, " + family(ipv6)
	at, err := t.find(ctx, "default", "kubernetes", "tcp", ipv6)
	if err != nil {
		t.add(name, "the node serves no such service in this family", err)
		return
	}
	t.probe(ctx, name, t.client, diag.ProbeRequest{To: at.Addr(), Proto: "tcp", Port: at.Port()})
}

// resolves queries the cluster's DNS.
func (t *connectivityTest) resolves(ctx context.Context) {
	const name = "DNS from a pod"
	at, err := t.find(ctx, "kube-system", "kube-dns", "udp", !t.client.addr(false).IsValid())
	if err != nil {
		t.add(name, "the node serves no service kube-system/kube-dns", err)
		return
	}
	var res connectivity.ResolveResult
	err = t.client.agent.Post(ctx, connectivity.ResolvePath, connectivity.ResolveRequest{Name: t.client.pod.Name, Server: at,
		Question: t.opts.dns}, &res)
	if err == nil && len(res.Addresses) == 0 {
		err = fmt.Errorf("%s has no address: %s", t.opts.dns, res.Code)
	}
	t.add(name, fmt.Sprintf("%s is %v", t.opts.dns, res.Addresses), err)
}

// leaves connects to an address outside of the cluster.
func (t *connectivityTest) leaves(ctx context.Context) {
	const name = "pod to the outside"
	if t.opts.outside == "" {
		t.add(name, "--outside names no address", errSkipped)
		return
	}
	at, err := netip.ParseAddrPort(t.opts.outside)
	if err != nil {
		t.add(name, "", fmt.Errorf("--outside %q: use ADDR:PORT", t.opts.outside))
		return
	}
	t.probe(ctx, name, t.client, diag.ProbeRequest{To: at.Addr(), Proto: "tcp", Port: at.Port()})
}

// bulk transfers data in both directions and compares every byte.
func (t *connectivityTest) bulk(ctx context.Context, ipv6 bool) {
	if t.opts.bulkMB <= 0 {
		t.add("bulk data, "+family(ipv6), "--bulk is 0", errSkipped)
		return
	}
	t.transfer(ctx, "bulk data on the same node, "+family(ipv6), t.client, t.same, ipv6)
	if t.other != nil {
		t.transfer(ctx, "bulk data to another node, "+family(ipv6), t.client, t.other, ipv6)
		t.transfer(ctx, "bulk data from another node, "+family(ipv6), t.other, t.client, ipv6)
	}
}

func (t *connectivityTest) transfer(ctx context.Context, name string, from, to *side, ipv6 bool) {
	var res connectivity.TransferResult
	err := from.agent.Post(ctx, connectivity.TransferPath, connectivity.TransferRequest{
		Name: from.pod.Name, To: to.addr(ipv6), Port: connectivity.Port, Bytes: t.opts.bulkMB << 20,
	}, &res)
	text := ""
	if err == nil && res.Seconds <= 0 {
		err = errors.New("the agent reports no time")
	}
	if err == nil {
		text = fmt.Sprintf("%d MB intact, %.2f Gb/s", res.Bytes>>20, float64(res.Bytes)*8/res.Seconds/1e9)
	}
	t.add(name, text, err)
}

func either(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}
