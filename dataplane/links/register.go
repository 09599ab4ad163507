package links

import (
	"errors"
	"fmt"

	"contiv.dev/vswitch/dataplane/scheduler"
)

// Deps holds the dependencies of the Linux descriptors.
type Deps struct {
	// Backend carries out the operations; it must be flushed by the scheduler. Required.
	Backend *Backend
	// TapDevice returns the device that VPP created for a TAP interface: in the agent's namespace, or (inPlace) in the namespace of the
	// interface's own value, from which it is not moved. It is called on the scheduler's goroutine. Without it no TAP is found in the agent's
	// namespace.
	TapDevice func(vppIfName string) (hostDev string, inPlace, ok bool)
	// Janitor removes VETH pairs later. Optional: without it they are removed immediately.
	Janitor *Janitor
	// Pool provides VETH pairs that are ready. Optional.
	Pool VethPool
}

// Register adds the descriptors of Linux interfaces, addresses, routes and neighbours.
func Register(s *scheduler.Scheduler, deps Deps) error {
	b := deps.Backend
	if b == nil {
		return errors.New("links: Deps.Backend is missing; create one with NewBackend")
	}
	b.tapDevice, b.pool, b.janitor = deps.TapDevice, deps.Pool, deps.Janitor
	for _, err := range []error{
		scheduler.Register(s, b.linkDescriptor()),
		scheduler.Register(s, b.upDescriptor()),
		scheduler.Register(s, b.addrDescriptor()),
		scheduler.Register(s, b.routeDescriptor()),
		scheduler.Register(s, b.neighDescriptor()),
	} {
		if err != nil {
			return fmt.Errorf("register the Linux kinds: %w", err)
		}
	}
	return nil
}

var _ scheduler.Backend = (*Backend)(nil)
