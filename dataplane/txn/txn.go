package txn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
)

// Kind specifies what the values of a transaction are compared with.
type Kind int

const (
	// Update changes the named values and leaves all others unchanged.
	Update Kind = iota
	// UpstreamResync replaces the whole desired state; the cached view of the dataplane is trusted.
	UpstreamResync
	// FullResync replaces the whole desired state after the dataplane has been dumped.
	FullResync
	// DownstreamResync keeps the desired state, dumps the dataplane and repairs it.
	DownstreamResync
)

// String returns the name of the kind.
func (k Kind) String() string {
	switch k {
	case Update:
		return "update"
	case UpstreamResync:
		return "upstream-resync"
	case FullResync:
		return "full-resync"
	case DownstreamResync:
		return "downstream-resync"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// KV is one value of a transaction; a nil Value means that the key is no longer desired (Update only).
type KV struct {
	Key   string
	Value proto.Message
}

// Txn is one transaction. Values must not be changed after they have been passed to Commit or Plan; sub-messages that did not change should be
// shared with the previous value, since that makes their comparison free.
type Txn struct {
	Kind        Kind
	Description string // the event, for the history
	SeqNum      uint64 // of the event; 0 when there is none
	Values      []KV   // the last entry of a key counts
	// Revert undoes the whole transaction when any of its operations fails, or when any of its values that was not pending before stays
	// pending.
	Revert bool
	// NoRetry disables the background retries of failed values.
	NoRetry bool
	// Recreate lists the keys of values that are deleted and created again unchanged, together with all values that depend on them, because the
	// object in the dataplane looks correct and does not work. Keys of values that are not applied are ignored. For Update only, and not with
	// Revert.
	Recreate []string
}

// Op is one operation on one value, planned or executed.
type Op struct {
	Wave   int
	Action Action
	Key    string
	Err    string        `json:",omitempty"`
	Took   time.Duration `json:",omitempty"`
}

// Action is the type of an operation.
type Action string

// The actions.
const (
	Create   Action = "create"
	Modify   Action = "update"
	Recreate Action = "recreate"
	Delete   Action = "delete"
)

// String prints the operation as one line.
func (o Op) String() string {
	s := fmt.Sprintf("%3d %-8s %s", o.Wave, o.Action, o.Key)
	if o.Err != "" {
		s += "  ! " + o.Err
	}
	return s
}

// Record describes the results of a transaction.
type Record struct {
	SeqNum      uint64 // of the record, ascending
	EventSeqNum uint64
	Kind        Kind
	Description string
	Start       time.Time
	PlanTime    time.Duration
	ExecTime    time.Duration
	Planned     []Op
	Executed    []Op
	OpsDropped  int      `json:",omitempty"` // operations that a history has removed from this record to save memory
	Pending     []string `json:",omitempty"` // keys touched by the transaction that wait for a dependency
	Reverted    bool     `json:",omitempty"`
	Failed      []KeyError
}

// String formats the record for operators.
func (r *Record) String() string {
	var b strings.Builder
	if r.OpsDropped > 0 {
		fmt.Fprintf(&b, "#%d %s: %s (%d operations are no longer stored, failed %d)\n", r.SeqNum, r.Kind, r.Description,
			r.OpsDropped, len(r.Failed))
		return b.String()
	}
	fmt.Fprintf(&b, "#%d %s: %s (planned %d, executed %d, failed %d)\n", r.SeqNum, r.Kind, r.Description,
		len(r.Planned), len(r.Executed), len(r.Failed))
	for _, op := range r.Executed {
		b.WriteString(op.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// KeyError is the failure of one value.
type KeyError struct {
	Key       string
	Retriable bool // will be retried in the background
	PodOnly   bool // affects only one pod, which can cause it: the node is not in doubt, and a resync does not help
	Err       error
}

// Error implements error.
func (e KeyError) Error() string { return e.Key + ": " + e.Err.Error() }

// Escalates reports whether the failure needs a repair of the node, because retrying the value alone does not repair it.
func (e KeyError) Escalates() bool { return !e.Retriable && !e.PodOnly }

// Unwrap returns the cause.
func (e KeyError) Unwrap() error { return e.Err }

// MarshalText returns the error text for records rendered as JSON.
func (e KeyError) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// Error is returned by Commit when values failed; errors.As finds it and its KeyErrors.
type Error struct {
	Failed   []KeyError
	Reverted bool // all changes of the transaction were undone
	// RevertErr is set when the revert failed, too: the dataplane needs a resync.
	RevertErr error
}

// Error implements error.
func (e *Error) Error() string {
	msgs := make([]string, 0, len(e.Failed)+1)
	for i, f := range e.Failed {
		if i == 3 {
			msgs = append(msgs, fmt.Sprintf("and %d more", len(e.Failed)-i))
			break
		}
		msgs = append(msgs, f.Error())
	}
	if e.RevertErr != nil {
		msgs = append(msgs, "revert failed: "+e.RevertErr.Error())
	}
	return strings.Join(msgs, "; ")
}

// Unwrap returns the individual errors.
func (e *Error) Unwrap() []error {
	errs := make([]error, 0, len(e.Failed)+1)
	for _, f := range e.Failed {
		errs = append(errs, f)
	}
	if e.RevertErr != nil {
		errs = append(errs, e.RevertErr)
	}
	return errs
}

// Escalate reports whether at least one failure cannot be repaired by retrying its value alone.
func (e *Error) Escalate() bool {
	if e.RevertErr != nil {
		return true
	}
	for _, f := range e.Failed {
		if f.Escalates() {
			return true
		}
	}
	return false
}

// ErrClosed is returned by Commit after the dataplane has been closed.
var ErrClosed = errors.New("dataplane is closed")

// Applier applies transactions, one at a time.
type Applier interface {
	// Commit applies t and waits until it is done. The record is returned whenever the transaction was processed; the error is a *Error when
	// individual values failed, otherwise the reason why nothing was done.
	Commit(ctx context.Context, t *Txn) (*Record, error)
	// Plan reports what Commit would do, without doing it (dry run).
	Plan(ctx context.Context, t *Txn) ([]Op, error)
}
