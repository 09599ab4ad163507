package policy

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

// Connection is an open connection as seen by policy: with the client's own address, and the address at which its packets arrive.
type Connection struct {
	Protocol uint8
	Client   netip.AddrPort
	Server   netip.AddrPort
}

// Connections returns the open connections of the dataplane.
type Connections func(ctx context.Context) ([]Connection, error)

// ParsePolicy parses a policy from YAML or JSON. Exactly one of the results is set.
type ParsePolicy func(text []byte) (*kube.Policy, *kube.ClusterPolicy, error)

// tried holds the changes that a policy would cause for the pods of this node.
type tried struct {
	Policy      string            `json:"policy"`
	Problems    []string          `json:"problems,omitempty"` // the parts of the policy that are not understood
	Selects     []string          `json:"selects"`            // pods of this node
	Changes     []triedChange     `json:"changes"`
	Connections []triedConnection `json:"connections"` // open connections that would no longer be allowed
	// Unknown is the reason why open connections are not known.
	Unknown string `json:"unknown,omitempty"`
	// More is true if the lists are not complete.
	More bool `json:"more,omitempty"`
}

// triedChange is a difference for a pod in one direction, on some ports, with some peers.
type triedChange struct {
	Pod       string   `json:"pod"`
	Direction string   `json:"direction"`
	Ports     []string `json:"ports"` // "tcp 80-90", "other": of other protocols
	Peers     []string `json:"peers"`
	Before    string   `json:"before"`
	After     string   `json:"after"`
}

type triedConnection struct {
	Protocol string         `json:"protocol"`
	Client   netip.AddrPort `json:"client"`
	Server   netip.AddrPort `json:"server"`
	From     string         `json:"from,omitempty"` // pods, if they are known
	To       string         `json:"to,omitempty"`
}

const (
	maxTriedChanges     = 1000
	maxTriedConnections = 1000
	// maxTriedProbes limits the work for one request: the number of comparisons with a rule.
	maxTriedProbes = 50_000_000
)

// stage holds all policies, compiled, before or after the change by the tried policy. It implements verdict.Compiled.
type stage struct {
	*compiler.Compiler
	policies  map[model.PolicyID]model.Policy
	endpoints map[model.EndpointID]model.Endpoint
}

func newStage(c *compiler.Compiler, objects map[string]*kube.Policy, cluster map[string]*kube.ClusterPolicy) *stage {
	s := &stage{c, map[model.PolicyID]model.Policy{}, map[model.EndpointID]model.Endpoint{}}
	for _, p := range objects {
		c.SetPolicy(p.GetNamespace(), p.GetName(), p)
	}
	for _, p := range cluster {
		c.SetClusterPolicy(p.GetName(), p)
	}
	out := c.Flush()
	for _, p := range out.Policies {
		s.policies[p.ID] = p
	}
	for _, e := range out.Endpoints {
		s.endpoints[e.ID] = e
	}
	return s
}

// Policy implements verdict.Compiled.
func (s *stage) Policy(id model.PolicyID) (model.Policy, bool) {
	p, known := s.policies[id]
	return p, known
}

func directionOf(e model.Endpoint, ingress bool) model.Direction {
	if ingress {
		return e.Ingress
	}
	return e.Egress
}

func (s *stage) allows(pod model.EndpointID, ingress bool, packet verdict.Packet) bool {
	return verdict.Evaluate(s, directionOf(s.endpoints[pod], ingress), ingress, packet).Action == model.Allow
}

// rules returns the rules that are evaluated for a pod's packets of one direction.
func (s *stage) rules(pod model.EndpointID, ingress bool) (list []model.Rule) {
	for _, t := range directionOf(s.endpoints[pod], ingress).Tiers {
		for _, id := range t.Policies {
			if ingress {
				list = append(list, s.policies[id].Ingress...)
			} else {
				list = append(list, s.policies[id].Egress...)
			}
		}
	}
	return list
}

// has reports whether any of the policies applies to a pod.
func (s *stage) has(pod model.EndpointID, ids []model.PolicyID) bool {
	e := s.endpoints[pod]
	for _, t := range slices.Concat(e.Ingress.Tiers, e.Egress.Tiers) {
		if slices.ContainsFunc(t.Policies, func(id model.PolicyID) bool { return slices.Contains(ids, id) }) {
			return true
		}
	}
	return false
}

