package nodesync

import (
	"fmt"
	"time"

	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// lossError describes the node that has taken this node's ID, and the fix.
type lossError struct {
	me    self
	claim claim
	there *vppnode.VppNode // the record as it is now
}

// Error implements error.
func (e *lossError) Error() string {
	id, node := e.claim.ID, e.me.name
	switch {
	case isReleased(e.there) && e.me.owns(e.there):
		return fmt.Sprintf("the ID %d of this node (%s) was released at %s: other nodes have removed it; to keep the "+
			"node, restart its agent, which then gets the same ID again unless another node has it", id, node,
			time.UnixMilli(e.there.GetReleasedMs()).UTC().Format(time.RFC3339))
	case e.there.GetName() == node:
		return fmt.Sprintf("another machine with the name of this node (%s) has taken its ID %d: the UUID of the other is %s, of "+
			"this one %s; give one of them another name, or switch the wrong one off", node, id, e.there.GetUuid(), e.me.uuid)
	}
	return fmt.Sprintf("the ID %d of this node (%s) is the node %s's by an older or newer claim, probably because the cluster "+
		"database lost data: the pods of both nodes would have the same addresses; restart the agent of this node, which then gets a new ID, "+
		"and delete its pods that have addresses of the old one (ipam reports them), so that they are created again", id, node,
		e.there.GetName())
}

// rival returns the UUID of the other machine, if it has this node's name.
func (e *lossError) rival() string {
	if isReleased(e.there) || e.there.GetName() != e.me.name {
		return ""
	}
	return e.there.GetUuid()
}

// idLost is the event by which the keeper informs the event loop about a lost ID.
type idLost struct{ loss *lossError }

var _ controller.UpdateEvent = (*idLost)(nil)

// GetName implements controller.Event.
func (ev *idLost) GetName() string { return "Node ID Lost" }

// String implements controller.Event.
func (ev *idLost) String() string { return ev.GetName() + ": " + ev.loss.Error() }

// Method returns Update.
func (ev *idLost) Method() controller.EventMethodType { return controller.Update }

// TransactionType returns BestEffort.
func (ev *idLost) TransactionType() controller.UpdateTransactionType { return controller.BestEffort }

// Direction returns Forward.
func (ev *idLost) Direction() controller.UpdateDirectionType { return controller.Forward }

// IsBlocking returns false.
func (ev *idLost) IsBlocking() bool { return false }

// Done does nothing: no caller waits for the event.
func (ev *idLost) Done(error) {}

// lose gives up the ID permanently: the node stores this, so that it gets a new ID after a restart.
func (ns *NodeSync) lose(loss *lossError) error {
	s := ns.state
	if s.loss == nil {
		s.loss = loss
		s.keeper.setDesired(nil, nil)
		ns.Logger().Error("this node has lost its ID", "id", loss.claim.ID, "error", loss)
		if err := s.identity.deleteClaim(loss.rival()); err != nil {
			return controller.NewFatalError(fmt.Errorf("%w; and the loss could not be stored: %w", loss, err))
		}
	}
	return controller.NewFatalError(s.loss)
}
