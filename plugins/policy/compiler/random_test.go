package compiler

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

var (
	someKeys   = []string{"app", "tier"}
	someValues = []string{"a", "b", "c"}
	someNames  = []string{"x", "y", "z"}
	somePorts  = []uint32{80, 81, 8080}
	someNets   = []string{"10.0.0.0/24", "10.0.0.0/30", "10.0.0.4/30", "0.0.0.0/0", "fd00::/64", "fd00::2/127", "::/0", "10.0.0.2/32"}
	someAddrs  = []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "192.0.2.1"}
)

func pick[T any](t *rapid.T, list []T, what string) T { return rapid.SampledFrom(list).Draw(t, what) }

func flip(t *rapid.T, what string) bool { return rapid.Bool().Draw(t, what) }

func drawLabels(t *rapid.T) map[string]string {
	out := map[string]string{}
	for _, k := range someKeys {
		if flip(t, "has "+k) {
			out[k] = pick(t, someValues, k)
		}
	}
	return out
}

func drawSelector(t *rapid.T) *kube.LabelSelector {
	s := &kube.LabelSelector{}
	if flip(t, "labels") {
		s.MatchLabels = map[string]string{pick(t, someKeys, "key"): pick(t, someValues, "value")}
	}
	for range rapid.IntRange(0, 2).Draw(t, "expressions") {
		e := &kube.LabelExpression{Key: pick(t, someKeys, "key"), Operator: kube.LabelExpression_Operator(rapid.IntRange(0, 3).Draw(t, "op"))}
		if e.Operator <= kube.LabelExpression_NOT_IN {
			e.Values = rapid.SliceOfN(rapid.SampledFrom(someValues), 1, 2).Draw(t, "values")
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

// drawSubject rarely draws a selector with an operator of a later version.
func drawSubject(t *rapid.T) *kube.LabelSelector {
	s := drawSelector(t)
	if rapid.IntRange(0, 19).Draw(t, "operator") == 19 {
		s.MatchExpressions = append(s.MatchExpressions, &kube.LabelExpression{Key: "app", Operator: 9})
	}
	return s
}

func drawPod(t *rapid.T, id model.EndpointID) *kube.Pod {
	p := &kube.Pod{Namespace: id.Namespace, Name: id.Name, Uid: pick(t, []string{"1", "2"}, "uid"), Labels: drawLabels(t),
		HostNetwork: rapid.IntRange(0, 9).Draw(t, "host") == 0}
	if flip(t, "v4") {
		p.Ips = append(p.Ips, pick(t, someAddrs, "ip"))
	}
	if flip(t, "v6") {
		p.Ips = append(p.Ips, fmt.Sprintf("fd00::%d", rapid.IntRange(1, 4).Draw(t, "v6")))
	}
	for range rapid.IntRange(0, 2).Draw(t, "ports") {
		p.Ports = append(p.Ports, &kube.ContainerPort{Name: pick(t, []string{"http", "dns"}, "port"),
			Protocol: drawProtocol(t), ContainerPort: pick(t, somePorts, "number")})
	}
	return p
}

func drawRules(t *rapid.T, peer func(t *rapid.T) *kube.PolicyPeer) (out []*kube.PolicyRule) {
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		r := &kube.PolicyRule{}
		for range rapid.IntRange(0, 2).Draw(t, "peers") {
			r.Peers = append(r.Peers, drawPeerOrForeign(t, peer))
		}
		for range rapid.IntRange(0, 2).Draw(t, "ports") {
			p := &kube.PolicyPort{Protocol: drawProtocol(t)}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				p.Name = pick(t, []string{"http", "dns", "none"}, "name")
			case 1:
				p.Port = pick(t, somePorts, "port")
			case 2:
				p.Port, p.EndPort = 80, pick(t, []uint32{80, 81, 8080}, "end")
			}
			r.Ports = append(r.Ports, p)
		}
		out = append(out, r)
	}
	return out
}

// drawProtocol rarely draws a protocol of a later version.
func drawProtocol(t *rapid.T) kube.Protocol {
	if n := rapid.IntRange(0, 18).Draw(t, "protocol"); n < 18 {
		return kube.Protocol(n % 3)
	}
	return 9
}

// drawPeerOrForeign draws a peer by draw, or rarely one of a later version, which lacks the fields that this version does not have.
func drawPeerOrForeign(t *rapid.T, draw func(t *rapid.T) *kube.PolicyPeer) *kube.PolicyPeer {
	switch rapid.IntRange(0, 19).Draw(t, "foreign") {
	case 18:
		return &kube.PolicyPeer{Pods: &kube.LabelSelector{MatchExpressions: []*kube.LabelExpression{{Key: "app", Operator: 9}}}}
	case 19:
		return &kube.PolicyPeer{}
	}
	return draw(t)
}

func drawPeer(t *rapid.T) *kube.PolicyPeer {
	switch rapid.IntRange(0, 3).Draw(t, "peer") {
	case 0:
		return &kube.PolicyPeer{Pods: drawSelector(t)}
	case 1:
		return &kube.PolicyPeer{Namespaces: drawSelector(t)}
	case 2:
		return &kube.PolicyPeer{Pods: drawSelector(t), Namespaces: drawSelector(t)}
	}
	return &kube.PolicyPeer{IpBlock: &kube.IPBlock{Cidr: pick(t, someNets, "cidr"),
		Except: rapid.SliceOfN(rapid.SampledFrom(someNets), 0, 2).Draw(t, "except")}}
}

func drawPolicy(t *rapid.T, id model.PolicyID) *kube.Policy {
	p := &kube.Policy{Namespace: id.Namespace, Name: id.Name, Pods: drawSubject(t)}
	switch rapid.IntRange(0, 2).Draw(t, "types") {
	case 0:
		p.Ingress = true
	case 1:
		p.Egress = true
	case 2:
		p.Ingress, p.Egress = true, true
	}
	if p.Ingress {
		p.IngressRules = drawRules(t, drawPeer)
	}
	if p.Egress {
		p.EgressRules = drawRules(t, drawPeer)
	}
	return p
}

// drawClusterPolicy draws a policy. A rule may also match everything, like one that was not understood.
func drawClusterPolicy(t *rapid.T, name string) *kube.ClusterPolicy {
	p := &kube.ClusterPolicy{Name: name, Tier: kube.ClusterPolicy_Tier(pick(t, []int{0, 1, 0, 1, 0, 1, 0, 1, 7}, "tier")),
		Priority: uint32(rapid.IntRange(0, 2).Draw(t, "priority")), Namespaces: drawSubject(t), Pods: drawSubject(t)}
	peer := func(t *rapid.T) *kube.PolicyPeer {
		switch rapid.IntRange(0, 3).Draw(t, "peer") {
		case 0:
			return &kube.PolicyPeer{Nodes: drawSelector(t)}
		case 1:
			return &kube.PolicyPeer{IpBlock: &kube.IPBlock{Cidr: pick(t, someNets, "cidr")}}
		}
		return &kube.PolicyPeer{Pods: drawSelector(t), Namespaces: drawSelector(t)}
	}
	p.IngressRules, p.EgressRules = drawRules(t, peer), drawRules(t, peer)
	for _, r := range slices.Concat(p.IngressRules, p.EgressRules) {
		r.Action = kube.PolicyRule_Action(rapid.IntRange(0, 2).Draw(t, "action"))
	}
	return p
}

// begin adds most of the namespaces: without its namespace a pod is closed.
func (c *cluster) begin(t *rapid.T, k *Compiler) {
	for _, name := range someNames {
		if rapid.IntRange(0, 4).Draw(t, "absent") > 0 {
			c.namespaces[name] = &kube.Namespace{Name: name, Labels: drawLabels(t)}
			k.SetNamespace(name, c.namespaces[name])
		}
	}
}

// step changes one object, in the cluster and in the compiler.
func (c *cluster) step(t *rapid.T, k *Compiler) {
	ns := pick(t, someNames, "namespace")
	id := model.EndpointID{Namespace: ns, Name: pick(t, someNames, "name")}
	gone := rapid.IntRange(0, 3).Draw(t, "gone") == 0
	switch rapid.IntRange(0, 12).Draw(t, "what") {
	case 0:
		obj := &kube.Namespace{Name: ns, Labels: drawLabels(t)}
		if rapid.IntRange(0, 3).Draw(t, "blocked") == 0 {
			obj.Problems = []string{"too large"}
		}
		if gone {
			obj = nil
		}
		put(c.namespaces, ns, obj)
		k.SetNamespace(ns, obj)
	case 1, 2, 3, 4:
		var obj *kube.Pod
		if !gone {
			obj = drawPod(t, id)
		}
		put(c.pods, id, obj)
		k.SetPod(id, obj)
	case 5, 6:
		if delete(c.locals, id); gone {
			k.DeleteEndpoint(id)
			return
		}
		l := Local{ID: id, UID: pick(t, []string{"", "1", "2"}, "uid")}
		if flip(t, "addresses") {
			l.Addresses = []netip.Addr{netip.MustParseAddr(pick(t, someAddrs, "address"))}
		}
		c.locals[id] = l
		k.SetEndpoint(l)
	case 7:
		obj := &kube.Node{Name: ns, Labels: drawLabels(t), Addresses: rapid.SliceOfN(rapid.SampledFrom(someAddrs), 0, 2).Draw(t, "addresses")}
		if gone {
			obj = nil
		}
		put(c.nodes, ns, obj)
		k.SetNode(ns, obj)
	case 8, 9, 10:
		var obj *kube.ClusterPolicy
		if !gone {
			obj = drawClusterPolicy(t, ns)
		}
		put(c.clusterwide, ns, obj)
		k.SetClusterPolicy(ns, obj)
	default:
		pid := model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: ns, Name: id.Name}
		var obj *kube.Policy
		if !gone {
			obj = drawPolicy(t, pid)
		}
		put(c.policies, pid, obj)
		k.SetPolicy(ns, id.Name, obj)
	}
}

