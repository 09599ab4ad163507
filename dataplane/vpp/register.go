package vpp

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"go.fd.io/govpp/api"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/acl"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/contiv"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/l2"
	"contiv.dev/vswitch/dataplane/vpp/l3"
	"contiv.dev/vswitch/dataplane/vpp/nat44"
)

// Deps holds what the descriptors need from other packages.
type Deps struct {
	// Lane carries the requests; the scheduler flushes it. Required.
	Lane *conn.Lane
	// Index is filled by the descriptors, so that other code can look up interfaces. Required.
	Index *iface.Index
	// Interfaces holds the dependencies of the descriptors of interfaces.
	Interfaces iface.Deps
	// NAT holds the settings of NAT44; zeros mean VPP's defaults.
	NAT nat44.Settings
	// Log receives messages that are not errors of a value. Optional.
	Log *slog.Logger
}

// Register adds the descriptors of all VPP objects.
func Register(s *scheduler.Scheduler, deps Deps) error {
	if deps.Lane == nil || deps.Index == nil {
		return errors.New("vpp: Deps.Lane and Deps.Index are required")
	}
	log := deps.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ifs := iface.New(deps.Lane, log.With("component", "vpp-kinds"), deps.Index, deps.Interfaces)
	acls := acl.New(ifs)
	if err := errors.Join(
		ifs.Register(s),
		l2.Register(s, ifs),
		l3.Register(s, ifs),
		acls.Register(s),
		nat44.Register(s, ifs, acls, deps.NAT),
		contiv.Register(s, ifs),
	); err != nil {
		return fmt.Errorf("register the VPP kinds: %w", err)
	}
	return nil
}

// Messages returns all requests that the descriptors send, for the compatibility check when VPP is connected; except those of our own
// plugin (contiv.Messages), which VPP need not have.
func Messages() []api.Message {
	return slices.Concat(iface.Messages(), l2.Messages(), l3.Messages(), acl.Messages(), nat44.Messages())
}
