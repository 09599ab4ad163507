package windataplane

import "contiv.dev/vswitch/dataplane/proto"

// IPSets is the driver's cache of IP sets, for registered managers (RegisterManager). Its methods may be called only in OnUpdate and
// CompleteDeferredWork of a manager, which run in the loop. Changes are written in the same pass. A set's ID must not be one of the
// datastore's.
type IPSets struct{ d *WindowsDataplane }

// IPSets returns the driver's IP sets; nil if the driver does not work.
func (d *WindowsDataplane) IPSets() *IPSets {
	if d.loop == nil {
		return nil
	}
	return &IPSets{d}
}

// AddOrReplaceIPSet makes a set, or replaces its members.
func (s *IPSets) AddOrReplaceIPSet(id string, kind proto.IPSetUpdate_IPSetType, members []string) {
	s.d.sets.OnUpdate(&proto.IPSetUpdate{Id: id, Type: kind, Members: members})
}

// AddMembers adds members to a set.
func (s *IPSets) AddMembers(id string, members []string) {
	s.d.sets.OnUpdate(&proto.IPSetDeltaUpdate{Id: id, AddedMembers: members})
}

// RemoveMembers removes members from a set.
func (s *IPSets) RemoveMembers(id string, members []string) {
	s.d.sets.OnUpdate(&proto.IPSetDeltaUpdate{Id: id, RemovedMembers: members})
}

// RemoveIPSet removes a set.
func (s *IPSets) RemoveIPSet(id string) { s.d.sets.OnUpdate(&proto.IPSetRemove{Id: id}) }

// PolicySets is the driver's cache of policies and profiles, for registered managers, under the same conditions as IPSets.
type PolicySets struct{ d *WindowsDataplane }

// PolicySets returns the driver's policies and profiles; nil if the driver does not work.
func (d *WindowsDataplane) PolicySets() *PolicySets {
	if d.loop == nil {
		return nil
	}
	return &PolicySets{d}
}

// AddOrReplacePolicy makes a policy, or replaces its rules.
func (s *PolicySets) AddOrReplacePolicy(id *proto.PolicyID, policy *proto.Policy) {
	s.d.policies.OnUpdate(&proto.ActivePolicyUpdate{Id: id, Policy: policy})
}

// RemovePolicy removes a policy. Endpoints that still refer to it are closed.
func (s *PolicySets) RemovePolicy(id *proto.PolicyID) {
	s.d.policies.OnUpdate(&proto.ActivePolicyRemove{Id: id})
}

// AddOrReplaceProfile makes a profile, or replaces its rules.
func (s *PolicySets) AddOrReplaceProfile(name string, profile *proto.Profile) {
	s.d.policies.OnUpdate(&proto.ActiveProfileUpdate{Id: &proto.ProfileID{Name: name}, Profile: profile})
}

// RemoveProfile removes a profile. Endpoints that still refer to it are closed.
func (s *PolicySets) RemoveProfile(name string) {
	s.d.policies.OnUpdate(&proto.ActiveProfileRemove{Id: &proto.ProfileID{Name: name}})
}
