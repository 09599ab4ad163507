package scheduler

import (
	"context"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

// State is the state of one value. The numbers are those of vpp-agent's ValueState, so that dumps stay comparable.
type State int

// The states.
const (
	Nonexistent State = 0  // neither desired nor present
	Missing     State = 1  // desired, applied once, but a dump did not find it
	Unknown     State = 2  // the outcome of an operation is unknown (lost reply): the kind is dumped before the next one
	Removed     State = 3  // was just deleted
	Configured  State = 4  // present as desired
	Obtained    State = 5  // present, not ours, left alone
	Discovered  State = 6  // present and ours, but not desired: will be deleted
	Pending     State = 7  // desired, waits for a dependency
	Invalid     State = 8  // did not validate
	Failed      State = 9  // the last operation failed for good
	Retrying    State = 10 // the last operation failed and will be tried again
)

// Descriptor defines how the values of one type are applied. V is the type of the values: a pointer to a northbound message for values of
// transactions, any type for items that a parent derives.
//
// All functions run on the scheduler's goroutine. Create, Update and Delete start the operation on op and return. They call op.Done exactly
// once: immediately (synchronous backends), or from a callback that runs while the scheduler flushes its backends. No function may keep or
// change the values that it receives.
type Descriptor[V any] struct {
	// Name is short and unique, e.g. "vpp-route".
	Name string
	// Prefix is the common prefix of the northbound keys. Empty for the descriptors of derived items.
	Prefix string
	// Rank orders operations that do not depend on each other: creates run in ascending, deletes in descending rank.
	// Operations of the same rank and with no dependency between them make one wave and are pipelined. See the Rank
	// constants.
	Rank int

	// Validate rejects values that must not reach the dataplane; the error names the field. Optional.
	Validate func(key string, v V) error
	// Equal reports whether the applied value (which may come from a dump) is equivalent to the desired one; it must ignore fields that a dump
	// cannot read. Required.
	Equal func(key string, desired, applied V) bool
	// Deps adds the keys (of northbound values or derived items) that must be configured before v. Optional.
	Deps func(key string, v V, add func(dep string))

	// Refs adds the keys of values that v refers to without depending on them: v can be created before them. A value with DeleteLast is not deleted
	// while an applied value refers to it, because the operation that should have removed the reference failed. Optional.
	Refs func(key string, v V, add func(ref string))

	// Create creates a value that is absent. Required.
	Create func(op *Op, key string, v V)
	// Update changes an applied value in place. Optional: without it, or when CanUpdate returns false, the value is deleted and created again,
	// together with the values that depend on it.
	Update    func(op *Op, key string, applied, desired V)
	CanUpdate func(key string, applied, desired V) bool
	// Delete removes an applied value; deleting an absent value must succeed. Required.
	Delete func(op *Op, key string, v V)

	// Derive emits the items of v, each with a descriptor of its own, under a key that implicitly depends on v. Optional.
	Derive func(key string, v V, put func(kind, itemKey string, item any))
	// DeriveDiff emits only the difference between the items of two versions of a value: its cost should be proportional to the change.
	// Optional; without it both versions are derived and compared.
	DeriveDiff func(key string, from, to V, put func(kind, itemKey string, item any), del func(itemKey string))

	// Dump emits the values of this descriptor that are in the dataplane and belong to this agent, and then calls op.Done. Derived items are
	// dumped by their own descriptor. With op.Partial it should look only at the requested keys. Required for values that survive a restart of
	// the agent.
	Dump func(op *DumpOp, emit func(key string, v V))

	// Leftover reports whether a dumped value is the remainder of an operation that did not complete, under a key that no value desires.
	// Leftovers are removed whenever a dump finds them; other unexpected values are only processed in resyncs. Optional.
	Leftover func(key string, v V) bool

	// Retriable reports whether an operation that failed with err may succeed later without any change of configuration. Optional: default
	// is IsRetriable.
	Retriable func(err error) bool

	// ImpliedByParent is for derived items that the dataplane removes together with their parent: when a plan deletes the parent and
	// does not create it again, its items are marked as absent without an operation.
	ImpliedByParent bool
	// DeleteLast delays deletes of values that are not created again: they come after the creates and updates of the transaction instead of
	// before them, because the values are in use until their replacement is present. It is for values that never conflict with each
	// other. Items that are removed together with their parent need it, too.
	DeleteLast bool
	// Parent returns the key of the parent of an item that a dump found and that no desired value derives, so that the item is removed before
	// (or, see ImpliedByParent, together with) its parent. Empty if there is no parent. Optional, for derived items only: without it, such an
	// item is removed in the order of ranks.
	Parent func(itemKey string, v V) string
}

// Rank constants: the life of an interface is create (down) → table → addresses → neighbours, routes, features → link up.
const (
	RankHostLink   = 10 // Linux interfaces that VPP attaches to (veth)
	RankTable      = 20 // VRF tables
	RankInterface  = 30 // VPP interfaces, created down
	RankIfVRF      = 40 // their table
	RankIfSetting  = 40 // MTU, rx placement, …: they do not conflict with each other and share the wave
	RankIfAddr     = 50 // their addresses, unnumbered
	RankBridge     = 60 // bridge domains
	RankMember     = 65 // bridge domain members
	RankNeighbour  = 70 // ARP, ND, L2 FIB, proxy ARP
	RankRoute      = 70
	RankFeature    = 80 // ACL, NAT
	RankLinkUp     = 90 // VPP links up
	RankRxMode     = 92 // receive modes: VPP drops interrupts of a link that is down, and polls it until a mode is set
	RankPodLink    = 95 // Linux ends, last: the pod's link comes up when everything behind it is configured
	RankPodSetting = 96 // Linux addresses
	RankPodRoute   = 97 // Linux neighbours and routes
)

// Op is one running operation.
type Op struct {
	run   *execution // nil: made by NewOp
	fn    func(err error)
	err   error
	began time.Time
	took  time.Duration
	phase opPhase
}

// NewOp returns an operation that calls done when it ends, for tests of descriptors without a scheduler.
func NewOp(done func(err error)) *Op { return &Op{fn: done} }

// Done ends the operation.
func (o *Op) Done(err error) {
	if o.run == nil {
		o.fn(err)
		return
	}
	o.run.opDone(o, err)
}

// DumpOp is one running dump of a kind.
type DumpOp struct {
	ctx     context.Context
	done    func(err error)
	desired func(visit func(key string, v any))
	partial bool
}

// NewDumpOp returns a dump that calls done when it ends, for tests of descriptors without a scheduler; desired implements EachDesired and may be nil.
func NewDumpOp(ctx context.Context, desired func(visit func(key string, v any)), done func(err error)) *DumpOp {
	if desired == nil {
		desired = func(func(string, any)) {}
	}
	return &DumpOp{ctx: ctx, done: done, desired: desired}
}

// Context returns the context that bounds the dump.
func (d *DumpOp) Context() context.Context { return d.ctx }

// EachDesired visits the values of the dumped kind that are desired (or applied and no longer desired), for backends that can find objects only
// where they expect them (network namespaces).
func (d *DumpOp) EachDesired(visit func(key string, v any)) { d.desired(visit) }

// Partial reports whether only the values that EachDesired visits are requested. The descriptor may emit other values, too, but should not search for
// them. It must not draw conclusions about values that it does not look at.
func (d *DumpOp) Partial() bool { return d.partial }

// Done ends the dump.
func (d *DumpOp) Done(err error) { d.done(err) }

// Backend carries out the operations that descriptors start. Descriptors of one dataplane share a backend (a VPP API stream, a netlink
// handle); the scheduler flushes all backends at the end of each wave.
type Backend interface {
	// Flush waits until every operation started on the backend has ended, and runs the callbacks on the caller's goroutine. Every operation
	// ends within the backend's own deadline, if necessary with an error.
	Flush(ctx context.Context)
}

// Pinner is a Backend whose peer may be replaced by another process (VPP is restarted). Pin is called when a transaction begins: until the next
// Pin, no operation that was computed for one process may reach the next process.
type Pinner interface{ Pin() }

// Peer is a Pinner that reports the process to which it is pinned. If a transaction fails on another process than the one that was last dumped,
// the failure does not depend on its values: its error is retriable (see peers.go).
type Peer interface {
	Pinner
	// Peer returns the name of the process; alive is false when there is no process, or when it was lost since Pin.
	Peer() (name string, alive bool)
}

var _ txn.Applier = (*Scheduler)(nil)
