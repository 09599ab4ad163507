package nat44

import (
	"errors"
	"net/netip"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// descriptors holds the descriptors of this package. Only the scheduler's goroutine uses it.
type descriptors struct {
	*kit.Kit
	idx      *iface.Index
	ifs      *iface.Descriptors
	guard    Guard
	settings Settings
	nat      natState
}

// Guard reports whether an address that an ACL guards may be served.
type Guard interface {
	// Guarded returns an error if the ACL does not guard the address and port yet, nil if it does.
	Guarded(acl string, address netip.AddrPort, proto uint8) error
	// Unguarded returns an error that names an ACL which the interface should have and does not have, nil if
	// it has all.
	Unguarded(ifName string) error
}

// Register adds the descriptors of NAT44.
func Register(s *scheduler.Scheduler, ifs *iface.Descriptors, guard Guard, settings Settings) error {
	settings.setDefaults()
	k := &descriptors{
		Kit: ifs.Kit, idx: ifs.Index(), ifs: ifs, guard: guard, settings: settings,
		nat: natState{places: map[string][]natBackend{}, inAndOut: map[string]bool{}},
	}
	return errors.Join(
		scheduler.Register(s, k.natGlobalDescriptor()),
		scheduler.Register(s, k.natTimeoutsDescriptor()),
		scheduler.Register(s, k.natInterfaceDescriptor()),
		scheduler.Register(s, k.natPoolDescriptor()),
		scheduler.Register(s, k.natAddressDescriptor()),
		scheduler.Register(s, k.dnatDescriptor()),
		scheduler.Register(s, k.natMappingDescriptor()),
		scheduler.Register(s, k.natIdentityDescriptor()),
	)
}
