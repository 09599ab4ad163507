package api

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// DBResync carries a complete snapshot of the cluster's state. The first one is the start-up resync.
type DBResync struct {
	// Local is true when the snapshot comes from the node's local copy because the cluster database is unreachable.
	Local     bool
	KubeState KubeStateData
}

// NewDBResync returns a DBResync with an empty snapshot.
func NewDBResync() *DBResync { return &DBResync{KubeState: KubeStateData{}} }

// GetName implements Event.
func (ev *DBResync) GetName() string { return "Database Resync" }

// String implements Event.
func (ev *DBResync) String() string {
	source := "cluster database"
	if ev.Local {
		source = "local copy"
	}
	n := 0
	for _, kvs := range ev.KubeState {
		n += len(kvs)
	}
	return fmt.Sprintf("%s (%s, %d values)", ev.GetName(), source, n)
}

// Method returns FullResync.
func (ev *DBResync) Method() EventMethodType { return FullResync }

// IsBlocking returns false.
func (ev *DBResync) IsBlocking() bool { return false }

// Done does nothing.
func (ev *DBResync) Done(error) {}

// KubeStateChange is a change of one value of the cluster's state.
type KubeStateChange struct {
	Resource  string        // resource keyword, e.g. "allocatedIDs"
	Key       string        // key without the common prefix
	PrevValue proto.Message // nil if the value is new
	NewValue  proto.Message // nil if the value was deleted
	PrevRev   int64
	Rev       int64
}

// GetName implements Event.
func (ev *KubeStateChange) GetName() string { return "Kubernetes State Change" }

// String implements Event.
func (ev *KubeStateChange) String() string {
	what := "changed"
	switch {
	case ev.PrevValue == nil:
		what = "added"
	case ev.NewValue == nil:
		what = "deleted"
	}
	return fmt.Sprintf("%s: %s %s", ev.GetName(), ev.Key, what)
}

// Method returns Update.
func (ev *KubeStateChange) Method() EventMethodType { return Update }

// TransactionType returns BestEffort.
func (ev *KubeStateChange) TransactionType() UpdateTransactionType { return BestEffort }

// Direction returns Reverse for deletions, else Forward.
func (ev *KubeStateChange) Direction() UpdateDirectionType {
	if ev.NewValue == nil {
		return Reverse
	}
	return Forward
}

// IsBlocking returns false.
func (ev *KubeStateChange) IsBlocking() bool { return false }

// Done does nothing.
func (ev *KubeStateChange) Done(error) {}
