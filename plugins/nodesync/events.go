package nodesync

import (
	"fmt"
	"strings"

	controller "contiv.dev/vswitch/plugins/controller/api"
)

// NodeUpdate is an Update event that represents a change in the status of a K8s node.
// For other nodes, the event is triggered when:
//   - node joins the cluster
//   - node leaves the cluster
//   - VPP or management IP addresses of the node are updated
//
// For this node, the event is triggered only when:
//   - the management IP addresses are updated
//
// For changes of this node's VPP IP addresses, there is the resync event NodeIPv*Change.
type NodeUpdate struct {
	NodeName  string
	PrevState *Node // nil if the node joined the cluster
	NewState  *Node // nil if the node left the cluster
}

var _ controller.UpdateEvent = (*NodeUpdate)(nil)

// GetName returns the name of the NodeUpdate event.
func (ev *NodeUpdate) GetName() string { return "Node Update" }

// String describes the NodeUpdate event.
func (ev *NodeUpdate) String() string {
	switch {
	case ev.PrevState == nil:
		return fmt.Sprintf("%s: %s joined (%s)", ev.GetName(), ev.NodeName, ev.NewState)
	case ev.NewState == nil:
		return fmt.Sprintf("%s: %s left (%s)", ev.GetName(), ev.NodeName, ev.PrevState)
	}
	return fmt.Sprintf("%s: %s changed from (%s) to (%s)", ev.GetName(), ev.NodeName, ev.PrevState, ev.NewState)
}

// Method returns Update.
func (ev *NodeUpdate) Method() controller.EventMethodType { return controller.Update }

// TransactionType returns BestEffort.
func (ev *NodeUpdate) TransactionType() controller.UpdateTransactionType {
	return controller.BestEffort
}

// Direction returns Forward.
func (ev *NodeUpdate) Direction() controller.UpdateDirectionType { return controller.Forward }

// IsBlocking returns false.
func (ev *NodeUpdate) IsBlocking() bool { return false }

// Done does nothing: no caller waits for the event.
func (ev *NodeUpdate) Done(error) {}

// String describes the node in one line.
func (n *Node) String() string {
	if n == nil {
		return "none"
	}
	parts := []string{fmt.Sprintf("ID %d", n.ID)}
	if len(n.VppIPAddresses) > 0 {
		parts = append(parts, "VPP "+strings.Join(addressTexts(n.VppIPAddresses), " "))
	}
	for _, ip := range n.MgmtIPAddresses {
		parts = append(parts, "mgmt "+ip.String())
	}
	return strings.Join(parts, ", ")
}
