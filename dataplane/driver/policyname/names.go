package policyname

import (
	"cmp"
	"fmt"

	"contiv.dev/vswitch/dataplane/proto"
)

// DefaultTier is the tier of policies that do not say otherwise.
const DefaultTier = "default"

// Key is what endpoints refer to.
type Key struct{ Tier, Name string }

// ID is a policy as it was announced.
type ID struct{ Tier, Name, Namespace, Kind string }

// Names are the policies that have been announced.
type Names struct {
	tiers map[ID]string // a removal may lack the tier
	named map[Key]map[ID]*proto.Policy
}

// New is without policies.
func New() *Names {
	return &Names{tiers: map[ID]string{}, named: map[Key]map[ID]*proto.Policy{}}
}

func idOf(id *proto.PolicyID) ID {
	return ID{Tier: id.GetTier(), Name: id.GetName(), Namespace: id.GetNamespace(), Kind: id.GetKind()}
}

// Update takes a policy. It calls changed with what each name that is concerned stands for afterwards; nil: no policy, or several.
func (n *Names) Update(id *proto.PolicyID, policy *proto.Policy, changed func(Key, *proto.Policy)) {
	of, tier := idOf(id), cmp.Or(id.GetTier(), policy.GetTier(), DefaultTier)
	if before, had := n.tiers[of]; had && before != tier {
		n.set(Key{before, of.Name}, of, nil, changed)
	}
	n.tiers[of] = tier
	n.set(Key{tier, of.Name}, of, cmp.Or(policy, &proto.Policy{}), changed)
}

// Remove takes the removal of a policy, as Update does. It is false for a policy that was not announced.
func (n *Names) Remove(id *proto.PolicyID, changed func(Key, *proto.Policy)) bool {
	of := idOf(id)
	tier, announced := n.tiers[of]
	if announced {
		delete(n.tiers, of)
		n.set(Key{tier, of.Name}, of, nil, changed)
	}
	return announced
}

func (n *Names) set(key Key, of ID, policy *proto.Policy, changed func(Key, *proto.Policy)) {
	all := n.named[key]
	if all == nil {
		all = map[ID]*proto.Policy{}
		n.named[key] = all
	}
	if all[of] = policy; policy == nil {
		delete(all, of)
	}
	if len(all) == 0 {
		delete(n.named, key)
	}
	if len(all) != 1 {
		changed(key, nil)
		return
	}
	for _, p := range all {
		changed(key, p)
	}
}

// Ambiguous says why a name stands for no policy although several have it, for messages; "": it does not.
func (n *Names) Ambiguous(key Key) string {
	if count := len(n.named[key]); count > 1 {
		return fmt.Sprintf("%d policies of several namespaces or kinds have this tier and name", count)
	}
	return ""
}
