package idalloc

import (
	"errors"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/internal/servicelabel"
	controller "contiv.dev/vswitch/plugins/controller/api"
)

// API is what other plugins use of idalloc. All methods are to be called from the event loop only, and none waits.
type API interface {
	// InitPool reports which IDs a pool has. The first node to use the pool decides for the cluster: for a node that says something else,
	// allocations fail. Repeating it is fine.
	InitPool(name string, ids Range, reserved ...uint32) error
	// GetOrAllocateID returns the ID of the label. If it is not known it returns ErrPending, and the event Allocated follows
	// when it is; if allocating fails, it returns why, and goes on trying.
	GetOrAllocateID(pool, label string) (uint32, error)
	// ReleaseID gives the ID of the label up: for good if this node owns it, else only this node's use of it, with ErrNotOwner.
	ReleaseID(pool, label string) error
}

// Range is the IDs from Min to Max, both included.
type Range struct{ Min, Max uint32 }

// The errors of this package.
var (
	// ErrPending means that the answer will come as an event.
	ErrPending = errors.New("the ID is being allocated")
	// ErrExhausted means that all IDs of the pool are in use or in quarantine.
	ErrExhausted = errors.New("the pool has no free ID")
	// ErrNotOwner means that only the node that allocated first may release.
	ErrNotOwner = errors.New("the ID is owned by another node")
	// ErrNoPool means that InitPool has not been called.
	ErrNoPool = errors.New("there is no such pool")
	// ErrOtherRange means that the cluster's pool has other IDs than this node thinks.
	ErrOtherRange = errors.New("the pool has another range in the cluster database")
)

const (
	// Keyword is the resource of pools and allocations in events of the database.
	Keyword = "idalloc"
	// KeyPrefix is the beginning of their keys below the root of the shared state.
	KeyPrefix = Keyword + "/"
	// DefaultQuarantine is how long a released ID is not given to another label.
	DefaultQuarantine = 10 * time.Minute
)

// Deps are the dependencies of IDAlloc.
type Deps struct {
	infra.PluginDeps
	// ServiceLabel names this node, which owns what it allocates.
	ServiceLabel servicelabel.ReaderAPI
	EventLoop    controller.EventLoop
	DB           cas.Store
	// Quarantine is how long a released ID is not given to another label, in whole seconds; DefaultQuarantine if zero, none
	// if negative.
	Quarantine time.Duration
	// HTTPHandlers may be nil.
	HTTPHandlers rest.HTTPHandlers
}
