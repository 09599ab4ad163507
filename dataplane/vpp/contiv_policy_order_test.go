package vpp

import (
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	"google.golang.org/protobuf/proto"

	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// clients are the members of a set, by the last byte of their addresses.
type clients []string

// webPolicy returns a policy of the web pod with one rule for each set. Packets that match no rule have the other result.
func webPolicy(action, otherwise vpp_contiv.Policy_Action, policy uint64, sets map[uint64]clients) (v values) {
	p := contivPolicy(policy, "web")
	for id, members := range sets {
		v = append(v, &vpp_contiv.IPSet{Id: id, Name: "clients", Kind: vpp_contiv.IPSet_NETWORKS})
		for _, m := range members {
			v = append(v, member(id, "10.1.0."+m+"/32"))
		}
		p.Ingress = append(p.Ingress, &vpp_contiv.Policy_Rule{Action: action, Source: id})
	}
	slices.SortFunc(p.Ingress, func(a, b *vpp_contiv.Policy_Rule) int { return int(a.Source) - int(b.Source) })
	return append(v, p, endpointPolicy("web", tier(otherwise, policy)))
}

// TestPolicyOrder checks every step in which an agent replaces policies: a packet that the policies allow before and after the change always passes,
// and one that they deny before and after never does. The agent is a new one: it does not know the objects of the agent before it, so that only the
// order of the operations protects the packets. An agent may end between any two operations.
func TestPolicyOrder(t *testing.T) {
	allow := func(policy uint64, sets map[uint64]clients) values {
		return webPolicy(vpp_contiv.Policy_ALLOW, vpp_contiv.Policy_DENY, policy, sets)
	}
	deny := func(policy uint64, sets map[uint64]clients) values {
		return webPolicy(vpp_contiv.Policy_DENY, vpp_contiv.Policy_PASS, policy, sets)
	}
	one := map[uint64]clients{1: {"2", "3"}}
	for _, c := range []struct {
		name          string
		before, after values
		allowed       clients // before and after
		denied        clients
	}{
		{"allow: no policy", allow(1, one), values{endpointPolicy("web")}, clients{"2", "3"}, nil},
		{"allow: the first policy", values{endpointPolicy("web")}, allow(1, one), clients{"2", "3"}, nil},
		{"allow: another policy", allow(1, one), allow(2, one), clients{"2", "3"}, clients{"4"}},
		{"allow: another set", allow(1, one), allow(1, map[uint64]clients{2: {"2"}}), clients{"2"}, clients{"4"}},
		{"allow: another policy and set", allow(1, one), allow(2, map[uint64]clients{2: {"2"}}), clients{"2"}, clients{"4"}},
		{"allow: another member", allow(1, one), allow(1, map[uint64]clients{1: {"2", "5"}}), clients{"2"}, clients{"4"}},
		{"allow: a member moves", allow(1, map[uint64]clients{1: {"2"}, 2: nil}), allow(1, map[uint64]clients{1: nil, 2: {"2"}}), clients{"2"}, clients{"4"}},
		{"deny: another policy", deny(1, one), deny(2, one), clients{"4"}, clients{"2", "3"}},
		{"deny: another set", deny(1, one), deny(1, map[uint64]clients{2: {"2"}}), clients{"4"}, clients{"2"}},
		{"deny: another policy and set", deny(1, one), deny(2, map[uint64]clients{2: {"2"}}), clients{"4"}, clients{"2"}},
		{"deny: a member moves", deny(1, map[uint64]clients{1: {"2"}, 2: nil}), deny(1, map[uint64]clients{1: nil, 2: {"2"}}), clients{"4"}, clients{"2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			writes := 0
			for done := false; !done; writes++ {
				w := newPolicyWorld(t, c.before)
				done = w.stopAt(writes+1, c.after)
				for _, client := range c.allowed {
					if !w.passes(client) {
						t.Errorf("after %d writes, client %s is cut off, which the policies allow before and after the change", writes, client)
					}
				}
				for _, client := range c.denied {
					if w.passes(client) {
						t.Errorf("after %d writes, client %s passes, which the policies deny before and after the change", writes, client)
					}
				}
			}
			if writes < 3 {
				t.Errorf("%d writes: the change is too small to have an order", writes-1)
			}
		})
	}
}

// TestRefusedPolicy checks that the sets and policies that VPP uses stay if it rejects their replacement: a packet that is allowed before and after
// the change passes, and one that is denied does not. When VPP accepts the change, they are deleted.
func TestRefusedPolicy(t *testing.T) {
	one, other := map[uint64]clients{1: {"2", "3"}}, map[uint64]clients{2: {"2"}}
	for _, c := range []struct {
		name, refused     string
		action, otherwise vpp_contiv.Policy_Action
		policy            uint64 // the ID after the change; it is 1 before
		allowed, denied   string
	}{
		{"allow: another set", "contiv_policy_set", vpp_contiv.Policy_ALLOW, vpp_contiv.Policy_DENY, 1, "2", "4"},
		{"allow: another policy", "contiv_endpoint_policy_set", vpp_contiv.Policy_ALLOW, vpp_contiv.Policy_DENY, 2, "2", "4"},
		{"deny: another set", "contiv_policy_set", vpp_contiv.Policy_DENY, vpp_contiv.Policy_PASS, 1, "4", "2"},
		{"deny: another policy", "contiv_endpoint_policy_set", vpp_contiv.Policy_DENY, vpp_contiv.Policy_PASS, 2, "4", "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newPolicyWorld(t, webPolicy(c.action, c.otherwise, 1, one))
			after := w.desired(webPolicy(c.action, c.otherwise, c.policy, other))
			w.g.fake.Faults.Add(vppfake.Fault{Message: c.refused, Retval: int32(api.TABLE_TOO_BIG)})
			for range 2 { // the second agent finds what the first one has left
				a := newAgent(t, w.g, Deps{})
				if _, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.FullResync, Values: kvs(t, after), NoRetry: true}); err == nil {
					t.Fatal("no operation failed")
				}
				if !w.passes(c.allowed) || w.passes(c.denied) {
					t.Errorf("client %s, which is allowed, passes %t; client %s, which is denied, passes %t", c.allowed, w.passes(c.allowed), c.denied, w.passes(c.denied))
				}
			}
			w.g.fake.Faults.Clear()
			a := newAgent(t, w.g, Deps{})
			a.resync(after...)
			if !w.passes(c.allowed) || w.passes(c.denied) {
				t.Error("the change has no effect")
			}
			a.mustNotWrite("everything is done", after)
		})
	}
}

