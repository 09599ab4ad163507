package diag

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

const (
	// traceTable exists while packets are recorded, and contains only the rules for the recording.
	traceTable = "contiv-trace"
	// traceLimit bounds the number of packets that a rule marks which may match other packets than the probe. The kernel reports each rule that
	// a marked packet passes, which slows down a busy path.
	traceLimit = " limit rate 20/second burst 20 packets"
)

// tracingRules returns the table that marks the packets of a flow, in both directions, before any other rule sees them. A packet keeps the mark
// when it is translated, also by iptables, whose rules are not shown; its answer comes from the backend, and goes to the sender or to an address
// of the node that replaces the sender's.
func tracingRules(req TraceRequest) string {
	var rules strings.Builder
	for _, r := range markingRules(req) {
		rules.WriteString(r + " meta nftrace set 1\n")
	}
	text := "add table inet " + traceTable + "\ndelete table inet " + traceTable + "\ntable inet " + traceTable + " {\n"
	for _, hook := range []string{"prerouting", "output"} {
		text += "chain " + hook + " {\ntype filter hook " + hook + " priority -450\n" + rules.String() + "}\n"
	}
	// These chains have no rules, but show the packet as it is after all other rules, whichever program added those.
	for _, hook := range []string{"forward", "input", "postrouting"} {
		text += "chain " + hook + " {\ntype filter hook " + hook + " priority 450\n}\n"
	}
	return text + "}\n"
}

// markingRules returns the conditions under which packets are marked. The source port identifies the probe and its answers. A node that replaces
// the source address may also replace the port, so such packets are marked with any port.
func markingRules(req TraceRequest) []string {
	others := slices.DeleteFunc(slices.Clone(req.OtherSources), func(a netip.Addr) bool { return a == req.Source })
	from := addressSet(append([]netip.Addr{req.Source}, others...))
	if req.SourcePort == 0 {
		return flowRules(req, from, "", "", traceLimit)
	}
	there, back := fmt.Sprintf(" %s sport %d", req.Proto, req.SourcePort), fmt.Sprintf(" %s dport %d", req.Proto, req.SourcePort)
	if req.Proto == protoICMP {
		there = fmt.Sprintf(" %s id %d", icmpName(req.Dest), req.SourcePort)
		back = there
	}
	rules := flowRules(req, from, there, back, "")
	if req.Proto == protoICMP {
		rules = append(rules, icmpErrors(req.Source)+traceLimit)
	}
	if len(others) > 0 {
		to := fmt.Sprintf(" %s daddr %s", nftFamily(req.Dest), addressSet(others))
		rules = append(rules, flowRules(req, addressSet(others), "", to, traceLimit)...)
	}
	return rules
}

// flowRules returns the conditions for the packets from one of some sources, and for the answers; there and back are conditions of all packets in
// one direction, limit is the last condition.
func flowRules(req TraceRequest, from, there, back, limit string) []string {
	family := nftFamily(req.Dest)
	proto := "meta l4proto " + req.Proto
	if req.Proto == protoICMP && req.Dest.Is6() {
		proto = "meta l4proto ipv6-icmp"
	}
	port := proto
	if req.Port != 0 {
		port = fmt.Sprintf("%s dport %d", req.Proto, req.Port)
	}
	rules := []string{
		fmt.Sprintf("%[1]s saddr %[2]s %[1]s daddr %[3]s %[4]s", family, from, req.Dest, port) + there + limit,
		fmt.Sprintf("%s saddr %s %s", family, req.Dest, proto) + back + limit,
	}
	if len(req.Backends) == 0 {
		return rules
	}
	var ends []string
	for _, b := range req.Backends {
		ends = append(ends, fmt.Sprintf("%s . %d", b.Addr(), b.Port()))
	}
	set := "{ " + strings.Join(ends, ", ") + " }"
	return append(rules,
		fmt.Sprintf("%[1]s saddr %[2]s %[1]s daddr . %[3]s dport %[4]s", family, from, req.Proto, set)+there+limit,
		fmt.Sprintf("%[1]s daddr %[2]s %[1]s saddr . %[3]s sport %[4]s", family, from, req.Proto, set)+back+limit,
		fmt.Sprintf("fib daddr type local %[1]s saddr . %[2]s sport %[3]s", family, req.Proto, set)+back+limit)
}

// icmpErrors returns the condition for ICMP messages to an address that answer other packets.
func icmpErrors(to netip.Addr) string {
	if to.Is6() {
		return "ip6 daddr " + to.String() + " icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem }"
	}
	return "ip daddr " + to.String() + " icmp type { destination-unreachable, time-exceeded, parameter-problem }"
}

// nftFamily returns the name of the network header in nft.
func nftFamily(a netip.Addr) string {
	if a.Is6() {
		return "ip6"
	}
	return "ip"
}

// icmpName returns the name of the protocol's header in nft.
func icmpName(a netip.Addr) string {
	if a.Is6() {
		return "icmpv6"
	}
	return "icmp"
}

// addressSet returns an address, or a set of addresses.
func addressSet(list []netip.Addr) string {
	if len(list) == 1 {
		return list[0].String()
	}
	var texts []string
	for _, a := range list {
		texts = append(texts, a.String())
	}
	return "{ " + strings.Join(texts, ", ") + " }"
}
