package l3

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
	// held are the tables that this agent has added to this VPP (true) or deleted (false); see tableKind.
	held map[tableID]bool
}

// Register adds the kinds of tables, routes, neighbours and proxy ARP.
func Register(s *scheduler.Scheduler, ifs *iface.Kinds) error {
	k := &kinds{Kit: ifs.Kit, idx: ifs.Index(), ifs: ifs, held: map[tableID]bool{}}
	k.OnBoot(func() { clear(k.held) })
	return errors.Join(
		scheduler.Register(s, k.tableKind()),
		scheduler.Register(s, k.neighbourKind()),
		scheduler.Register(s, k.proxyARPKind()),
		scheduler.Register(s, k.proxyIfKind()),
		scheduler.Register(s, k.proxyRangeKind()),
		scheduler.Register(s, k.scanKind()),
		scheduler.Register(s, k.routeKind()),
	)
}