// trial compares two stages. It has copies of all its inputs, so that it holds no lock while it works.
type trial struct {
	before, after *stage
	nodeAddrs     []string
	peers         []compiler.Peer
	probes        int
	out           tried
}

// try returns the changes that a policy would cause. It does not change the plugin.
func (p *Plugin) try(ctx context.Context, np *kube.Policy, cnp *kube.ClusterPolicy) tried {
	p.mu.RLock()
	base, nodeAddrs := p.compiler.Copy(), slices.Clone(p.nodeAddrs)
	objects, cluster := maps.Clone(p.objects), maps.Clone(p.cluster)
	p.mu.RUnlock()
	t := &trial{nodeAddrs: nodeAddrs, peers: base.Peers()}
	t.before = newStage(base.Copy(), objects, cluster)
	var ids []model.PolicyID
	if np != nil {
		maps.DeleteFunc(objects, func(_ string, o *kube.Policy) bool {
			return o.GetNamespace() == np.GetNamespace() && o.GetName() == np.GetName()
		})
		objects["tried"] = np
		ids = []model.PolicyID{{Kind: model.KindNetworkPolicy, Namespace: np.GetNamespace(), Name: np.GetName()}}
		t.out.Problems = slices.Concat(np.GetProblems(), compiler.NotUnderstood(np))
	} else {
		maps.DeleteFunc(cluster, func(_ string, o *kube.ClusterPolicy) bool { return o.GetName() == cnp.GetName() })
		cluster["tried"] = cnp
		ids = []model.PolicyID{{Kind: model.KindAdminPolicy, Name: cnp.GetName()}, {Kind: model.KindBaselinePolicy, Name: cnp.GetName()}}
		t.out.Problems = slices.Concat(cnp.GetProblems(), compiler.NotUnderstoodCluster(cnp))
	}
	t.after = newStage(base, objects, cluster)
	t.out.Policy, t.out.Selects, t.out.Changes, t.out.Connections = ids[0].Path(), []string{}, []triedChange{}, []triedConnection{}
	t.compare(ids)
	t.connections(ctx, p.Connections)
	return t.out
}

// compare compares the pods that the policy selects, or has selected before.
func (t *trial) compare(ids []model.PolicyID) {
	for _, pod := range slices.SortedFunc(maps.Keys(t.after.endpoints), model.EndpointID.Compare) {
		if t.after.has(pod, ids) {
			t.out.Selects = append(t.out.Selects, pod.String())
		} else if !t.before.has(pod, ids) {
			continue
		}
		for _, ingress := range []bool{true, false} {
			t.direction(pod, ingress)
		}
	}
}

// connections finds the open connections that are allowed now and would be denied.
func (t *trial) connections(ctx context.Context, list Connections) {
	if list == nil {
		t.out.Unknown = "the dataplane does not list connections"
		return
	}
	all, err := list(ctx)
	if err != nil {
		t.out.Unknown = fmt.Sprintf("the dataplane does not list connections: %v", err)
		return
	}
	for _, c := range all {
		from, _ := t.after.Owner(c.Client.Addr())
		to, _ := t.after.Owner(c.Server.Addr())
		if from == to && from != (model.EndpointID{}) || !t.passes(t.before, from, to, c) || t.passes(t.after, from, to, c) {
			continue
		}
		if len(t.out.Connections) == maxTriedConnections {
			t.out.More = true
			return
		}
		one := triedConnection{Protocol: protocolName(c.Protocol), Client: c.Client, Server: c.Server}
		if from != (model.EndpointID{}) {
			one.From = from.String()
		}
		if to != (model.EndpointID{}) {
			one.To = to.String()
		}
		t.out.Connections = append(t.out.Connections, one)
	}
}

// passes evaluates a connection at those of its ends that are pods of this node.
func (t *trial) passes(s *stage, from, to model.EndpointID, c Connection) bool {
	packet := verdict.Packet{Source: c.Client.Addr(), Dest: c.Server.Addr(), Protocol: model.Protocol(c.Protocol), Port: c.Server.Port()}
	if _, local := s.endpoints[from]; local {
		packet.OwnNode = t.ownNode(packet.Dest)
		if !s.allows(from, false, packet) {
			return false
		}
	}
	if _, local := s.endpoints[to]; local {
		packet.OwnNode = t.ownNode(packet.Source)
		return s.allows(to, true, packet)
	}
	return true
}

func (t *trial) ownNode(a netip.Addr) bool { return slices.Contains(t.nodeAddrs, a.String()) }
