package linux

import (
	"fmt"
	"log/slog"
	"strings"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
)

// The profiles apply to an endpoint when no tier has decided. An endpoint without a profile is closed.
const (
	allowAll     = "contiv-allow"
	allowIngress = "contiv-allow-ingress"
	allowEgress  = "contiv-allow-egress"
)

// Deps are the dependencies of the renderer.
type Deps struct {
	// EndpointID returns the ID of an attachment, as in the values that connect it.
	EndpointID func(a *podmanager.Attachment) *proto.WorkloadEndpointID
	Log        *slog.Logger
}

// Renderer implements renderer.Renderer.
type Renderer struct{ Deps }

var _ renderer.Renderer = Renderer{}

// New returns a renderer.
func New(deps Deps) Renderer { return Renderer{deps} }

func (r Renderer) put(txn renderer.Txn, m pb.Message) {
	if key, err := nb.Key(m); err != nil {
		r.Log.Error("a policy object has no usable name and is not enforced; what refers to it stays closed", "error", err)
	} else {
		txn.Put(key, m)
	}
}

func (r Renderer) delete(txn renderer.Txn, m pb.Message) {
	if key, err := nb.Key(m); err == nil {
		txn.Delete(key)
	}
}

// Base implements renderer.Renderer.
func (r Renderer) Base(txn renderer.Txn) {
	anything := []*proto.Rule{{Action: "allow"}}
	r.put(txn, &proto.ActiveProfileUpdate{Id: &proto.ProfileID{Name: allowAll},
		Profile: &proto.Profile{InboundRules: anything, OutboundRules: anything}})
	r.put(txn, &proto.ActiveProfileUpdate{Id: &proto.ProfileID{Name: allowIngress}, Profile: &proto.Profile{InboundRules: anything}})
	r.put(txn, &proto.ActiveProfileUpdate{Id: &proto.ProfileID{Name: allowEgress}, Profile: &proto.Profile{OutboundRules: anything}})
}

// PutSet implements renderer.Renderer.
func (r Renderer) PutSet(s model.Set, txn renderer.Txn) {
	r.put(txn, &proto.IPSetUpdate{Id: string(s.ID), Type: setType(s.Kind)})
}

func setType(k model.SetKind) proto.IPSetUpdate_IPSetType {
	switch k {
	case model.Addresses:
		return proto.IPSetUpdate_IP
	case model.Ports:
		return proto.IPSetUpdate_IP_AND_PORT
	}
	return proto.IPSetUpdate_NET
}

// DeleteSet implements renderer.Renderer.
func (r Renderer) DeleteSet(id model.SetID, txn renderer.Txn) {
	r.delete(txn, &proto.IPSetUpdate{Id: string(id)})
}

// ChangeMembers implements renderer.Renderer.
func (r Renderer) ChangeMembers(m model.Members, txn renderer.Txn) {
	for _, member := range m.Removed {
		r.delete(txn, &proto.IPSetMember{SetId: string(m.Set), Member: text(member)})
	}
	for _, member := range m.Added {
		r.put(txn, &proto.IPSetMember{SetId: string(m.Set), Member: text(member)})
	}
}

// text returns a member in the driver's format.
func text(m model.Member) string {
	switch {
	case m.Port != 0:
		return fmt.Sprintf("%s,%s:%d", m.Net.Addr(), strings.ToLower(m.Protocol.String()), m.Port)
	case m.Net.IsSingleIP():
		return m.Net.Addr().String()
	}
	return m.Net.String()
}

func policyID(id model.PolicyID) *proto.PolicyID {
	return &proto.PolicyID{Tier: model.TierOf(id.Kind), Name: policyName(id)}
}

func policyName(id model.PolicyID) string { return id.Kind + "/" + id.Namespace + "/" + id.Name }

// PutPolicy implements renderer.Renderer.
func (r Renderer) PutPolicy(p model.Policy, txn renderer.Txn) {
	r.put(txn, &proto.ActivePolicyUpdate{Id: policyID(p.ID), Policy: &proto.Policy{
		InboundRules: rules(p.ID, p.Ingress), OutboundRules: rules(p.ID, p.Egress)}})
}

// DeletePolicy implements renderer.Renderer.
func (r Renderer) DeletePolicy(id model.PolicyID, txn renderer.Txn) {
	r.delete(txn, &proto.ActivePolicyUpdate{Id: policyID(id)})
}

func rules(id model.PolicyID, list []model.Rule) []*proto.Rule {
	out := make([]*proto.Rule, len(list))
	for i, r := range list {
		m := &proto.Rule{Action: r.Action.String(), RuleId: ruleID(id, r.Origin)}
		if r.Protocol != model.AnyProtocol {
			m.Protocol = &proto.Protocol{NumberOrName: &proto.Protocol_Number{Number: int32(r.Protocol)}}
		}
		for _, p := range r.Ports {
			m.DstPorts = append(m.DstPorts, &proto.PortRange{First: int32(p.First), Last: int32(p.Last)})
		}
		m.SrcIpSetIds, m.DstIpSetIds, m.DstNamedPortIpSetIds = ids(r.Source), ids(r.Dest), ids(r.DestPort)
		out[i] = m
	}
	return out
}

// ruleID returns the ID of a rule. It begins with the part in which the rules of a policy differ: comments in the kernel contain only its
// first characters.
func ruleID(id model.PolicyID, origin string) string { return origin + " of " + id.Path() }

func ids(id model.SetID) []string {
	if id == "" {
		return nil
	}
	return []string{string(id)}
}

// PutEndpoint implements renderer.Renderer.
func (r Renderer) PutEndpoint(a *podmanager.Attachment, e model.Endpoint, txn renderer.Txn) {
	r.put(txn, &proto.WorkloadPolicy{Id: r.EndpointID(a), Tiers: tiers(e), ProfileIds: profiles(e)})
}

// DeleteEndpoint implements renderer.Renderer.
func (r Renderer) DeleteEndpoint(a *podmanager.Attachment, txn renderer.Txn) {
	r.delete(txn, &proto.WorkloadPolicy{Id: r.EndpointID(a)})
}

// tiers joins the tiers of both directions in the order of package model.
func tiers(e model.Endpoint) []*proto.TierInfo {
	byName := map[string]*proto.TierInfo{}
	add := func(t model.Tier) *proto.TierInfo {
		if byName[t.Name] == nil {
			byName[t.Name] = &proto.TierInfo{Name: t.Name, DefaultAction: t.Default.String()}
		}
		return byName[t.Name]
	}
	for _, t := range e.Ingress.Tiers {
		add(t).IngressPolicies = names(t.Policies)
	}
	for _, t := range e.Egress.Tiers {
		add(t).EgressPolicies = names(t.Policies)
	}
	var out []*proto.TierInfo
	for _, tier := range model.Tiers() {
		if t := byName[tier.Name]; t != nil {
			out = append(out, t)
		}
	}
	return out
}

func names(list []model.PolicyID) []string {
	out := make([]string, len(list))
	for i, id := range list {
		out[i] = policyName(id)
	}
	return out
}

func profiles(e model.Endpoint) []string {
	switch in, out := e.Ingress.Default == model.Allow, e.Egress.Default == model.Allow; {
	case in && out:
		return []string{allowAll}
	case in:
		return []string{allowIngress}
	case out:
		return []string{allowEgress}
	}
	return nil
}
