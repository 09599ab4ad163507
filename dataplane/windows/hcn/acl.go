package hcn

import (
	"errors"
	"strconv"

	"contiv.dev/vswitch/dataplane/windows/hns"
)

// aclSettingsOf converts a rule of version 1 to version 2, which has no IDs.
func aclSettingsOf(a hns.ACL) ACLSettings {
	s := ACLSettings{Action: string(a.Action), Direction: string(a.Direction), LocalAddresses: hns.JoinAddresses(a.LocalAddresses),
		RemoteAddresses: hns.JoinAddresses(a.RemoteAddresses), LocalPorts: hns.JoinPorts(a.LocalPorts),
		RemotePorts: hns.JoinPorts(a.RemotePorts), RuleType: string(a.RuleType), Priority: a.Priority}
	if a.Protocol != hns.AnyProtocol {
		s.Protocols = strconv.Itoa(int(a.Protocol))
	}
	return s
}

// ACLPolicies converts rules of version 1 to policies of an endpoint.
func ACLPolicies(acls []hns.ACL) ([]Policy, error) {
	list := make([]Policy, len(acls))
	var errs []error
	for i, a := range acls {
		var err error
		list[i], err = NewPolicy(TypeACL, aclSettingsOf(a))
		errs = append(errs, err)
	}
	return list, errors.Join(errs...)
}
