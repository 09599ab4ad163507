package controller

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/plugins/controller/api"
)

// HealingType is the reason of a HealingResync.
type HealingType int

const (
	// Periodic healing repairs the dataplane at regular intervals, without calling plugins.
	Periodic HealingType = iota
	// AfterError healing recomputes everything after an error.
	AfterError
	// Repair removes values that could not be removed from the dataplane before, without calling plugins.
	Repair
)

// String returns the name of the reason.
func (t HealingType) String() string {
	switch t {
	case AfterError:
		return "after error"
	case Repair:
		return "repair"
	}
	return "periodic"
}

// HealingResync is a resync that the controller starts itself.
type HealingResync struct {
	nonBlocking
	Type HealingType
	// Cause is the error to heal or repair; nil if Periodic.
	Cause error
}

// GetName implements api.Event.
func (ev *HealingResync) GetName() string { return "Healing Resync" }

// String implements api.Event.
func (ev *HealingResync) String() string {
	if ev.Cause != nil {
		cause := []rune(oneLine(ev.Cause.Error()))
		if len(cause) > 200 { // the history has the whole error, in the record of the event that failed
			cause = append(cause[:200], '…')
		}
		return fmt.Sprintf("%s %s: %s", ev.GetName(), ev.Type, string(cause))
	}
	return fmt.Sprintf("%s (%s)", ev.GetName(), ev.Type)
}

// Method returns FullResync after an error, else DownstreamResync.
func (ev *HealingResync) Method() api.EventMethodType {
	if ev.Type == AfterError {
		return api.FullResync
	}
	return api.DownstreamResync
}

func isRepair(ev api.Event) bool {
	h, ok := ev.(*HealingResync)
	return ok && h.Type == Repair
}

// VerificationResync calls Resync of all handlers into a transaction that is compared and discarded (Config.EnableVerification).
type VerificationResync struct {
	nonBlocking
	// Verified is the sequence number of the event after which this verification runs.
	Verified uint64
}

// GetName implements api.Event.
func (ev *VerificationResync) GetName() string { return "Verification Resync" }

// String implements api.Event.
func (ev *VerificationResync) String() string {
	return fmt.Sprintf("%s after #%d", ev.GetName(), ev.Verified)
}

// Method returns UpstreamResync.
func (ev *VerificationResync) Method() api.EventMethodType { return api.UpstreamResync }

// DataplaneReconnect reports a new connection to the dataplane, whose configuration is unknown.
type DataplaneReconnect struct {
	nonBlocking
	// Reason is e.g. "VPP restarted".
	Reason string
}

// GetName implements api.Event.
func (ev *DataplaneReconnect) GetName() string { return "Dataplane Reconnect" }

// String implements api.Event.
func (ev *DataplaneReconnect) String() string { return ev.GetName() + ": " + ev.Reason }

// Method returns DownstreamResync; when it fails, healing does a FullResync.
func (ev *DataplaneReconnect) Method() api.EventMethodType { return api.DownstreamResync }

// Shutdown is the last event: plugins remove the configuration that must not stay after the agent stops.
type Shutdown struct{ waiter }

func newShutdown() *Shutdown { return &Shutdown{waiter: newWaiter()} }

// GetName implements api.Event.
func (ev *Shutdown) GetName() string { return "Shutdown" }

// String implements api.Event.
func (ev *Shutdown) String() string { return ev.GetName() }

// Method returns Update.
func (ev *Shutdown) Method() api.EventMethodType { return api.Update }

// TransactionType returns BestEffort.
func (ev *Shutdown) TransactionType() api.UpdateTransactionType { return api.BestEffort }

// Direction returns Forward.
func (ev *Shutdown) Direction() api.UpdateDirectionType { return api.Forward }

// IsBlocking returns true: Close waits for the event.
func (ev *Shutdown) IsBlocking() bool { return true }

// ResyncRequest is a resync that an operator requested.
type ResyncRequest struct {
	waiter
	method api.EventMethodType
	record *EventRecord
}

// GetName implements api.Event.
func (ev *ResyncRequest) GetName() string { return "Resync Request" }

// String implements api.Event.
func (ev *ResyncRequest) String() string { return fmt.Sprintf("%s (%s)", ev.GetName(), ev.method) }

