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

// limited returns a cluster with pods x/a1 to x/a3 (app=a), x/b (app=b), and a policy of each kind of rule that refers to the set of the a
// pods.
func limited() *cluster {
	c := newCluster()
	c.namespaces["x"] = &kube.Namespace{Name: "x"}
	for i := range 3 {
		c.pod(fmt.Sprint("x/a", i+1), "app=a", fmt.Sprint("10.0.0.", i+1))
	}
	c.pod("x/b", "app=b", "10.0.0.9")
	c.pod("x/far", "app=far", "10.0.0.8")
	c.locals[model.EndpointID{Namespace: "x", Name: "b"}] = Local{ID: model.EndpointID{Namespace: "x", Name: "b"}}
	return c
}

func peersWith(value string) []*kube.PolicyPeer {
	return []*kube.PolicyPeer{{Pods: &kube.LabelSelector{MatchLabels: map[string]string{"app": value}}, Namespaces: &kube.LabelSelector{}}}
}

// TestLargeSet checks that a set over its limit matches nothing in rules that allow and everything in rules that deny or pass, as long as
// it is over the limit. Its members are not in the output, and the policy's report names it.
func TestLargeSet(t *testing.T) {
	tcp := []*kube.PolicyPort{{Protocol: kube.Protocol_TCP, Port: 80}}
	for name, test := range map[string]struct {
		rule         *kube.PolicyRule
		small, large string // verdicts of TCP 80 from an a pod and from far, and of TCP 81 from far
	}{
		"allow": {rule: &kube.PolicyRule{Action: kube.PolicyRule_ALLOW, Peers: peersWith("a"), Ports: tcp}, small: "+--", large: "---"},
		"deny":  {rule: &kube.PolicyRule{Action: kube.PolicyRule_DENY, Peers: peersWith("a"), Ports: tcp}, small: "-++", large: "--+"},
		"pass":  {rule: &kube.PolicyRule{Action: kube.PolicyRule_PASS, Peers: peersWith("a"), Ports: tcp}, small: "+--", large: "---"},
	} {
		t.Run(name, func(t *testing.T) {
			c, k, state := limited(), New(), verdict.NewState()
			k.SetLimit(3)
			c.put(k)
			all := &kube.LabelSelector{}
			p := &kube.ClusterPolicy{Name: "p", Namespaces: all, Pods: &kube.LabelSelector{MatchLabels: map[string]string{"app": "b"}}, IngressRules: []*kube.PolicyRule{test.rule}}
			switch name { // the remaining rules deny
			case "allow", "pass":
				p.IngressRules = append(p.IngressRules, &kube.PolicyRule{Action: kube.PolicyRule_DENY})
			}
			k.SetClusterPolicy("p", p)
			verdicts := func() (text string) {
				for _, packet := range []struct {
					from string
					port uint16
				}{{"10.0.0.1", 80}, {"10.0.0.8", 80}, {"10.0.0.8", 81}} {
					v := verdict.Packet{Source: netip.MustParseAddr(packet.from), Dest: netip.MustParseAddr("10.0.0.9"), Protocol: model.TCP, Port: packet.port}
					if state.Allowed(model.EndpointID{}, model.EndpointID{Namespace: "x", Name: "b"}, v) {
						text += "+"
					} else {
						text += "-"
					}
				}
				return text
			}
			step := func(what, want string, large int) {
				t.Helper()
				if err := state.Apply(k.Flush()); err != nil {
					t.Fatal(err)
				}
				if got := verdicts(); got != want {
					t.Errorf("%s: %s, want %s", what, got, want)
				}
				if byPolicy, _ := k.Large(); len(byPolicy) != large {
					t.Errorf("%s: %v", what, byPolicy)
				}
			}
			four := &kube.Pod{Namespace: "x", Name: "a4", Ips: []string{"10.0.0.4"}, Labels: map[string]string{"app": "a"}}
			id := model.EndpointID{Namespace: "x", Name: "a4"}
			step("as large as it may be", test.small, 0)
			k.SetPod(id, four)
			step("too large", test.large, 1)
			if change := k.Flush(); !change.Empty() {
				t.Errorf("nothing has changed, and yet: %+v", change)
			}
			k.SetPod(model.EndpointID{Namespace: "x", Name: "a5"}, &kube.Pod{Namespace: "x", Name: "a5", Ips: []string{"10.0.0.5"}, Labels: map[string]string{"app": "a"}})
			if change := k.Flush(); !change.Empty() {
				t.Errorf("one more member of a set that is too large anyway: %+v", change)
			}
			k.SetPod(model.EndpointID{Namespace: "x", Name: "a5"}, nil)
			step("too large still", test.large, 1)
			k.SetPod(id, nil)
			step("small again", test.small, 0)
			k.SetPod(id, four)
			step("too large again", test.large, 1)
			k.SetClusterPolicy("p", nil)
			step("without the policy", "+++", 0)
			if len(k.sets) > 0 {
				t.Errorf("left: %v", k.sets)
			}
		})
	}
}

// put passes all objects of the cluster to a compiler.
func (c *cluster) put(k *Compiler) {
	for name, ns := range c.namespaces {
		k.SetNamespace(name, ns)
	}
	for _, l := range c.locals {
		k.SetEndpoint(l)
	}
	for id, p := range c.pods {
		k.SetPod(id, p)
	}
}

// TestAnyOrderWithLimit checks that also with a limit the order does not matter, and that no packet passes that does not pass without the
// limit.
func TestAnyOrderWithLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, k, state := newCluster(), New(), verdict.NewState()
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		k.SetLimit(limit)
		c.begin(t, k)
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			for range rapid.IntRange(1, 4).Draw(t, "steps") {
				c.step(t, k)
			}
			if err := state.Apply(k.Flush()); err != nil {
				t.Fatal(err)
			}
		}
		fresh := New()
		fresh.SetLimit(limit)
		c.put(fresh)
		for name, n := range c.nodes {
			fresh.SetNode(name, n)
		}
		for id, p := range c.policies {
			fresh.SetPolicy(id.Namespace, id.Name, p)
		}
		for name, p := range c.clusterwide {
			fresh.SetClusterPolicy(name, p)
		}
		want := verdict.NewState()
		if err := want.Apply(fresh.Flush()); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(state, want) {
			t.Fatalf("after updates\n%+v\nfrom scratch\n%+v", state, want)
		}
		large, _ := k.Large()
		if again, _ := fresh.Large(); !reflect.DeepEqual(large, again) {
			t.Fatalf("reported %v, from scratch %v", large, again)
		}
		unlimited, err := c.compile()
		if err != nil {
			t.Fatal(err)
		}
		addrs := slices.Collect(maps.Keys(k.claims.one))
		for _, src := range addrs {
			for id := range c.locals {
				for _, dst := range k.Addresses(id) {
					p := verdict.Packet{Source: src, Dest: dst, Protocol: model.TCP, Port: 80}
					if state.Allowed(model.EndpointID{}, id, p) && !unlimited.Allowed(model.EndpointID{}, id, p) {
						t.Fatalf("%v to %v passes with the limit %d and not without", p, id, limit)
					}
				}
			}
		}
	})
}
