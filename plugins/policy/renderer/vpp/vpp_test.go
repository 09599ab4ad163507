package vpp

import (
	"log/slog"
	"net/netip"
	"strconv"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/policy/model"
)

// values is a transaction.
type values map[string]pb.Message

func (v values) Put(key string, value pb.Message) { v[key] = value }
func (v values) Delete(key string)                { v[key] = nil }

func (v values) want(t *testing.T, key, text string) {
	t.Helper()
	m, there := v[key]
	switch {
	case !there:
		t.Errorf("there is no %s in %v", key, v)
	case text == "deleted":
		if m != nil {
			t.Errorf("%s is %v, want it deleted", key, m)
		}
	default:
		want := m.ProtoReflect().New().Interface()
		if err := protojson.Unmarshal([]byte(text), want); err != nil {
			t.Fatal(err)
		}
		if !pb.Equal(m, want) {
			t.Errorf("%s is\n%s\nwant\n%s", key, protojson.Format(m), protojson.Format(want))
		}
	}
}

func newRenderer(plugin bool) Renderer {
	return New(Deps{
		HasPlugin: func() bool { return plugin }, Log: slog.New(slog.DiscardHandler),
		Interface: func(a *podmanager.Attachment) string { return "tap-" + a.ID.ContainerID },
	})
}

var (
	policy1    = model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: "a", Name: "p"}
	attachment = &podmanager.Attachment{ID: podmanager.AttachmentID{ContainerID: "c1", IfName: "eth0"}}
	selected   = model.Endpoint{
		ID: model.EndpointID{Namespace: "a", Name: "web"},
		Ingress: model.Direction{Default: model.Allow, Tiers: []model.Tier{
			{Name: "first", Policies: []model.PolicyID{policy1}, Default: model.Pass}, {Name: "second", Default: model.Deny}}},
		Egress: model.Direction{Default: model.Pass},
	}
)

func TestSets(t *testing.T) {
	r, txn := newRenderer(true), values{}
	key := nb.ContivIPSetKey(setID("n-x"))
	r.PutSet(model.Set{ID: "n-x", Kind: model.Addresses, Meaning: "pods"}, txn)
	txn.want(t, key, `{"id":"`+fmtID("n-x")+`","name":"pods","kind":"NETWORKS"}`)
	r.PutSet(model.Set{ID: "n-x", Kind: model.Ports}, txn)
	txn.want(t, key, `{"id":"`+fmtID("n-x")+`","kind":"PORTS"}`)
	added, removed := netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::1/128")
	r.ChangeMembers(model.Members{Set: "n-x", Added: []model.Member{{Net: added}},
		Removed: []model.Member{{Net: removed, Protocol: model.SCTP, Port: 7}}}, txn)
	txn.want(t, nb.ContivIPSetMemberKey(setID("n-x"), "10.0.0.0/8", 0, 0), `{"set":"`+fmtID("n-x")+`","prefix":"10.0.0.0/8"}`)
	txn.want(t, nb.ContivIPSetMemberKey(setID("n-x"), "fd00::1/128", 132, 7), "deleted")
	r.DeleteSet("n-x", txn)
	txn.want(t, key, "deleted")
}

func fmtID(id model.SetID) string { return strconv.FormatUint(setID(id), 10) }

func TestPolicies(t *testing.T) {
	r, txn := newRenderer(true), values{}
	many := model.Rule{Action: model.Deny, Protocol: model.TCP}
	for port := range uint16(9) {
		many.Ports = append(many.Ports, model.PortRange{First: port, Last: port})
	}
	r.PutPolicy(model.Policy{ID: policy1,
		Ingress: []model.Rule{{Action: model.Allow, Protocol: model.UDP, Source: "x", Dest: "y", DestPort: "z"}, many},
		Egress:  []model.Rule{{Action: model.Pass}, {Action: 9}}}, txn)
	key := nb.ContivPolicyKey(policyID(policy1))
	txn.want(t, key, `{"id":"`+strconv.FormatUint(policyID(policy1), 10)+`","name":"NetworkPolicy a/p","ingress":[
		{"action":"ALLOW","protocol":17,"source":"`+fmtID("x")+`","destination":"`+fmtID("y")+`","destinationPorts":"`+fmtID("z")+`"},
		{"action":"DENY","protocol":6,"ports":[{},{"first":1,"last":1},{"first":2,"last":2},{"first":3,"last":3},{"first":4,"last":4},
			{"first":5,"last":5},{"first":6,"last":6},{"first":7,"last":7}]},
		{"action":"DENY","protocol":6,"ports":[{"first":8,"last":8}]}],
		"egress":[{"action":"PASS"},{"action":"DENY"}]}`)
	r.DeletePolicy(policy1, txn)
	txn.want(t, key, "deleted")
}

func TestEndpoints(t *testing.T) {
	for _, plugin := range []bool{true, false} {
		r, txn := newRenderer(plugin), values{}
		without := ""
		if !plugin {
			without = `,"withoutPlugin":true`
		}
		key := nb.ContivEndpointPolicyKey("tap-c1")
		r.PutEndpoint(attachment, selected, txn)
		txn.want(t, key, `{"interface":"tap-c1","name":"a/web","ingress":{"otherwise":"ALLOW","tiers":[
			{"policies":["`+strconv.FormatUint(policyID(policy1), 10)+`"],"otherwise":"PASS"},{"otherwise":"DENY"}]},"egress":{"otherwise":"DENY"}`+without+`}`)
		r.PutEndpoint(attachment, model.Closed(selected.ID), txn)
		txn.want(t, key, `{"interface":"tap-c1","name":"a/web","ingress":{"otherwise":"DENY"},"egress":{"otherwise":"DENY"}`+without+`}`)
		r.DeleteEndpoint(attachment, txn)
		txn.want(t, key, "deleted")
	}
}

// TestTiersForNode checks that only the tiers of NetworkPolicy do not apply to traffic of a pod to its own node.
func TestTiersForNode(t *testing.T) {
	var d model.Direction
	for _, tier := range model.Tiers() {
		tier.Policies = []model.PolicyID{policy1}
		d.Tiers = append(d.Tiers, tier)
	}
	d.Tiers = append(d.Tiers, model.Tier{Name: "empty", Default: model.Deny})
	for _, egress := range []bool{true, false} {
		for i, tier := range side(d, egress).Tiers {
			if want := egress && (i == 0 || i == 2); tier.HoldsForNode != want {
				t.Errorf("egress %t: tier %q holds for the node: %t", egress, d.Tiers[i].Name, tier.HoldsForNode)
			}
		}
	}
}

// TestWithoutPlugin checks that a VPP without the plugin has no sets and no policies.
func TestWithoutPlugin(t *testing.T) {
	r, txn := newRenderer(false), values{}
	r.Base(txn)
	r.PutSet(model.Set{ID: "x"}, txn)
	r.ChangeMembers(model.Members{Set: "x", Added: []model.Member{{Net: netip.MustParsePrefix("10.0.0.0/8")}}}, txn)
	r.PutPolicy(model.Policy{ID: policy1}, txn)
	if len(txn) != 0 {
		t.Errorf("%v", txn)
	}
}
