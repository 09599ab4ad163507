package nodesync

import (
	"errors"
	"fmt"
	"slices"

	"contiv.dev/vswitch/internal/kube/model"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// Update handles KubeStateChange and the events of this package.
func (ns *NodeSync) Update(event controller.Event, _ controller.UpdateOperations) (changeDescription string, err error) {
	switch ev := event.(type) {
	case *idLost:
		return ev.String(), ns.lose(ev.loss)
	case *holdOver:
		names := ns.state.holds.over()
		if len(names) > 0 {
			ns.Logger().Warn("nodes whose records the cluster database had lost have not restored them; they are removed", "nodes", names)
		}
		return ns.updateNodes(event, names)
	case *controller.KubeStateChange:
		switch ev.Resource {
		case allocatedIDs:
			return ns.updateRecord(ev)
		case model.NodeKeyword:
			ns.state.departed.update(ev, ns.state.nodes)
			return ns.updateKube(ev)
		}
	}
	return "", nil
}

// updateRecord applies a change of a record.
func (ns *NodeSync) updateRecord(ev *controller.KubeStateChange) (string, error) {
	s := ns.state
	next, _ := ev.NewValue.(*vppnode.VppNode)
	names, broken := s.sources.set(ev.Key, next)
	if broken != nil {
		ns.reportBroken(ev.Key, broken)
	} else if bad := badAddresses(next); len(bad) > 0 {
		ns.Logger().Error("addresses in the record of a node cannot be read and are left out", "key", ev.Key, "node", next.GetName(),
			"addresses", bad)
	}
	id := idInKey(ev.Key)
	if s.holds != nil && (takenOver(s.sources.records[id]) || s.nodes[s.sources.records[id].GetName()].heldBy(s.holds, id)) {
		names = append(names, s.holds.drop(id)...)
	}
	change, err := ns.updateNodes(ev, names)
	switch own := ns.GetNodeID(); {
	case s.loss != nil:
		err = errors.Join(err, controller.NewFatalError(s.loss))
	case own != 0 && ns.concernsOwn(id, names):
		err = errors.Join(err, ns.checkOwnRecord())
	}
	return change, err
}

// updateKube applies a change of a Node object: its addresses are among the node's management addresses.
func (ns *NodeSync) updateKube(ev *controller.KubeStateChange) (string, error) {
	prev, next := model.Change[*model.Node](ev)
	name := prev.GetName()
	if next != nil {
		name = next.GetName()
	}
	ns.state.sources.setKube(name, next)
	return ns.updateNodes(ev, []string{name})
}

// heldBy reports whether the node is the one that is held under the ID: then its record is back.
func (n *Node) heldBy(h *holds, id uint32) bool { return n != nil && n.ID == id && h.has(n) }

// concernsOwn reports whether a change of the record of an ID affects this node.
func (ns *NodeSync) concernsOwn(id uint32, names []string) bool {
	return id == ns.GetNodeID() || slices.Contains(names, ns.state.identity.Name)
}

// updateNodes recomputes the named nodes and informs the other plugins about those that have changed.
func (ns *NodeSync) updateNodes(cause controller.Event, names []string) (string, error) {
	s := ns.state
	changes := 0
	var errs []error
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		prev, next := s.nodes[name], s.sources.node(name)
		if next == nil && (name == ns.ServiceLabel.GetAgentLabel() || (s.holds != nil && s.holds.has(prev))) {
			continue // this node is present, and a held node may come back
		}
		if next == nil {
			delete(s.nodes, name)
		} else {
			s.nodes[name] = next
		}
		s.remembered.set(name, s.sources.published(name))
		if s.departed != nil {
			s.departed.updateDue(name, next != nil)
		}
		if sameNode(prev, next) || (name == ns.ServiceLabel.GetAgentLabel() && (prev == nil || sameMgmtIPs(prev, next))) {
			continue
		}
		changes++
		ns.logNode(name, prev, next)
		if err := ns.EventLoop.PushFollowUp(cause, &NodeUpdate{NodeName: name, PrevState: prev, NewState: next}); err != nil {
			errs = append(errs, fmt.Errorf("update of node %s: %w", name, err))
		}
	}
	if changes == 0 {
		return "", errors.Join(errs...)
	}
	return fmt.Sprintf("%d node update(s)", changes), errors.Join(errs...)
}

// logNode logs one line for each node that joined or left.
func (ns *NodeSync) logNode(name string, prev, next *Node) {
	switch {
	case prev == nil:
		ns.Logger().Info("node joined", "node", name, "id", next.ID)
	case next == nil:
		ns.Logger().Info("node left", "node", name, "id", prev.ID)
	}
}

// Revert does nothing: the plugin handles only BestEffort events.
func (ns *NodeSync) Revert(controller.Event) error { return nil }
