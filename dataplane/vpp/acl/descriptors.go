package acl

import (
	"errors"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// descriptors holds the descriptors of this package. Only the scheduler's goroutine uses it.
type descriptors struct {
	*kit.Kit
	idx *iface.Index
	ifs *iface.Descriptors
	acl aclState
}

// Descriptors holds the descriptors of ACLs. NAT44 queries it for guarded addresses.
type Descriptors = descriptors

// New returns the descriptors; Register adds them to a scheduler.
func New(ifs *iface.Descriptors) *Descriptors {
	return &descriptors{Kit: ifs.Kit, idx: ifs.Index(), ifs: ifs, acl: newACLState()}
}

// Register adds the descriptors of ACLs and of their bindings to interfaces.
func (k *descriptors) Register(s *scheduler.Scheduler) error {
	return errors.Join(scheduler.Register(s, k.aclDescriptor()), scheduler.Register(s, k.aclInterfaceDescriptor()))
}
