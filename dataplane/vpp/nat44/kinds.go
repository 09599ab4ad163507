package nat44

import (
	"errors"
	"net/netip"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// kinds are the descriptors of this package. All of it belongs to the scheduler's goroutine.
type kinds struct {
	*kit.Kit
	idx      *iface.Index
	ifs      *iface.Kinds
	guard    Guard
	settings Settings
	nat      natState
}

// Guard reports what is missing until an address may be served that an ACL guards.
type Guard interface {
	// Guarded returns why an ACL does not guard an address and port yet, nil if it does.
	Guarded(acl string, address netip.AddrPort, proto uint8) error
	// Unguarded returns which ACL an interface should have and does not, nil if it has all.
	Unguarded(ifName string) error
}

// Register adds the kinds of NAT44.
func Register(s *scheduler.Scheduler, ifs *iface.Kinds, guard Guard, settings Settings) error {
	settings.setDefaults()
	k := &kinds{
		Kit: ifs.Kit, idx: ifs.Index(), ifs: ifs, guard: guard, settings: settings,
		nat: natState{places: map[string][]natBackend{}, inAndOut: map[string]bool{}},
	}
	return errors.Join(
		scheduler.Register(s, k.natGlobalKind()),
		scheduler.Register(s, k.natTimeoutsKind()),
		scheduler.Register(s, k.natInterfaceKind()),
		scheduler.Register(s, k.natPoolKind()),
		scheduler.Register(s, k.natAddressKind()),
		scheduler.Register(s, k.dnatKind()),
		scheduler.Register(s, k.natMappingKind()),
		scheduler.Register(s, k.natIdentityKind()),
	)
}