func put[K comparable, V any](m map[K]*V, key K, value *V) {
	if delete(m, key); value != nil {
		m[key] = value
	}
}

// TestAnyOrder checks that, for any changes in any order, the output is that of a new compiler, each change fits the previous state, and
// the oracle agrees with every verdict.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, k, state := newCluster(), New(), verdict.NewState()
		c.begin(t, k)
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			for range rapid.IntRange(1, 4).Draw(t, "steps") {
				c.step(t, k)
			}
			if err := state.Apply(k.Flush()); err != nil {
				t.Fatal(err)
			}
		}
		fresh, err := c.compile()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(state, fresh) {
			t.Fatalf("after updates\n%+v\nfrom scratch\n%+v", state, fresh)
		}
		if change := k.Flush(); !change.Empty() {
			t.Fatalf("nothing has changed, and yet: %+v", change)
		}
		c.compare(t, state)
	})
}

// TestNothingIsLeft checks that the compiler holds no data when there are no objects.
func TestNothingIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, k, state := newCluster(), New(), verdict.NewState()
		c.begin(t, k)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			c.step(t, k)
			if flip(t, "flush") {
				if err := state.Apply(k.Flush()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for name := range c.namespaces {
			k.SetNamespace(name, nil)
		}
		for name := range c.nodes {
			k.SetNode(name, nil)
		}
		for name := range c.clusterwide {
			k.SetClusterPolicy(name, nil)
		}
		for id := range c.pods {
			k.SetPod(id, nil)
		}
		for id := range c.locals {
			k.DeleteEndpoint(id)
		}
		for id := range c.policies {
			k.SetPolicy(id.Namespace, id.Name, nil)
		}
		if err := state.Apply(k.Flush()); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(state, verdict.NewState()) {
			t.Errorf("left to renderers: %+v", state)
		}
		if !reflect.DeepEqual(k.sizes(), New().sizes()) {
			t.Errorf("left: %v", k.sizes())
		}
	})
}

