package idalloc

import (
	"errors"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/rest"
	controller "contiv.dev/vswitch/plugins/controller/api"
)

// API is the interface of idalloc for other plugins. All methods must be called from the event loop, and none waits.
type API interface {
	// InitPool defines the IDs of a pool. The first node that uses the pool defines it for the cluster: on a node with another definition,
	// allocations fail. InitPool is idempotent.
	InitPool(name string, ids Range, reserved ...uint32) error
	// GetOrAllocateID returns the ID of the label. If the ID is not known, it returns ErrPending, and the event Allocated follows when the
	// ID is known. If the allocation fails, it returns the reason, and the allocation is retried.
	GetOrAllocateID(pool, label string) (uint32, error)
	// ReleaseID releases the ID of the label: permanently if this node owns it; otherwise it ends only this node's use of it, and returns
	// ErrNotOwner.
	ReleaseID(pool, label string) error
}

// Range is the IDs from Min to Max, both included.
type Range struct{ Min, Max uint32 }

// The errors of this package.
var (
	// ErrPending means that the result will arrive as an event.
	ErrPending = errors.New("the ID is being allocated")
	// ErrExhausted means that all IDs of the pool are in use or in quarantine.
	ErrExhausted = errors.New("the pool has no free ID")
	// ErrNotOwner means that only the node that allocated first may release.
	ErrNotOwner = errors.New("the ID is owned by another node")
	// ErrNoPool means that InitPool has not been called.
	ErrNoPool = errors.New("there is no such pool")
	// ErrOtherRange means that the pool has other IDs in the cluster than on this node.
	ErrOtherRange = errors.New("the pool has another range in the cluster database")
)

const (
	// Keyword is the resource of pools and allocations in events of the database.
	Keyword = "idalloc"
	// KeyPrefix is the start of their keys below the root of the shared state.
	KeyPrefix = Keyword + "/"
	// DefaultQuarantine is the time during which a released ID is not assigned to another label.
	DefaultQuarantine = 10 * time.Minute
)

// Deps are the dependencies of IDAlloc.
type Deps struct {
	infra.PluginDeps
	// Node is the name of this node, which owns the IDs that it allocates.
	Node      string
	EventLoop controller.EventLoop
	DB        cas.Store
	// Quarantine is the time during which a released ID is not assigned to another label, in whole seconds; DefaultQuarantine if zero, none
	// if negative.
	Quarantine time.Duration
	// HTTPHandlers may be nil.
	HTTPHandlers rest.HTTPHandlers
}
