package vpp

import (
	"crypto/sha256"
	"encoding/binary"
	"log/slog"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
)

// portsOfRule is the maximum number of port ranges in one rule of the plugin.
const portsOfRule = 8

// Deps are the dependencies of the renderer.
type Deps struct {
	// HasPlugin reports whether the last resync was for a VPP with the plugin.
	HasPlugin func() bool
	// Interface returns the name of VPP's interface for an attachment.
	Interface func(a *podmanager.Attachment) string
	Log       *slog.Logger
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

// number returns the plugin's ID for a name; 0 means that there is none.
func number(name string) uint64 {
	if name == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(name))
	return max(binary.BigEndian.Uint64(sum[:8]), 1)
}

func setID(id model.SetID) uint64 { return number(string(id)) }

func policyID(id model.PolicyID) uint64 { return number("policy " + id.String()) }

// Base implements renderer.Renderer: there are no common values.
func (r Renderer) Base(renderer.Txn) {}

// PutSet implements renderer.Renderer.
func (r Renderer) PutSet(s model.Set, txn renderer.Txn) {
	if !r.HasPlugin() {
		return
	}
	kind := vpp_contiv.IPSet_NETWORKS
	if s.Kind == model.Ports {
		kind = vpp_contiv.IPSet_PORTS
	}
	r.put(txn, &vpp_contiv.IPSet{Id: setID(s.ID), Name: s.Meaning, Kind: kind})
}

// DeleteSet implements renderer.Renderer.
func (r Renderer) DeleteSet(id model.SetID, txn renderer.Txn) {
	txn.Delete(nb.ContivIPSetKey(setID(id)))
}

// ChangeMembers implements renderer.Renderer.
func (r Renderer) ChangeMembers(m model.Members, txn renderer.Txn) {
	if !r.HasPlugin() {
		return
	}
	set := setID(m.Set)
	for _, member := range m.Removed {
		txn.Delete(nb.ContivIPSetMemberKey(set, member.Net.String(), uint32(member.Protocol), uint32(member.Port)))
	}
	for _, member := range m.Added {
		r.put(txn, &vpp_contiv.IPSetMember{
			Set: set, Prefix: member.Net.String(), Protocol: uint32(member.Protocol), Port: uint32(member.Port),
		})
	}
}

// PutPolicy implements renderer.Renderer.
func (r Renderer) PutPolicy(p model.Policy, txn renderer.Txn) {
	if r.HasPlugin() {
		m := &vpp_contiv.Policy{Id: policyID(p.ID), Name: p.ID.String(), Ingress: rules(p.Ingress), Egress: rules(p.Egress)}
		r.fitRules(p.ID, m)
		r.put(txn, m)
	}
}

// DeletePolicy implements renderer.Renderer.
func (r Renderer) DeletePolicy(id model.PolicyID, txn renderer.Txn) {
	txn.Delete(nb.ContivPolicyKey(policyID(id)))
}

// rules splits rules that have more port ranges than fit into one rule.
func rules(list []model.Rule) (out []*vpp_contiv.Policy_Rule) {
	for _, rule := range list {
		ports := rule.Ports
		for first := true; first || len(ports) > 0; first = false {
			n := min(len(ports), portsOfRule)
			m := &vpp_contiv.Policy_Rule{
				Action: action(rule.Action), Protocol: uint32(rule.Protocol),
				Source: setID(rule.Source), Destination: setID(rule.Dest), DestinationPorts: setID(rule.DestPort),
			}
			for _, p := range ports[:n] {
				m.Ports = append(m.Ports, &vpp_contiv.Policy_PortRange{First: uint32(p.First), Last: uint32(p.Last)})
			}
			out, ports = append(out, m), ports[n:]
		}
	}
	return out
}

// action returns the plugin's action; unknown actions deny.
func action(a model.Action) vpp_contiv.Policy_Action {
	switch a {
	case model.Allow:
		return vpp_contiv.Policy_ALLOW
	case model.Pass:
		return vpp_contiv.Policy_PASS
	}
	return vpp_contiv.Policy_DENY
}

// PutEndpoint implements renderer.Renderer.
func (r Renderer) PutEndpoint(a *podmanager.Attachment, e model.Endpoint, txn renderer.Txn) {
	m := &vpp_contiv.EndpointPolicy{
		Interface: r.Interface(a), Name: e.ID.String(), Ingress: side(e.Ingress, false), Egress: side(e.Egress, true), WithoutPlugin: !r.HasPlugin(),
	}
	for _, s := range []*vpp_contiv.EndpointPolicy_Side{m.Ingress, m.Egress} {
		if fitTiers(s) {
			r.Log.Warn("more policies select a pod than VPP has room for; the last ones allow nothing", "pod", e.ID.String(), "limit", nb.ContivPolicyItems)
		}
	}
	r.put(txn, m)
}

// DeleteEndpoint implements renderer.Renderer.
func (r Renderer) DeleteEndpoint(a *podmanager.Attachment, txn renderer.Txn) {
	txn.Delete(nb.ContivEndpointPolicyKey(r.Interface(a)))
}

// side returns the plugin's form of a direction. The default of all tiers cannot be Pass. HoldsForNode is false for a tier without
// policies.
func side(d model.Direction, egress bool) *vpp_contiv.EndpointPolicy_Side {
	s := &vpp_contiv.EndpointPolicy_Side{Otherwise: vpp_contiv.Policy_DENY}
	if d.Default == model.Allow {
		s.Otherwise = vpp_contiv.Policy_ALLOW
	}
	for _, t := range d.Tiers {
		tier := &vpp_contiv.EndpointPolicy_Tier{Otherwise: action(t.Default), HoldsForNode: egress && !t.AllowsNode && len(t.Policies) > 0}
		for _, id := range t.Policies {
			tier.Policies = append(tier.Policies, policyID(id))
		}
		s.Tiers = append(s.Tiers, tier)
	}
	return s
}
