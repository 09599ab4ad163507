package l2

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
}

// Register adds the kinds of bridge domains, their members, L2 FIB entries and cross-connects.
func Register(s *scheduler.Scheduler, ifs *iface.Kinds) error {
	k := &kinds{Kit: ifs.Kit, idx: ifs.Index(), ifs: ifs}
	return errors.Join(
		scheduler.Register(s, k.bridgeKind()),
		scheduler.Register(s, k.memberKind()),
		scheduler.Register(s, k.bridgeARPKind()),
		scheduler.Register(s, k.xconnectKind()),
		scheduler.Register(s, k.fibKind()),
	)
}