func (c *Compiler) sizes() []int {
	return []int{len(c.pods), len(c.claims.one), len(c.claims.many), len(c.endpoints), len(c.policies), len(c.sets),
		len(c.peers.namespaces), len(c.peers.scopes), len(c.locals.namespaces), len(c.locals.scopes), len(c.nodes.byName),
		len(c.nodes.choices), len(c.blocked)}
}

// compare compares the oracle and the state for packets between all addresses.
func (c *cluster) compare(t *rapid.T, state *verdict.State) {
	at := map[netip.Addr][]model.EndpointID{}
	for id := range c.locals {
		if p := c.pods[id]; p != nil {
			for _, ip := range c.addressesOf(id) {
				at[ip] = append(at[ip], id)
			}
		}
	}
	for _, text := range append([]string{"fd00::1", "fd00::2", "fd00::3", "2001:db8::1"}, someAddrs...) {
		at[netip.MustParseAddr(text)] = append(at[netip.MustParseAddr(text)], model.EndpointID{})
	}
	addrs := slices.SortedFunc(maps.Keys(at), netip.Addr.Compare)
	for _, src := range addrs {
		for _, dst := range addrs {
			if src.Is4() != dst.Is4() {
				continue
			}
			for _, from := range at[src] {
				for _, to := range at[dst] {
					c.comparePackets(t, state, from, to, src, dst)
				}
			}
		}
	}
}

func (c *cluster) addressesOf(id model.EndpointID) []netip.Addr {
	if l := c.locals[id]; len(l.Addresses) > 0 {
		return l.Addresses
	}
	var out []netip.Addr
	for _, ip := range c.pods[id].GetIps() {
		out = append(out, netip.MustParseAddr(ip))
	}
	return out
}

// nodeAddr is the address of the pods' node.
var nodeAddr = netip.MustParseAddr("192.0.2.1")

func (c *cluster) comparePackets(t *rapid.T, state *verdict.State, from, to model.EndpointID, src, dst netip.Addr) {
	for _, protocol := range []model.Protocol{model.TCP, model.UDP, model.SCTP, 1} {
		for _, port := range []uint16{79, 80, 81, 8080, 8081} {
			p := verdict.Packet{Source: src, Dest: dst, Protocol: protocol, Port: port, OwnNode: src == nodeAddr || dst == nodeAddr}
			if want, got := c.allowed(from, to, p), state.Allowed(from, to, p); want != got {
				t.Fatalf("%v of %v to %v: allowed %t, the oracle says %t", p, from, to, got, want)
			}
		}
	}
}
