package api

import "fmt"

// EventMethodType selects how much is recomputed when an event is handled.
type EventMethodType int

const (
	// FullResync recomputes the whole desired state, dumps the dataplane and reconciles the two.
	FullResync EventMethodType = iota
	// UpstreamResync recomputes the whole desired state but uses the scheduler's view of the dataplane (no dump).
	UpstreamResync
	// DownstreamResync calls no plugin: it dumps the dataplane and repairs it towards the last desired state.
	DownstreamResync
	// Update is an incremental change.
	Update
)

// String returns the method's name as it appears in logs and in the event history.
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

// IsResync reports whether m is a resync, that is any method except Update.
func (m EventMethodType) IsResync() bool { return m != Update }

// UpdateTransactionType is the policy for an Update event's transaction when part of it fails.
type UpdateTransactionType int

const (
	// BestEffort keeps what succeeded. Failed values are retried one by one; repeated failures lead to a healing resync.
	BestEffort UpdateTransactionType = iota
	// BestEffortIgnoreErrors keeps what succeeded, and failed values need no healing (for deletions of objects that may not exist): they are
	// retried one by one; if the retries fail too, the dataplane is repaired later without calling the plugins. A handler that fails leads
	// to a healing resync.
	BestEffortIgnoreErrors
	// RevertOnFailure undoes everything, in handlers and in the dataplane, and reports the first error.
	RevertOnFailure
)

// String returns the name of the transaction type.
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

// UpdateDirectionType is the order in which handlers receive an Update event.
type UpdateDirectionType int

const (
	// Forward is the order of registration.
	Forward UpdateDirectionType = iota
	// Reverse is the opposite order, for events that remove things.
	Reverse
)

// String returns the name of the direction.
func (d UpdateDirectionType) String() string {
	if d == Reverse {
		return "Reverse"
	}
	return "Forward"
}

// Event is a change or a request that plugins may have to react to.
type Event interface {
	// GetName returns the short name of the kind of event, e.g. "Add Pod".
	GetName() string
	// String describes this individual event in one line.
	String() string
	// Method returns Update or the kind of resync.
	Method() EventMethodType
	// IsBlocking reports whether a caller waits for Done.
	IsBlocking() bool
	// Done is called exactly once, from the event loop: with nil when the event has been handled, with the error when it has failed.
	Done(error)
}

// UpdateEvent is implemented by events with Method() == Update, in addition to Event.
type UpdateEvent interface {
	Event
	TransactionType() UpdateTransactionType
	Direction() UpdateDirectionType
}
