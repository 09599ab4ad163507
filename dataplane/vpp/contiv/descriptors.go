package contiv

import (
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

// Register adds the descriptors of our own plugin.
func Register(s *scheduler.Scheduler, ifs *iface.Descriptors) error {
	k := &descriptors{Kit: ifs.Kit, idx: ifs.Index(), ifs: ifs}
	return k.register(s)
}
