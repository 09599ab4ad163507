package policy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

// Protocols are compared one by one. Policies treat all protocols without ports alike: other represents them.
const other model.Protocol = 1

func triedProtocols() []model.Protocol {
	return []model.Protocol{model.TCP, model.UDP, model.SCTP, other}
}

// span is a range of ports of a protocol for which all rules give the same result.
type span struct {
	protocol    model.Protocol
	first, last int
}

// remotePeer is an address of a peer.
type remotePeer struct {
	name    string
	addr    netip.Addr
	ownNode bool
}

// difference is a change for some ports: packets that were denied are allowed (opened), or vice versa.
type difference struct {
	ports  string
	opened bool
}

// direction compares one direction of a pod. Peers that all rules treat alike are evaluated once.
func (t *trial) direction(pod model.EndpointID, ingress bool) {
	own := t.before.Addresses(pod)
	rules := slices.Concat(t.before.rules(pod, ingress), t.after.rules(pod, ingress))
	spans := t.spans(rules)
	known := map[string][]difference{}
	found := map[difference][]remotePeer{}
	for _, f := range t.remotePeers(pod, rules, own) {
		i := slices.IndexFunc(own, func(a netip.Addr) bool { return a.Is4() == f.addr.Is4() })
		if i < 0 {
			continue
		}
		if t.probes += 1 + len(rules); t.probes > maxTriedProbes {
			t.out.More = true
			break
		}
		class := t.class(rules, spans, ingress, f)
		differences, compared := known[class]
		if !compared {
			t.probes += len(spans) * (1 + len(rules))
			differences = t.differences(pod, ingress, spans, own[i], f)
			known[class] = differences
		}
		for _, d := range differences {
			found[d] = append(found[d], f)
		}
	}
	t.report(pod, ingress, found)
}

// class returns a key that is equal for peers that no rule distinguishes.
func (t *trial) class(rules []model.Rule, spans []span, ingress bool, f remotePeer) string {
	class := []byte{'4', '-'}
	if f.addr.Is6() {
		class[0] = '6'
	}
	if f.ownNode {
		class[1] = '+'
	}
	note := func(id model.SetID, m model.Member) {
		bit := byte('0')
		for i, s := range []*stage{t.before, t.after} {
			if s.Contains(id, m) {
				bit |= 1 << i
			}
		}
		class = append(class, bit)
	}
	one := ipaddr.HostPrefix(f.addr)
	for i := range rules {
		if id := rules[i].Source; ingress && id != "" {
			note(id, model.Member{Net: one})
		}
		if ingress {
			continue
		}
		if id := rules[i].Dest; id != "" {
			note(id, model.Member{Net: one})
		}
		if id := rules[i].DestPort; id != "" {
			for _, s := range spans {
				if s.protocol == rules[i].Protocol {
					note(id, model.Member{Net: one, Protocol: s.protocol, Port: uint16(s.first)})
				}
			}
		}
	}
	return string(class)
}

// spans splits all ports at the limits of the rules' port ranges.
func (t *trial) spans(rules []model.Rule) (list []span) {
	for _, protocol := range triedProtocols() {
		if protocol == other {
			list = append(list, span{protocol, 0, 0})
			continue
		}
		cuts := map[int]bool{1: true}
		cut := func(first, last uint16) {
			cuts[max(int(first), 1)] = true
			cuts[int(last)+1] = true
		}
		for i := range rules {
			if r := &rules[i]; r.Protocol == protocol || r.Protocol == model.AnyProtocol {
				for _, ports := range r.Ports {
					cut(ports.First, ports.Last)
				}
				if r.DestPort != "" {
					for _, m := range slices.Concat(t.before.Members(r.DestPort), t.after.Members(r.DestPort)) {
						cut(m.Port, m.Port)
					}
				}
			}
		}
		delete(cuts, 65536)
		sorted := slices.Sorted(maps.Keys(cuts))
		for i, first := range sorted {
			last := 65535
			if i+1 < len(sorted) {
				last = sorted[i+1] - 1
			}
			list = append(list, span{protocol, first, last})
		}
	}
	return list
}

// differences compares all ports for one peer. own is the pod's address.
func (t *trial) differences(pod model.EndpointID, ingress bool, spans []span, own netip.Addr, f remotePeer) []difference {
	var opened, closed []span
	for _, s := range spans {
		packet := verdict.Packet{Source: own, Dest: f.addr, Protocol: s.protocol, Port: uint16(s.first), OwnNode: f.ownNode}
		if ingress {
			packet.Source, packet.Dest = packet.Dest, packet.Source
		}
		switch before, after := t.before.allows(pod, ingress, packet), t.after.allows(pod, ingress, packet); {
		case after && !before:
			opened = append(opened, s)
		case before && !after:
			closed = append(closed, s)
		}
	}
	var out []difference
	if len(opened) > 0 {
		out = append(out, difference{portsText(opened), true})
	}
	if len(closed) > 0 {
		out = append(out, difference{portsText(closed), false})
	}
	return out
}

