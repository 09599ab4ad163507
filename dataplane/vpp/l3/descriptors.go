package l3

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
	// held maps the tables that this agent has added to this VPP (true) or deleted (false); see tableDescriptor.
	held map[tableID]bool
}

// Register adds the descriptors of tables, routes, neighbours and proxy ARP.
func Register(s *scheduler.Scheduler, ifs *iface.Descriptors) error {
	k := &descriptors{Kit: ifs.Kit, idx: ifs.Index(), ifs: ifs, held: map[tableID]bool{}}
	k.OnBoot(func() { clear(k.held) })
	return errors.Join(
		scheduler.Register(s, k.tableDescriptor()),
		scheduler.Register(s, k.neighbourDescriptor()),
		scheduler.Register(s, k.proxyARPDescriptor()),
		scheduler.Register(s, k.proxyIfDescriptor()),
		scheduler.Register(s, k.proxyRangeDescriptor()),
		scheduler.Register(s, k.scanDescriptor()),
		scheduler.Register(s, k.routeDescriptor()),
	)
}
