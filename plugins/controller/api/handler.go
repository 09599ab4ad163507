package api

import (
	"google.golang.org/protobuf/proto"
)

// EventHandler is implemented by every plugin that takes part in the event loop. All methods are called from the loop's goroutine only, so
// a handler needs no lock for state that only these methods use. Handlers must not block: a handler starts slow work as a job, and the job
// reports its result as an event.
type EventHandler interface {
	// String returns the handler's name as it appears in the event history.
	String() string
	// HandlesEvent reports whether the handler receives the event.
	HandlesEvent(event Event) bool
	// Resync recomputes the handler's state from the snapshot and puts the handler's complete desired configuration into txn. resyncCount
	// is 1 for the start-up resync. A handler may ignore txn.
	Resync(event Event, kubeStateData KubeStateData, resyncCount int, txn ResyncOperations) error
	// Update handles one incremental change. changeDescription is a short text for the history ("" if nothing changed).
	Update(event Event, txn UpdateOperations) (changeDescription string, err error)
	// Revert undoes the handler's own state changes of a RevertOnFailure event that failed. It is also called for the handler whose Update
	// failed half-way, so it must work even if Update did only a part of its work.
	Revert(event Event) error
}

// DataDescriber is implemented by handlers whose internal data the verification mode compares: the text must be the same
// after updates as after a resync.
type DataDescriber interface {
	DescribeInternalData() string
}

// ResyncOperations is the transaction of a resync: a value is desired if and only if it is put.
type ResyncOperations interface {
	// Put adds a northbound value under its key. The message must not be changed afterwards.
	Put(key string, value proto.Message)
	// Get returns the value that was put so far in this transaction, or nil.
	Get(key string) proto.Message
}

// UpdateOperations is the transaction of an Update event.
type UpdateOperations interface {
	ResyncOperations
	// Delete removes the value from the desired state. Deleting an absent value is not an error.
	Delete(key string)
}

// ConfigRetriever returns the configuration that plugins put last (without external configuration).
type ConfigRetriever interface {
	GetConfig(key string) proto.Message
}

// KeyValuePairs maps keys to the values of one resource.
type KeyValuePairs map[string]proto.Message

// KubeStateData is the snapshot of the cluster's state, by resource keyword ("pod", "service", "allocatedIDs", …).
type KubeStateData map[string]KeyValuePairs

// EventLoop is the part of the controller that plugins use.
type EventLoop interface {
	// PushEvent queues an event from outside the loop. It returns ErrClosed, or ErrQueueFull if the queue has no room for a non-blocking
	// event; in both cases Done is not called.
	PushEvent(event Event) error
	// PushFollowUp queues an event that follows from the event that is being handled. It runs before all events queued with PushEvent.
	// cause must be the event that the calling handler is handling.
	PushFollowUp(cause, event Event) error
}
