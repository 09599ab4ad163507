package iface

import (
	"errors"
	"log/slog"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// Descriptors holds the descriptors of interfaces and their items. Other features look up interfaces in its Index and Snapshot. Only
// the scheduler's goroutine uses it.
type Descriptors struct {
	*kit.Kit
	deps  Deps
	idx   *Index
	types map[ifKind]*ifType
	snap  snapshots
	// sockets maps the memif sockets whose number was requested to the waiting callbacks.
	sockets map[string]socketWait
	// uncertain holds the interfaces that VPP may have without their tag, by name; see leftovers.go.
	uncertain map[string]suspect
}

// New returns the descriptors, which send their requests on lane; Register adds them to a scheduler. The descriptors of other features share
// their Kit.
func New(lane *conn.Lane, log *slog.Logger, idx *Index, deps Deps) *Descriptors {
	k := kit.New(lane, log)
	if deps.AfPacket == (AfPacketRings{}) {
		deps.AfPacket = DefaultAfPacketRings()
	}
	kinds := &Descriptors{Kit: k, deps: deps, idx: idx, types: ifTypes(), sockets: map[string]socketWait{}, uncertain: map[string]suspect{}}
	k.OnWrite(kinds.snap.invalidate)
	k.OnBoot(idx.clear)
	return kinds
}

// Index returns the index of the interfaces and bridge domains that VPP has; the descriptors maintain it.
func (k *Descriptors) Index() *Index { return k.idx }

// Register adds the descriptors of interfaces and of their items.
func (k *Descriptors) Register(s *scheduler.Scheduler) error {
	return errors.Join(
		scheduler.Register(s, k.interfaceDescriptor()),
		scheduler.Register(s, k.ifTableDescriptor()),
		scheduler.Register(s, k.ifPlaceDescriptor()),
		scheduler.Register(s, k.ifAddressDescriptor()),
		scheduler.Register(s, k.ifHasIPDescriptor()),
		scheduler.Register(s, k.ifUnnumberedDescriptor()),
		scheduler.Register(s, k.ifMTUDescriptor()),
		scheduler.Register(s, k.ifRxModesDescriptor()),
		scheduler.Register(s, k.ifPlacementDescriptor()),
		scheduler.Register(s, k.ifDHCPDescriptor()),
		scheduler.Register(s, k.ifUpDescriptor()),
	)
}
