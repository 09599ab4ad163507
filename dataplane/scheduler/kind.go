package scheduler

import (
	"context"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

// State is the state of one value. The numbers are vpp-agent's ValueState, so that dumps stay comparable.
type State int

// The states.
const (
	Nonexistent State = 0  // neither desired nor present
	Missing     State = 1  // desired, applied once, but a dump did not find it
	Unknown     State = 2  // an operation's outcome is unknown (lost reply): a dump of the kind decides before the next one
	Removed     State = 3  // was just deleted
	Configured  State = 4  // present as desired
	Obtained    State = 5  // present, not ours, left alone
	Discovered  State = 6  // present and ours, but not desired: will be deleted
	Pending     State = 7  // desired, waits for a dependency
	Invalid     State = 8  // did not validate
	Failed      State = 9  // the last operation failed for good
	Retrying    State = 10 // the last operation failed and will be tried again
)

// Kind informs the scheduler how the values of one kind are applied. V is the value's type, a pointer to a northbound message for values
// that come from transactions or any type for items which a parent derives.
//
// All functions run on the scheduler's goroutine. Create, Update and Delete start the operation on op and return; they call op.Done exactly
// once, right away (synchronous backends) or from a callback that runs while the scheduler flushes its backends. No function may keep or
// change the values it is given.
type Kind[V any] struct {
	// Name is short and unique, e.g. "vpp-route".
	Name string
	// Prefix is the common prefix of the kind's northbound keys. Empty for derived kinds.
	Prefix string
	// Rank orders operations that do not depend on each other: creates run in ascending, deletes in descending rank.
	// Operations of the same rank and with no dependency between them make one wave and are pipelined. See the Rank
	// constants.
	Rank int

	// Validate rejects values that must not reach the dataplane; the error names the field. Optional.
	Validate func(key string, v V) error
	// Equal reports whether the applied (perhaps dumped) value is as good as the desired one; what a dump cannot tell must be ignored.
	// Required.
	Equal func(key string, desired, applied V) bool
	// Deps adds the keys (of northbound values or derived items) that must be configured before v. Optional.
	Deps func(key string, v V, add func(dep string))

	// Create makes a value that is absent. Required.
	Create func(op *Op, key string, v V)
	// Update changes an applied value in place. Optional: without it, or when CanUpdate says no, the value is deleted and
	// created again, and so are its dependants.
	Update    func(op *Op, key string, applied, desired V)
	CanUpdate func(key string, applied, desired V) bool
	// Delete removes an applied value; deleting what is gone succeeds. Required.
	Delete func(op *Op, key string, v V)

	// Derive emits the items of v, each a value of a derived kind under its own key that implicitly depends on v. Optional.
	Derive func(key string, v V, put func(kind, itemKey string, item any))
	// DeriveDiff emits only what differs between the items of two versions of a value: its cost should be that of the
	// change. Optional; without it both versions are derived and compared.
	DeriveDiff func(key string, from, to V, put func(kind, itemKey string, item any), del func(itemKey string))

	// Dump emits the values of this kind that are in the dataplane and are ours, and then calls op.Done. Items of derived kinds are dumped
	// by their own kind. With op.Partial it should look only at the keys asked for. Required for kinds that survive in the
	// dataplane.
	Dump func(op *DumpOp, emit func(key string, v V))

	// Leftover says that a dumped value is what remains of an operation that did not end well and goes under a key that nothing desires. It
	// is removed whenever a dump finds it; other values that nothing knew of are only looked at in resyncs. Optional.
	Leftover func(key string, v V) bool

	// Retriable reports whether an operation that failed with err may succeed later without any change of configuration. Optional: default
	// is IsRetriable.
	Retriable func(err error) bool

	// ImpliedByParent says, for a derived kind, that the dataplane removes items together with their parent: when the parent
	// is deleted and not made again by the same plan, its items are forgotten without an operation.
	ImpliedByParent bool
	// DeleteLast says that a value that goes for good goes after the creates and updates of its transaction, not before them: until what
	// replaces it is in place, it is used. For kinds whose values are never in conflict with each other; items that go
	// with their parent need it, too.
	DeleteLast bool
	// Parent names the parent of an item that a dump found and that no desired value derives, so that it is removed before
	// (or, see ImpliedByParent, with) its parent. Empty when there is none. Optional, for derived kinds only: without it,
	// such an item is removed in the order of ranks.
	Parent func(itemKey string, v V) string
}

// Rank constants: the life of an interface is create (down) → table → addresses → neighbours, routes, features → link up.
const (
	RankHostLink   = 10 // Linux interfaces that VPP attaches to (veth)
	RankTable      = 20 // VRF tables
	RankInterface  = 30 // VPP interfaces, created down
	RankIfVRF      = 40 // their table
	RankIfSetting  = 40 // MTU, rx placement, …: without conflicts, so they share the wave
	RankIfAddr     = 50 // their addresses, unnumbered
	RankBridge     = 60 // bridge domains
	RankMember     = 65 // bridge domain members
	RankNeighbour  = 70 // ARP, ND, L2 FIB, proxy ARP
	RankRoute      = 70
	RankFeature    = 80 // ACL, NAT
	RankLinkUp     = 90 // VPP links up
	RankRxMode     = 92 // receive modes: VPP drops interrupts of a link that is down, and polls it until it has a mode
	RankPodLink    = 95 // Linux ends, last: a pod sees its link when everything behind it is in place
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

// NewOp is an operation that calls done when it ends, for tests of kinds without a scheduler.
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

// NewDumpOp is a dump that calls done when it ends, for tests of kinds without a scheduler; desired serves EachDesired and may
// be nil.
func NewDumpOp(ctx context.Context, desired func(visit func(key string, v any)), done func(err error)) *DumpOp {
	if desired == nil {
		desired = func(func(string, any)) {}
	}
	return &DumpOp{ctx: ctx, done: done, desired: desired}
}

// Context bounds the dump.
func (d *DumpOp) Context() context.Context { return d.ctx }

// EachDesired visits the values of the dumped kind which are desired at present (or applied and not desired any more), for
// backends that can only find objects where they expect them (network namespaces).
func (d *DumpOp) EachDesired(visit func(key string, v any)) { d.desired(visit) }

// Partial says that nothing is asked for but the values which EachDesired visits. The kind may emit others, too, but had better
// not look for them; it must not conclude anything from what it does not look at.
func (d *DumpOp) Partial() bool { return d.partial }

// Done ends the dump.
func (d *DumpOp) Done(err error) { d.done(err) }

// Backend carries out the operations that kinds start. Kinds of one dataplane share a backend (a VPP API stream, a netlink
// handle); the scheduler flushes all backends at the end of each wave.
type Backend interface {
	// Flush waits until every operation started on the backend has ended, running their callbacks on the caller's
	// goroutine. Every operation ends within the backend's own deadline, if need be with an error.
	Flush(ctx context.Context)
}

// Pinner is a Backend whose other side may be replaced by another process (VPP is restarted). Pin is called where a transaction
// begins: until the next Pin, nothing that was computed for one process must reach the next one.
type Pinner interface{ Pin() }

// Peer is a Pinner that reports which process it is pinned to. A transaction that fails on another one than the dataplane was last dumped
// from says nothing about its values: its error is retriable (see peers.go).
type Peer interface {
	Pinner
	// Peer names the process; alive is false when there is none, or when it was lost since Pin.
	Peer() (name string, alive bool)
}

var _ txn.Applier = (*Scheduler)(nil)
