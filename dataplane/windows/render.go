package windataplane

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/internal/ipaddr"
)

// Priorities of rules: of the rules that match, the lowest decides.
const (
	hostPriority  = 900 // the node can reach its own workloads
	firstPriority = 1000
)

// maxSingles is the largest range of ports that is expanded to single ports if Windows has no ranges.
const maxSingles = 16

// stage is one step in the evaluation of a direction: a policy of a tier, or a profile. Stages are evaluated in order.
type stage struct {
	key       listKey
	last      bool // the tier or profile ends after this stage,
	passAtEnd bool // and packets that it did not decide continue in the next one
	toNode    bool // instead of a policy: packets to the node are allowed
}

// flat is a rule in the list of a direction, in order.
type flat struct {
	allow bool
	box   box
}

// direction holds the rendered rules for one direction of an endpoint's packets. Endpoints with the same policies share it.
type direction struct {
	rules    []flat
	problems []string // rules that block more than they specify
	missing  []string // policies and profiles that are not known
	err      error    // it cannot be rendered at all
}

// flatten makes one list of the stages, because HNS has no tiers. A pass rule becomes the rules of the next tier, each restricted to the
// packets that the pass rule matches.
func flatten(policies *policyManager, stages []stage, node []netip.Addr) direction {
	var d direction
	rest := []flat{{allow: false}}
	next := rest // the rules after the current tier
	for i := len(stages) - 1; i >= 0; i-- {
		s := stages[i]
		if s.toNode {
			rest = slices.Concat(toNode(node), rest)
			continue
		}
		if s.last {
			next = rest
			if !s.passAtEnd {
				rest = []flat{{allow: false}}
			}
		}
		c, known := policies.list(s.key)
		if !known {
			d.missing = append(d.missing, policies.missing(s.key))
			rest = []flat{{allow: false}}
			continue
		}
		for _, p := range c.problems {
			d.problems = append(d.problems, fmt.Sprintf("%s, %s", s.key, p))
		}
		var err error
		if rest, err = before(c.rules, next, rest); err != nil {
			d.err = fmt.Errorf("%s: %w", s.key, err)
			return d
		}
	}
	slices.Reverse(d.problems)
	slices.Reverse(d.missing)
	d.rules = rest
	return d
}

// toNode allows packets to the node's own addresses.
func toNode(node []netip.Addr) []flat {
	var out []flat
	for _, nets := range byFamily(node) {
		out = append(out, flat{allow: true, box: box{remote: nets}})
	}
	return out
}

// byFamily splits addresses into one list for each family, without empty lists.
func byFamily(addrs []netip.Addr) []netList {
	var out []netList
	for _, f := range []family{4, 6} {
		var nets []netip.Prefix
		for _, a := range addrs {
			if p := ipaddr.HostPrefix(a); familyOf(p) == f {
				nets = append(nets, p)
			}
		}
		if len(nets) > 0 {
			out = append(out, netsOf(nets))
		}
	}
	return out
}

// before puts rules before a list. Packets that match a pass rule continue in next.
func before(rules []rule, next, rest []flat) ([]flat, error) {
	var out []flat
	for _, r := range rules {
		for _, b := range r.boxes {
			if r.action == actionPass {
				out = narrowed(out, b, next)
			} else {
				out = append(out, flat{allow: r.action == actionAllow, box: b})
			}
			if len(out) > hns.MaxRules {
				return nil, fmt.Errorf("more than the %d rules that an endpoint may have", hns.MaxRules)
			}
			if b.all() {
				return out, nil // packets never reach the rules after this one
			}
		}
	}
	return append(out, rest...), nil
}

// narrowed appends a list, restricted to the packets of a box.
func narrowed(out []flat, b box, list []flat) []flat {
	for _, f := range list {
		both, some := b.and(f.box)
		if !some {
			continue
		}
		if out = append(out, flat{allow: f.allow, box: both}); f.box.all() || len(out) > hns.MaxRules {
			break
		}
	}
	return out
}

// renderer makes rules of HNS.
type renderer struct {
	features hns.Features
}

// closed returns the rules of an endpoint that blocks all packets in both directions.
func (r renderer) closed() []hns.ACL {
	block := []flat{{allow: false}}
	acls, _ := r.endpoint(block, block, nil) // two rules never exceed the limit
	return acls
}

// endpoint returns the rules of an endpoint, from the rules for packets to it and from it, and the node's own addresses.
func (r renderer) endpoint(in, out []flat, node []netip.Addr) ([]hns.ACL, error) {
	acls := r.host()
	acls = append(acls, r.fromNode(node)...)
	for _, dir := range []struct {
		is    hns.Direction
		rules []flat
	}{{hns.In, in}, {hns.Out, out}} {
		list, err := r.list(dir.is, dir.rules)
		if err != nil {
			return nil, err
		}
		acls = append(acls, list...)
	}
	if len(acls) > hns.MaxRules {
		return nil, fmt.Errorf("%d rules are more than the %d that an endpoint may have", len(acls), hns.MaxRules)
	}
	return acls, nil
}

