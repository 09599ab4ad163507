package api

import (
	"google.golang.org/protobuf/proto"
)

// EventHandler is implemented by every plugin that takes part in the event loop. All methods are called from the loop's goroutine only, so
// a handler needs no locks for state that only they use. Handlers must not block: a handler starts slow work as a job, and the job reports
// its result as an event.
type EventHandler interface {
	// String is the handler's name as it appears in the event history.
	String() string
	// HandlesEvent selects the events that the handler receives.
	HandlesEvent(event Event) bool
	// Resync recomputes the handler's state from the snapshot and puts its complete desired configuration into txn.
	// resyncCount is 1 for the start-up resync. txn is nil-safe to ignore.
	Resync(event Event, kubeStateData KubeStateData, resyncCount int, txn ResyncOperations) error
	// Update handles one incremental change; changeDescription is a short text for the history ("" = nothing changed).
	Update(event Event, txn UpdateOperations) (changeDescription string, err error)
	// Revert undoes the handler's own state changes of a RevertOnFailure event that failed. It is also called for the handler whose Update
	// failed half-way, so it must work even if Update did only part of its work.
	Revert(event Event) error
}

// DataDescriber is implemented by handlers whose internal data the verification mode compares: the text must be the same
// after updates as after a resync.
type DataDescriber interface {
	DescribeInternalData() string
}

// ResyncOperations is the transaction of a resync: everything that is put is desired, everything else is not.
type ResyncOperations interface {
	// Put adds a northbound value under its key. The message must not be changed afterwards.
	Put(key string, value proto.Message)
	// Get returns the value put so far in this transaction, or nil.
	Get(key string) proto.Message
}

// UpdateOperations is the transaction of an Update event.
type UpdateOperations interface {
	ResyncOperations
	// Delete removes the value from the desired state. Deleting an absent value is not an error.
	Delete(key string)
}

// ConfigRetriever returns the configuration that plugins put last (not counting external configuration).
type ConfigRetriever interface {
	GetConfig(key string) proto.Message
}

// KeyValuePairs maps keys to values of one resource.
type KeyValuePairs map[string]proto.Message

// KubeStateData is the snapshot of the cluster's state, by resource keyword ("pod", "service", "allocatedIDs", …).
type KubeStateData map[string]KeyValuePairs

// EventLoop is the part of the controller that plugins use.
type EventLoop interface {
	// PushEvent queues an event from outside the loop. It returns ErrClosed, or ErrQueueFull for a non-blocking event
	// that found no room; in both cases Done is not called.
	PushEvent(event Event) error
	// PushFollowUp queues an event that follows from the event being handled: it runs before anything queued with PushEvent. cause must be
	// the event that the calling handler is handling.
	PushFollowUp(cause, event Event) error
}
