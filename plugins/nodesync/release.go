package nodesync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// The errors of ReleaseNodeID.
var (
	// errNoSuchNode means that no ID is claimed in the name of the node.
	errNoSuchNode = errors.New("no node of this name has an ID")
	// errOwnNode means that a running node was requested to release its own ID.
	errOwnNode = errors.New("a running node does not release its own ID; stop its agent and send the request to another node")
)

// ReleaseNodeID releases the ID of a permanently deleted node: the other nodes remove the node immediately, and the ID is free after the
// quarantine. A node that is released while it runs becomes unready and reports this. The method is thread-safe and waits for the database,
// so it must not be called from the event loop. It is idempotent.
func (ns *NodeSync) ReleaseNodeID(ctx context.Context, name string) error {
	if name == ns.ServiceLabel.GetAgentLabel() {
		return fmt.Errorf("release of the node %s: %w", name, errOwnNode)
	}
	if ns.state.store == nil {
		return fmt.Errorf("release of the node %s: nodesync is not initialised", name)
	}
	v, err := readView(ctx, ns.state.store)
	if err != nil {
		return fmt.Errorf("release of the node %s: %w", name, err)
	}
	ids := v.byName[name]
	if len(ids) == 0 && !v.wasReleased(name) {
		return fmt.Errorf("release of the node %s: %w", name, errNoSuchNode)
	}
	for _, id := range ids {
		isMeant := func(r *vppnode.VppNode) bool { return r.GetName() == name }
		if err := releaseIf(ctx, ns.state.store, id, ns.state.times.Quarantine, isMeant); err != nil {
			return fmt.Errorf("release of the node %s: %w", name, err)
		}
		ns.Logger().Info("the ID of a node was released", "node", name, "id", id, "quarantine", ns.state.times.Quarantine)
	}
	return nil
}

func (v *view) wasReleased(name string) bool {
	for _, r := range v.records {
		if isReleased(r) && r.GetName() == name {
			return true
		}
	}
	return false
}

// releaseIf replaces the record of an ID by a record of the release, if meant returns true for it, and starts the quarantine. Both happen
// atomically, and only if the record is not changed at the same time.
func releaseIf(ctx context.Context, store cas.Store, id uint32, quarantine time.Duration,
	meant func(*vppnode.VppNode) bool) error {
	for {
		v, err := store.Get(ctx, fullKey(id))
		if err != nil {
			return err
		}
		if v.Rev == 0 {
			return nil
		}
		r, err := decode(v.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", v.Key, err)
		}
		if isReleased(r) || !meant(r) {
			return nil
		}
		change, err := releaseChange(id, r, v.Rev, quarantine)
		if err != nil {
			return err
		}
		if i, _, err := store.CommitFirst(ctx, change); err != nil || i == 0 {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func releaseChange(id uint32, r *vppnode.VppNode, rev int64, quarantine time.Duration) (cas.Change, error) {
	value, err := encode(&vppnode.VppNode{
		Id: id, Name: r.GetName(), Uuid: r.GetUuid(), Generation: max(r.GetGeneration(), 1), ClaimedMs: r.GetClaimedMs(),
		ReleasedMs: time.Now().UnixMilli(),
	})
	change := cas.Change{If: []cas.Cond{{Key: fullKey(id), Rev: rev}}, Do: []cas.Write{{Key: fullKey(id), Value: value}}}
	if quarantine > 0 {
		change.Do = append(change.Do, cas.Write{Key: guardKey(id), Value: []byte(r.GetName()), TTL: quarantine})
	}
	return change, err
}
