package l2

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
}

// Register adds the descriptors of bridge domains, their members, L2 FIB entries and cross-connects.
func Register(s *scheduler.Scheduler, ifs *iface.Descriptors) error {
	k := &descriptors{Kit: ifs.Kit, idx: ifs.Index(), ifs: ifs}
	return errors.Join(
		scheduler.Register(s, k.bridgeDescriptor()),
		scheduler.Register(s, k.memberDescriptor()),
		scheduler.Register(s, k.bridgeARPDescriptor()),
		scheduler.Register(s, k.xconnectDescriptor()),
		scheduler.Register(s, k.fibDescriptor()),
	)
}
