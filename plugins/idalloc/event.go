package idalloc

import (
	"fmt"

	controller "contiv.dev/vswitch/plugins/controller/api"
)

// Allocated is the event that follows when the label gets its ID after GetOrAllocateID has returned ErrPending or another error. It also
// follows when the ID of a label that this node uses has changed, which only happens if the database has lost data. While the event is
// handled, GetOrAllocateID returns the ID to the handlers after idalloc.
type Allocated struct {
	Pool  string
	Label string
	ID    uint32
	// PrevID is the ID that the label had; zero if it had none, the same if it was confirmed.
	PrevID uint32
	// Err is the reason why there is no ID yet; then ID is zero. The allocation is retried.
	Err error

	owner string
}

// released is the event by which the job reports that it has released the ID of a label.
type released struct {
	Allocated
}

var (
	_ controller.UpdateEvent = (*Allocated)(nil)
	_ controller.UpdateEvent = (*released)(nil)
)

// GetName implements controller.Event.
func (ev *Allocated) GetName() string { return "ID Allocated" }

// String implements controller.Event.
func (ev *Allocated) String() string {
	switch {
	case ev.Err != nil:
		return fmt.Sprintf("%s: pool %s, %s: %v", ev.GetName(), ev.Pool, ev.Label, ev.Err)
	case ev.PrevID != 0 && ev.PrevID != ev.ID:
		return fmt.Sprintf("%s: pool %s, %s: %d instead of %d", ev.GetName(), ev.Pool, ev.Label, ev.ID, ev.PrevID)
	}
	return fmt.Sprintf("%s: pool %s, %s: %d", ev.GetName(), ev.Pool, ev.Label, ev.ID)
}

// Method returns Update.
func (ev *Allocated) Method() controller.EventMethodType { return controller.Update }

// TransactionType returns BestEffort.
func (ev *Allocated) TransactionType() controller.UpdateTransactionType { return controller.BestEffort }

// Direction returns Forward: idalloc must handle the event before the plugins that wait for the ID.
func (ev *Allocated) Direction() controller.UpdateDirectionType { return controller.Forward }

// IsBlocking returns false.
func (ev *Allocated) IsBlocking() bool { return false }

// Done does nothing: no caller waits for the event.
func (ev *Allocated) Done(error) {}

// GetName implements controller.Event.
func (ev *released) GetName() string { return "ID Released" }

// String implements controller.Event.
func (ev *released) String() string {
	return fmt.Sprintf("%s: pool %s, %s", ev.GetName(), ev.Pool, ev.Label)
}
