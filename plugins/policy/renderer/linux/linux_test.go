package linux

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/proto"
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

const prefix = "config/contiv/driver/v1/"

func newRenderer() Renderer {
	return New(Deps{Log: slog.New(slog.DiscardHandler), EndpointID: func(a *podmanager.Attachment) *proto.WorkloadEndpointID {
		return &proto.WorkloadEndpointID{OrchestratorId: "contiv", WorkloadId: a.Pod.String(), EndpointId: a.ID.ContainerID}
	}})
}

func TestSets(t *testing.T) {
	r, txn := newRenderer(), values{}
	for kind, typ := range map[model.SetKind]string{model.Networks: "NET", model.Addresses: "IP", model.Ports: "IP_AND_PORT"} {
		r.PutSet(model.Set{ID: "s", Kind: kind}, txn)
		txn.want(t, prefix+"ip-set/s", fmt.Sprintf(`{"id":"s","type":%q}`, typ))
	}
	r.ChangeMembers(model.Members{Set: "s",
		Added: []model.Member{{Net: netip.MustParsePrefix("10.0.0.0/8")}, {Net: netip.MustParsePrefix("fd00::1/128")},
			{Net: netip.MustParsePrefix("10.0.0.1/32"), Protocol: model.SCTP, Port: 7}},
		Removed: []model.Member{{Net: netip.MustParsePrefix("10.0.0.2/32")}}}, txn)
	txn.want(t, prefix+"ip-set-member/s/10.0.0.0/8", `{"setId":"s","member":"10.0.0.0/8"}`)
	txn.want(t, prefix+"ip-set-member/s/fd00::1", `{"setId":"s","member":"fd00::1"}`)
	txn.want(t, prefix+"ip-set-member/s/10.0.0.1,sctp:7", `{"setId":"s","member":"10.0.0.1,sctp:7"}`)
	txn.want(t, prefix+"ip-set-member/s/10.0.0.2", "deleted")
	r.DeleteSet("s", txn)
	txn.want(t, prefix+"ip-set/s", "deleted")
}

func TestPolicies(t *testing.T) {
	r, txn := newRenderer(), values{}
	id := model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: "a", Name: "p"}
	r.PutPolicy(model.Policy{ID: id,
		Ingress: []model.Rule{{Action: model.Allow, Protocol: model.TCP, Source: "x", Ports: []model.PortRange{{First: 80, Last: 90}}, Origin: "ingress[0]"},
			{Action: model.Deny}},
		Egress: []model.Rule{{Action: model.Pass, Protocol: model.UDP, Dest: "y", DestPort: "z", Origin: "egress[1]"}}}, txn)
	const key = prefix + "policy/networkpolicy/NetworkPolicy/a/p"
	txn.want(t, key, `{"id":{"tier":"networkpolicy","name":"NetworkPolicy/a/p"},"policy":{
		"inboundRules":[{"action":"allow","protocol":{"number":6},"srcIpSetIds":["x"],"dstPorts":[{"first":80,"last":90}],"ruleId":"ingress[0] of a/p"},
			{"action":"deny","ruleId":" of a/p"}],
		"outboundRules":[{"action":"pass","protocol":{"number":17},"dstIpSetIds":["y"],"dstNamedPortIpSetIds":["z"],"ruleId":"egress[1] of a/p"}]}}`)
	r.DeletePolicy(id, txn)
	txn.want(t, key, "deleted")
}

func TestEndpoints(t *testing.T) {
	r, txn := newRenderer(), values{}
	a := &podmanager.Attachment{ID: podmanager.AttachmentID{ContainerID: "c", IfName: "eth0"}, Pod: podmanager.PodID{Namespace: "a", Name: "web"}}
	const key = prefix + "workload-policy/contiv/a/web/c"
	const id = `{"orchestratorId":"contiv","workloadId":"a/web","endpointId":"c"}`
	open, tier := model.Direction{Default: model.Allow}, func(names ...string) model.Direction {
		d := model.Direction{Default: model.Allow, Tiers: []model.Tier{{Name: model.TierNetworkPolicy, Default: model.Deny}}}
		for _, n := range names {
			d.Tiers[0].Policies = append(d.Tiers[0].Policies, model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: "a", Name: n})
		}
		return d
	}
	for _, test := range []struct {
		name            string
		ingress, egress model.Direction
		want            string
	}{
		{"open", open, open, `,"profileIds":["contiv-allow"]`},
		{"closed", model.Direction{}, model.Direction{}, ``},
		{"closed in one direction", open, model.Direction{}, `,"profileIds":["contiv-allow-ingress"]`},
		{"closed in the other", model.Direction{}, open, `,"profileIds":["contiv-allow-egress"]`},
		{"policies in both", tier("p", "q"), tier("q"), `,"profileIds":["contiv-allow"],"tiers":[{"name":"networkpolicy","defaultAction":"deny",
			"ingressPolicies":["NetworkPolicy/a/p","NetworkPolicy/a/q"],"egressPolicies":["NetworkPolicy/a/q"]}]`},
		{"policies in egress", open, tier("q"), `,"profileIds":["contiv-allow"],"tiers":[{"name":"networkpolicy","defaultAction":"deny",
			"egressPolicies":["NetworkPolicy/a/q"]}]`},
		{"tiers of one direction each", directions(model.TierNetworkPolicy, model.TierBaseline), directions(model.TierAdmin, model.TierNetworkPolicy),
			`,"profileIds":["contiv-allow"],"tiers":[{"name":"admin","defaultAction":"pass","egressPolicies":["K//admin"]},
			{"name":"networkpolicy","defaultAction":"pass","ingressPolicies":["K//networkpolicy"],"egressPolicies":["K//networkpolicy"]},
			{"name":"baseline","defaultAction":"pass","ingressPolicies":["K//baseline"]}]`},
	} {
		r.PutEndpoint(a, model.Endpoint{Ingress: test.ingress, Egress: test.egress}, txn)
		t.Log(test.name)
		txn.want(t, key, `{"id":`+id+test.want+`}`)
	}
	r.DeleteEndpoint(a, txn)
	txn.want(t, key, "deleted")
}

func directions(tiers ...string) model.Direction {
	d := model.Direction{Default: model.Allow}
	for _, name := range tiers {
		d.Tiers = append(d.Tiers, model.Tier{Name: name, Default: model.Pass, Policies: []model.PolicyID{{Kind: "K", Name: name}}})
	}
	return d
}

// TestBase checks that a profile allows only the direction in its name.
func TestBase(t *testing.T) {
	txn := values{}
	newRenderer().Base(txn)
	for name, rules := range map[string]string{"contiv-allow": `"inboundRules":[{"action":"allow"}],"outboundRules":[{"action":"allow"}]`,
		"contiv-allow-ingress": `"inboundRules":[{"action":"allow"}]`, "contiv-allow-egress": `"outboundRules":[{"action":"allow"}]`} {
		txn.want(t, prefix+"profile/"+name, `{"id":{"name":"`+name+`"},"profile":{`+rules+`}}`)
	}
}
