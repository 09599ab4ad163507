package acl

import (
	"errors"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// kinds are the descriptors of this package. All of it belongs to the scheduler's goroutine.
type kinds struct {
	*kit.Kit
	idx *iface.Index
	ifs *iface.Kinds
	acl aclState
}

// Kinds are the descriptors of ACLs. NAT44 asks them which addresses are guarded.
type Kinds = kinds

// New returns the descriptors; Register adds them to a scheduler.
func New(ifs *iface.Kinds) *Kinds {
	return &kinds{Kit: ifs.Kit, idx: ifs.Index(), ifs: ifs, acl: newACLState()}
}

// Register adds the kinds of ACLs and of their bindings to interfaces.
func (k *kinds) Register(s *scheduler.Scheduler) error {
	return errors.Join(scheduler.Register(s, k.aclKind()), scheduler.Register(s, k.aclInterfaceKind()))
}
