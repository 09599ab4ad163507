package iface

import (
	"errors"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// Kinds are the descriptors of interfaces and their items. Other features look interfaces up in its Index and Snapshot. All of
// it belongs to the scheduler's goroutine.
type Kinds struct {
	*kit.Kit
	deps  Deps
	idx   *Index
	types map[ifKind]*ifType
	snap  snapshots
	// sockets are the memif sockets whose numbers are being asked for.
	sockets map[string]socketWait
	// uncertain are the interfaces that VPP may have without their tag, by name; see leftovers.go.
	uncertain map[string]suspect
}

// New returns the descriptors; Register adds them to a scheduler.
func New(k *kit.Kit, idx *Index, deps Deps) *Kinds {
	if deps.AfPacket == (AfPacketRings{}) {
		deps.AfPacket = DefaultAfPacketRings()
	}
	kinds := &Kinds{Kit: k, deps: deps, idx: idx, types: ifTypes(), sockets: map[string]socketWait{}, uncertain: map[string]suspect{}}
	k.OnWrite(kinds.snap.forget)
	k.OnBoot(idx.clear)
	return kinds
}

// Index is where the descriptors enter the interfaces and bridge domains that VPP has.
func (k *Kinds) Index() *Index { return k.idx }

// Register adds the kinds of interfaces and of their items.
func (k *Kinds) Register(s *scheduler.Scheduler) error {
	return errors.Join(
		scheduler.Register(s, k.interfaceKind()),
		scheduler.Register(s, k.ifTableKind()),
		scheduler.Register(s, k.ifPlaceKind()),
		scheduler.Register(s, k.ifAddressKind()),
		scheduler.Register(s, k.ifHasIPKind()),
		scheduler.Register(s, k.ifUnnumberedKind()),
		scheduler.Register(s, k.ifMTUKind()),
		scheduler.Register(s, k.ifRxModesKind()),
		scheduler.Register(s, k.ifPlacementKind()),
		scheduler.Register(s, k.ifDHCPKind()),
		scheduler.Register(s, k.ifUpKind()),
	)
}