// portsText joins adjacent spans. "all" means all ports of all protocols.
func portsText(spans []span) string {
	var texts []string
	whole := 0
	for i := 0; i < len(spans); {
		s := spans[i]
		for i++; i < len(spans) && spans[i].protocol == s.protocol && spans[i].first == s.last+1; i++ {
			s.last = spans[i].last
		}
		switch {
		case s.protocol == other:
			texts = append(texts, "other")
			whole++
			continue
		case s.first == 1 && s.last == 65535:
			texts = append(texts, strings.ToLower(s.protocol.String()))
			whole++
			continue
		}
		text := fmt.Sprintf("%s %d", strings.ToLower(s.protocol.String()), s.first)
		if s.last > s.first {
			text += "-" + strconv.Itoa(s.last)
		}
		texts = append(texts, text)
	}
	if whole == len(triedProtocols()) {
		return "all"
	}
	return strings.Join(texts, ", ")
}

// remotePeers returns all peers: pods, nodes, one address of each network in rules, and one that no rule names.
func (t *trial) remotePeers(pod model.EndpointID, rules []model.Rule, own []netip.Addr) (list []remotePeer) {
	for _, p := range t.peers {
		for _, a := range p.Addresses {
			if p.Pod != pod && !slices.Contains(own, a) {
				list = append(list, remotePeer{p.Name, a, t.ownNode(a)})
			}
		}
	}
	var named []netip.Prefix
	for i := range rules {
		for id := range rules[i].Sets {
			for _, s := range []*stage{t.before, t.after} {
				nets, _ := s.Networks(id)
				named = append(named, nets...)
			}
		}
	}
	slices.SortFunc(named, netip.Prefix.Compare)
	for _, n := range slices.Compact(named) {
		if a, free := t.inside(n); free {
			list = append(list, remotePeer{n.String(), a, false})
		}
	}
	return append(list, elsewhere(named)...)
}

// inside returns an address of a network that belongs neither to a pod nor to a node.
func (t *trial) inside(n netip.Prefix) (a netip.Addr, free bool) {
	a = n.Addr()
	for range 1024 {
		if !n.Contains(a) {
			return a, false
		}
		if _, pods := t.before.Owner(a); !pods && !t.isNode(a) {
			return a, true
		}
		a = a.Next()
	}
	return a, false
}

func (t *trial) isNode(a netip.Addr) bool {
	return slices.ContainsFunc(t.peers, func(p compiler.Peer) bool { return p.Pod == model.EndpointID{} && slices.Contains(p.Addresses, a) })
}

// elsewhere returns addresses that no network contains, of each family. It prefers those of RFC 5737 and 3849, which are reserved for
// examples, so that no host has them.
func elsewhere(named []netip.Prefix) (list []remotePeer) {
	for _, candidates := range [][]string{
		{"192.0.2.1", "198.51.100.1", "203.0.113.1", "8.8.8.8", "1.1.1.1"}, {"2001:db8::1", "3fff::1", "2606:4700::1111"},
	} {
		for _, text := range candidates {
			a := netip.MustParseAddr(text)
			if !slices.ContainsFunc(named, func(n netip.Prefix) bool { return n.Contains(a) }) {
				list = append(list, remotePeer{"any other address", a, false})
				break
			}
		}
	}
	return list
}

// report adds the differences to the result, with peers by name, and with an address if only some of a peer's addresses are affected.
func (t *trial) report(pod model.EndpointID, ingress bool, found map[difference][]remotePeer) {
	total := map[string]int{}
	for _, p := range t.peers {
		total[p.Name] = len(p.Addresses)
	}
	keys := slices.SortedFunc(maps.Keys(found), func(a, b difference) int {
		if a.opened != b.opened && a.opened {
			return 1
		}
		return strings.Compare(a.ports, b.ports)
	})
	for _, d := range keys {
		if len(t.out.Changes) == maxTriedChanges {
			t.out.More = true
			return
		}
		row := triedChange{Pod: pod.String(), Direction: "egress", Ports: strings.Split(d.ports, ", "), Before: "allowed", After: "denied"}
		if ingress {
			row.Direction = "ingress"
		}
		if d.opened {
			row.Before, row.After = row.After, row.Before
		}
		row.Peers = peerNames(found[d], total)
		t.out.Changes = append(t.out.Changes, row)
	}
}

func peerNames(list []remotePeer, total map[string]int) (names []string) {
	count := map[string]int{}
	for _, f := range list {
		count[f.name]++
	}
	for _, f := range list {
		name := f.name
		if count[name] < total[name] {
			name += " (" + f.addr.String() + ")"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