type policyWorld struct {
	t *testing.T
	g *target
}

// newPolicyWorld returns a VPP with the policies of an agent that has ended.
func newPolicyWorld(t *testing.T, policies values) *policyWorld {
	t.Helper()
	w := &policyWorld{t, fakeWithPlugin(t)}
	newAgent(t, w.g, Deps{}).resync(w.desired(policies)...)
	return w
}

// desired returns the values of a node with clients and a web pod.
func (w *policyWorld) desired(policies values) []proto.Message {
	web := afPacket("web", "eth1")
	web.IpAddresses = []string{"10.1.1.1/24"}
	return all(values{
		loop("client", "02:00:00:00:01:01", withIP("10.1.0.1/24")), web,
		&vpp_l3.ARPEntry{Interface: "web", IpAddress: "10.1.1.2", PhysAddress: "02:00:00:00:02:02", Static: true},
		endpoint("client", vpp_contiv.Endpoint_POD, "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5"),
		endpoint("web", vpp_contiv.Endpoint_POD, "10.1.1.2"), endpointPolicy("client"),
	}, policies)
}

// stopAt runs the first resync of a new agent, whose connection ends before a write. It reports whether there are fewer writes.
func (w *policyWorld) stopAt(write int, policies values) (done bool) {
	w.t.Helper()
	a := newAgent(w.t, w.g, Deps{})
	w.g.fake.Faults.Add(vppfake.Fault{Message: "*", WritesOnly: true, Disconnect: true, Nth: write})
	_, err := a.s.Commit(w.t.Context(), &txn.Txn{Kind: txn.FullResync, Values: kvs(w.t, w.desired(policies)), NoRetry: true})
	w.g.fake.Faults.Clear()
	return err == nil
}

// passes reports whether a packet of a client reaches the web pod.
func (w *policyWorld) passes(client string) bool {
	w.t.Helper()
	mac, _ := w.g.fake.MAC("cv:client")
	r, err := w.g.fake.Send("cv:client", vppfake.Packet{
		EthDst: mac, Src: netip.MustParseAddr("10.1.0." + client), Dst: netip.MustParseAddr("10.1.1.2"),
		Proto: vppfake.ProtoUDP, SrcPort: 4000, DstPort: 53,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	_, ok := r.Delivered()
	return ok
}
