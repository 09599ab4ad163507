package nodesync

import (
	"strings"

	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// self is the identity of a node. The UUID is empty if the node cannot store one; then only the name identifies the node.
type self struct{ name, uuid string }

// claim is a node's claim of an ID.
type claim struct {
	ID uint32 `json:"id"`
	// Generation counts how often the ID has changed its owner; the claim with the higher generation is right.
	Generation uint32 `json:"generation"`
	// Claimed is the time of the claim, in milliseconds since 1970. Two claims can have the same generation only if the database has
	// lost data. Then the older claim is right: its node may already have pods.
	Claimed int64 `json:"claimed"`
}

// claimOf returns the claim of this node that its record represents.
func (s self) claimOf(id uint32, r *vppnode.VppNode) claim {
	c := claim{ID: id, Generation: r.GetGeneration(), Claimed: r.GetClaimedMs()}
	if s.uuid != "" {
		c.Generation = max(c.Generation, 1) // a record of contiv becomes one with a proof of identity
	}
	return c
}

// owns reports whether the record belongs to this node. A record without UUID, written by contiv or by an earlier version, is matched by
// name.
func (s self) owns(r *vppnode.VppNode) bool {
	if r == nil || r.GetName() != s.name {
		return false
	}
	return s.uuid == "" || r.GetUuid() == "" || r.GetUuid() == s.uuid
}

// verdict is the result of comparing a claim with the database.
type verdict int

const (
	// vacant: there is no record.
	vacant verdict = iota
	// mine: the record belongs to this claim.
	mine
	// newer: the record belongs to this node and has a later generation than the claim.
	newer
	// weaker: the record belongs to another claim, which this one outranks.
	weaker
	// contested: another machine with this node's name has just claimed the ID, as a machine that was installed again does. It does not use
	// the ID yet, and this node, which is running, must prevent that.
	contested
	// released: another program has released the ID.
	released
	// lost: the record belongs to another node's claim, which outranks this one.
	lost
)

// compareClaim compares a claim with the record under its ID. Both sides of a conflict reach the same result, in any order, from the two claims
// alone.
func compareClaim(me self, c claim, there *vppnode.VppNode) verdict {
	own := me.owns(there)
	switch {
	case there == nil:
		return vacant
	case isReleased(there) && own && there.GetGeneration() >= c.Generation:
		return released
	case isReleased(there) && there.GetGeneration() > c.Generation:
		return lost
	case isReleased(there):
		return weaker
	case own && there.GetGeneration() > c.Generation:
		return newer
	case own && (there.GetGeneration() == c.Generation || there.GetGeneration() == 0):
		return mine
	case own || outranks(me, c, there):
		return weaker
	case there.GetName() == me.name && !inUse(there):
		return contested
	}
	return lost
}

// outranks reports whether the claim is right and the record, of another node, is wrong.
func outranks(me self, c claim, there *vppnode.VppNode) bool {
	if c.Generation != there.GetGeneration() {
		return c.Generation > there.GetGeneration()
	}
	if c.Claimed != there.GetClaimedMs() {
		return c.Claimed < there.GetClaimedMs()
	}
	if me.uuid != there.GetUuid() {
		return me.uuid < there.GetUuid()
	}
	return strings.Compare(me.name, there.GetName()) < 0
}

// inUse reports whether the node of a record uses the ID, and has not only claimed it.
func inUse(r *vppnode.VppNode) bool { return len(vppTexts(r)) > 0 }

// isReleased reports whether the record only stores the former owner of a released ID.
func isReleased(r *vppnode.VppNode) bool { return r.GetReleasedMs() != 0 }
