package nodesync

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	controller "contiv.dev/vswitch/plugins/controller/api"
)

// start finds or allocates this node's ID. Without an ID nothing can be configured, so a failure aborts the event.
func (ns *NodeSync) start(local bool) error {
	s := ns.state
	c, how, err := ns.findClaim(local)
	if err != nil {
		return controller.NewAbortEventError(err)
	}
	if err := s.identity.storeClaim(c); err != nil {
		return controller.NewAbortEventError(err)
	}
	s.claim = c
	s.nodeID.Store(c.ID)
	if record := s.sources.records[c.ID]; s.identity.self().owns(record) {
		for _, ip := range addressesOf(record) {
			s.published[ip.Version] = append(s.published[ip.Version], ip)
		}
		s.publishedMgmt = slices.Clone(record.GetMgmtAddresses())
	} else {
		// The record as the database has it, or will have it soon.
		names, _ := s.sources.set(recordKey(c.ID), c.record(s.identity.self()))
		for _, name := range names {
			if s.nodes[name] = s.sources.node(name); s.nodes[name] == nil {
				delete(s.nodes, name)
			}
			s.remembered.set(name, s.sources.published(name))
		}
	}
	ns.Logger().Info("this node has its ID", "node", s.identity.Name, "id", c.ID, "source", how)
	ns.publish()
	return nil
}

// findClaim returns this node's claim: the stored one, the one of its record, or a new one.
func (ns *NodeSync) findClaim(local bool) (c claim, how string, err error) {
	s, me := ns.state, ns.state.identity.self()
	if remembered := s.identity.Claim; remembered != nil {
		there := s.sources.records[remembered.ID]
		switch compareClaim(me, *remembered, there) {
		case newer:
			return me.claimOf(remembered.ID, there), "remembered", nil
		case vacant, mine, weaker, contested: // the keeper makes sure that the database has it, too
			return *remembered, "remembered", nil
		case released, lost:
			loss := &lossError{me: me, claim: *remembered, there: there}
			ns.Logger().Error("this node has lost its ID and gets another one", "id", remembered.ID, "error", loss)
			if err := s.identity.deleteClaim(loss.rival()); err != nil {
				return claim{}, "", err
			}
		}
	}
	id, known := s.sources.ownID(me)
	if known && (local || s.identity.store == nil || s.times.Probation == 0) {
		return me.claimOf(id, s.sources.records[id]), "found", nil
	}
	c, err = ns.allocate()
	return c, "claimed", err
}

// allocate gets an ID from the database.
func (ns *NodeSync) allocate() (claim, error) {
	s, name := ns.state, ns.state.identity.Name
	if !s.connected.Load() {
		return claim{}, fmt.Errorf("node %s has no ID yet and the cluster database does not respond: check that etcd is running and "+
			"that its endpoints are right; the agent continues automatically when etcd responds", name)
	}
	a := &allocator{
		store: s.store, me: s.identity.self(), rival: s.identity.Rival, probation: s.times.Probation, log: ns.Logger(),
	}
	if s.preferred != nil {
		a.preferred, _ = s.preferred()
	}
	// The event handler has no context to derive from.
	ctx, cancel := context.WithTimeout(context.Background(), allocateTimeout)
	defer cancel()
	c, err := a.run(ctx)
	if err != nil {
		return claim{}, fmt.Errorf("allocating an ID for node %s: %w", name, err)
	}
	return c, nil
}

// checkOwnRecord checks the record of this node's ID: it must exist and belong to this node.
func (ns *NodeSync) checkOwnRecord() error {
	s, me := ns.state, ns.state.identity.self()
	there := s.sources.records[s.claim.ID]
	switch compareClaim(me, s.claim, there) {
	case released, lost:
		return ns.lose(&lossError{me: me, claim: s.claim, there: there})
	case newer:
		s.claim = me.claimOf(s.claim.ID, there)
		if err := s.identity.storeClaim(s.claim); err != nil {
			return err
		}
	}
	if !proto.Equal(there, ns.ownRecord()) || len(s.sources.staleIDs(me, s.claim.ID)) > 0 {
		ns.publish() // the record was lost or changed by another program, or there is more than one
	}
	return nil
}
