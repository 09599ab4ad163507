package api

import "fmt"

// EventMethodType reports how much is recomputed when an event is handled.
type EventMethodType int

const (
	// FullResync recomputes the whole desired state, dumps the dataplane and reconciles the two.
	FullResync EventMethodType = iota
	// UpstreamResync recomputes the whole desired state but uses the scheduler's view of the dataplane (no dump).
	UpstreamResync
	// DownstreamResync calls no plugin: the dataplane is dumped and repaired towards the last desired state.
	DownstreamResync
	// Update is an incremental change.
	Update
)

// String names the method as it appears in logs and in the event history.
func (m EventMethodType) String() string {
	switch m {
	case FullResync:
		return "Full Resync"
	case UpstreamResync:
		return "Upstream Resync"
	case DownstreamResync:
		return "Downstream Resync"
	case Update:
		return "Update"
	}
	return fmt.Sprintf("EventMethodType(%d)", int(m))
}

// IsResync is true for all methods but Update.
func (m EventMethodType) IsResync() bool { return m != Update }

// UpdateTransactionType is the policy for an Update event's transaction when part of it fails.
type UpdateTransactionType int

const (
	// BestEffort keeps what succeeded. Failed values are retried one by one; repeated failure leads to a healing resync.
	BestEffort UpdateTransactionType = iota
	// BestEffortIgnoreErrors keeps what succeeded and needs no healing (for deletions of objects that may not exist). Failed values are
	// retried one by one; when that does not help, the dataplane is repaired later without calling the plugins.
	BestEffortIgnoreErrors
	// RevertOnFailure undoes everything, in handlers and in the dataplane, and reports the first error.
	RevertOnFailure
)

// String names the transaction type.
func (t UpdateTransactionType) String() string {
	switch t {
	case BestEffort:
		return "BestEffort"
	case BestEffortIgnoreErrors:
		return "BestEffortIgnoreErrors"
	case RevertOnFailure:
		return "RevertOnFailure"
	}
	return fmt.Sprintf("UpdateTransactionType(%d)", int(t))
}

// UpdateDirectionType is the order in which handlers see an Update event.
type UpdateDirectionType int

const (
	// Forward is the order of registration.
	Forward UpdateDirectionType = iota
	// Reverse is the opposite order, for events that remove things.
	Reverse
)

// String names the direction.
func (d UpdateDirectionType) String() string {
	if d == Reverse {
		return "Reverse"
	}
	return "Forward"
}

// Event is something that happened and that plugins may have to react to.
type Event interface {
	// GetName is the short name of the kind of event, e.g. "Add Pod".
	GetName() string
	// String describes this very event in one line.
	String() string
	// Method reports whether the event is an update or which kind of resync.
	Method() EventMethodType
	// IsBlocking is true when a caller waits for Done.
	IsBlocking() bool
	// Done is called exactly once, from the event loop, when the event has been handled (nil) or has failed.
	Done(error)
}

// UpdateEvent is implemented in addition by events with Method() == Update.
type UpdateEvent interface {
	Event
	TransactionType() UpdateTransactionType
	Direction() UpdateDirectionType
}