// Method returns the requested method.
func (ev *ResyncRequest) Method() api.EventMethodType { return ev.method }

// IsBlocking returns true.
func (ev *ResyncRequest) IsBlocking() bool { return true }

func (ev *ResyncRequest) setRecord(r *EventRecord) { ev.record = r }

// ExternalConfigChange changes configuration that comes from outside the plugins. It is merged over the configuration of the plugins.
type ExternalConfigChange struct {
	waiter
	// Source names the source of the configuration. Of two sources, the one whose name sorts later has precedence.
	Source string
	// UpdatedKVs has the new values; a nil value removes the value of this source.
	UpdatedKVs api.KeyValuePairs
	blocking   bool
}

// NewExternalConfigChange makes the event. The caller must not change the values after this call. If blocking is set, Wait returns the
// outcome.
func NewExternalConfigChange(source string, updated api.KeyValuePairs, blocking bool) *ExternalConfigChange {
	return &ExternalConfigChange{waiter: newWaiter(), Source: source, UpdatedKVs: updated, blocking: blocking}
}

// GetName implements api.Event.
func (ev *ExternalConfigChange) GetName() string { return "External Config Change" }

// String implements api.Event.
func (ev *ExternalConfigChange) String() string {
	keys := make([]string, 0, len(ev.UpdatedKVs))
	for key := range ev.UpdatedKVs {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if len(keys) > 3 {
		keys = append(keys[:3], fmt.Sprintf("and %d more", len(keys)-3))
	}
	return fmt.Sprintf("%s by %s: %s", ev.GetName(), ev.Source, strings.Join(keys, ", "))
}

// Method returns Update.
func (ev *ExternalConfigChange) Method() api.EventMethodType { return api.Update }

// TransactionType returns BestEffort.
func (ev *ExternalConfigChange) TransactionType() api.UpdateTransactionType { return api.BestEffort }

// Direction returns Forward.
func (ev *ExternalConfigChange) Direction() api.UpdateDirectionType { return api.Forward }

// IsBlocking reports whether a caller waits for the event.
func (ev *ExternalConfigChange) IsBlocking() bool { return ev.blocking }

// ExternalConfigResync replaces all configuration of one source.
type ExternalConfigResync struct {
	waiter
	Source   string
	KVs      api.KeyValuePairs
	blocking bool
}

// NewExternalConfigResync makes the event; see NewExternalConfigChange.
func NewExternalConfigResync(source string, kvs api.KeyValuePairs, blocking bool) *ExternalConfigResync {
	return &ExternalConfigResync{waiter: newWaiter(), Source: source, KVs: kvs, blocking: blocking}
}

// GetName implements api.Event.
func (ev *ExternalConfigResync) GetName() string { return "External Config Resync" }

// String implements api.Event.
func (ev *ExternalConfigResync) String() string {
	return fmt.Sprintf("%s by %s (%d values)", ev.GetName(), ev.Source, len(ev.KVs))
}

// Method returns UpstreamResync.
func (ev *ExternalConfigResync) Method() api.EventMethodType { return api.UpstreamResync }

// IsBlocking reports whether a caller waits for the event.
func (ev *ExternalConfigResync) IsBlocking() bool { return ev.blocking }

// cloneKVs copies the map (not the messages) without its nil values.
func cloneKVs(kvs map[string]proto.Message) map[string]proto.Message {
	out := make(map[string]proto.Message, len(kvs))
	for k, v := range kvs {
		if v != nil {
			out[k] = v
		}
	}
	return out
}

// nonBlocking is embedded by events for which no caller waits.
type nonBlocking struct{}

// IsBlocking returns false.
func (nonBlocking) IsBlocking() bool { return false }

// Done does nothing.
func (nonBlocking) Done(error) {}

// waiter is embedded by events for which a caller may wait.
type waiter struct{ result chan error }

func newWaiter() waiter { return waiter{result: make(chan error, 1)} }

// Done implements api.Event.
func (w waiter) Done(err error) {
	select {
	case w.result <- err:
	default: // an event that was not made by its constructor has no waiter
	}
}

// Wait returns the error with which the event ended, or nil. Only one caller may wait.
func (w waiter) Wait() error { return <-w.result }

// oneLine joins the lines of s, for texts of one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