// host allows all packets in the host's firewall, because the virtual switch filters them.
func (r renderer) host() []hns.ACL {
	var acls []hns.ACL
	for _, dir := range []hns.Direction{hns.In, hns.Out} {
		a := hns.ACL{Protocol: hns.AnyProtocol, Action: hns.Allow, Direction: dir, RuleType: hns.Host, Priority: 100,
			ID: r.id("host", dir, 0)}
		if r.features.NoHostRulePriority {
			a.Priority = 0
		}
		acls = append(acls, a)
	}
	return acls
}

// fromNode allows packets from the node to its workloads, such as kubelet's probes.
func (r renderer) fromNode(node []netip.Addr) []hns.ACL {
	var acls []hns.ACL
	for _, nets := range byFamily(node) {
		for _, chunk := range r.chunks(nets) {
			acls = append(acls, hns.ACL{ID: r.id("allow-host-to-endpoint", hns.In, len(acls)), Protocol: hns.AnyProtocol,
				Action: hns.Allow, Direction: hns.In, RemoteAddresses: chunk, RuleType: hns.Switch, Priority: hostPriority})
		}
	}
	return acls
}

// list returns the rules of a direction. The priority increases where the action changes: the order of rules with the same action does not
// matter.
func (r renderer) list(dir hns.Direction, rules []flat) ([]hns.ACL, error) {
	var acls []hns.ACL
	priority := firstPriority
	for i, f := range rules {
		if i > 0 && f.allow != rules[i-1].allow {
			priority++
		}
		if priority > hns.MaxPriority {
			return nil, fmt.Errorf("the rules need priorities above %d", hns.MaxPriority)
		}
		localPorts, err := r.portChunks(f.box.localPorts)
		if err != nil {
			return nil, err
		}
		remotePorts, err := r.portChunks(f.box.remotePorts)
		if err != nil {
			return nil, err
		}
		a := hns.ACL{Protocol: f.box.protocol, Action: hns.Block, Direction: dir, RuleType: hns.Switch, Priority: uint16(priority)}
		if a.Protocol == 0 {
			a.Protocol = hns.AnyProtocol
		}
		if f.allow {
			a.Action = hns.Allow
		}
		for _, a.LocalAddresses = range r.chunks(f.box.local) {
			for _, a.RemoteAddresses = range r.chunks(f.box.remote) {
				for _, a.LocalPorts = range localPorts {
					for _, a.RemotePorts = range remotePorts {
						a.ID = r.id(string(a.Action), dir, len(acls))
						if acls = append(acls, a); len(acls) > hns.MaxRules {
							return nil, fmt.Errorf("more than the %d rules that an endpoint may have", hns.MaxRules)
						}
					}
				}
			}
		}
	}
	return acls, nil
}

func (r renderer) id(what string, dir hns.Direction, n int) string {
	if !r.features.RuleIDs {
		return ""
	}
	return strings.ToLower(fmt.Sprintf("contiv-%s-%s-%d", what, dir, n))
}

// chunks splits a list into parts that fit into a rule; a nil list is one nil part.
func (r renderer) chunks(list netList) [][]netip.Prefix {
	size := hns.MaxAddresses
	if !r.features.AddressLists {
		size = 1
	}
	if list == nil {
		return [][]netip.Prefix{nil}
	}
	var out [][]netip.Prefix
	for chunk := range slices.Chunk([]netip.Prefix(list), size) {
		out = append(out, chunk)
	}
	return out
}

func (r renderer) portChunks(list portList) ([][]hns.PortRange, error) {
	if list == nil {
		return [][]hns.PortRange{nil}, nil
	}
	size := hns.MaxPorts
	if !r.features.PortRanges {
		size = 1
		var err error
		if list, err = singles(list); err != nil {
			return nil, err
		}
	}
	var out [][]hns.PortRange
	for chunk := range slices.Chunk([]hns.PortRange(list), size) {
		out = append(out, chunk)
	}
	return out, nil
}

// singles expands ranges to single ports.
func singles(list portList) (portList, error) {
	var out portList
	for _, r := range list {
		if int(r.Last)-int(r.First) >= maxSingles {
			return nil, fmt.Errorf("this Windows has no ranges of ports, and %d-%d are too many single ones", r.First, r.Last)
		}
		for p := int(r.First); p <= int(r.Last); p++ {
			out = append(out, hns.PortRange{First: uint16(p), Last: uint16(p)})
		}
	}
	return out, nil
}

// sorted returns the ports in order.
func sorted(list []hns.PortRange) []hns.PortRange {
	return slices.SortedFunc(slices.Values(list), func(a, b hns.PortRange) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
}

// signature returns a text that is equal for equivalent lists, whatever their order and the rules' IDs.
func signature(acls []hns.ACL) string {
	if len(acls) == 0 {
		return "no rule"
	}
	lines := make([]string, 0, len(acls))
	for _, a := range acls {
		local, remote := netsOf(a.LocalAddresses), netsOf(a.RemoteAddresses)
		lines = append(lines, fmt.Sprintf("%s %s %s %d %d %s %s %s %s", a.Direction, a.Action, a.RuleType, a.Priority, a.Protocol,
			hns.JoinAddresses(local), hns.JoinAddresses(remote), hns.JoinPorts(sorted(a.LocalPorts)), hns.JoinPorts(sorted(a.RemotePorts))))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
