package contiv

import (
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

// Register adds the kinds of our own plugin.
func Register(s *scheduler.Scheduler, ifs *iface.Kinds) error {
	k := &kinds{Kit: ifs.Kit, idx: ifs.Index(), ifs: ifs}
	return k.register(s)
}
