package policyname

import (
	"cmp"
	"fmt"

	"contiv.dev/vswitch/dataplane/proto"
)

// DefaultTier is the tier of policies that do not specify one.
const DefaultTier = "default"

// Key is the tier and name by which endpoints refer to a policy.
type Key struct{ Tier, Name string }

// ID identifies a policy as it was announced.
type ID struct{ Tier, Name, Namespace, Kind string }

// Names holds the policies that have been announced.
type Names struct {
	tiers map[ID]string // the announced tier of a policy: a removal may lack it
	named map[Key]holders
}

// holders holds the policies that have a name: usually one.
type holders struct {
	id      ID
	policy  *proto.Policy        // nil if there are several
	several map[ID]*proto.Policy // nil if there is one
}

func (h *holders) count() int {
	if h.policy != nil {
		return 1
	}
	return len(h.several)
}

// put adds or replaces a policy; nil removes it.
func (h *holders) put(id ID, policy *proto.Policy) {
	switch {
	case h.several != nil:
		if h.several[id] = policy; policy == nil {
			delete(h.several, id)
		}
		if len(h.several) == 1 {
			for h.id, h.policy = range h.several {
				h.several = nil
			}
		}
	case h.policy == nil || h.id == id:
		h.id, h.policy = id, policy
	case policy != nil:
		h.several = map[ID]*proto.Policy{h.id: h.policy, id: policy}
		h.policy = nil
	}
}

// New returns Names without policies.
func New() *Names {
	return &Names{tiers: map[ID]string{}, named: map[Key]holders{}}
}

func idOf(id *proto.PolicyID) ID {
	return ID{Tier: id.GetTier(), Name: id.GetName(), Namespace: id.GetNamespace(), Kind: id.GetKind()}
}

// Update adds or replaces a policy. For each affected name it calls changed with the policy to which the name now resolves; nil: no policy, or
// several.
func (n *Names) Update(id *proto.PolicyID, policy *proto.Policy, changed func(Key, *proto.Policy)) {
	of, tier := idOf(id), cmp.Or(id.GetTier(), policy.GetTier(), DefaultTier)
	if before, had := n.tiers[of]; had && before != tier {
		n.set(Key{before, of.Name}, of, nil, changed)
	}
	n.tiers[of] = tier
	n.set(Key{tier, of.Name}, of, cmp.Or(policy, &proto.Policy{}), changed)
}

// Remove removes a policy and calls changed as Update does. It returns false for a policy that was not announced.
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
	all.put(of, policy)
	if n.named[key] = all; all.count() == 0 {
		delete(n.named, key)
	}
	changed(key, all.policy)
}

// Ambiguous returns, for messages, the reason why a name that several policies have resolves to none; "" if the name is not ambiguous.
func (n *Names) Ambiguous(key Key) string {
	all := n.named[key]
	if count := all.count(); count > 1 {
		return fmt.Sprintf("%d policies of several namespaces or kinds have this tier and name", count)
	}
	return ""
}
