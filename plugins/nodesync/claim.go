package nodesync

import (
	"strings"

	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// self is what a node says about itself. The UUID is empty if the node has no place to keep one; then its name is all.
type self struct{ name, uuid string }

// claim is a node's claim of an ID.
type claim struct {
	ID uint32 `json:"id"`
	// Generation is how often the ID has changed hands; the higher one is right.
	Generation uint32 `json:"generation"`
	// Claimed is when, in milliseconds since 1970. Of two claims of one generation, which only a database that lost data can
	// lead to, the older one is right: its node has had time to get pods.
	Claimed int64 `json:"claimed"`
}

// claimOf is the claim of this node that its record stands for.
func (s self) claimOf(id uint32, r *vppnode.VppNode) claim {
	c := claim{ID: id, Generation: r.GetGeneration(), Claimed: r.GetClaimedMs()}
	if s.uuid != "" {
		c.Generation = max(c.Generation, 1) // a record of contiv's becomes one with a proof
	}
	return c
}

// owns reports whether the record is this node's. A record without UUID, of contiv's or of an earlier version, is by name.
func (s self) owns(r *vppnode.VppNode) bool {
	if r == nil || r.GetName() != s.name {
		return false
	}
	return s.uuid == "" || r.GetUuid() == "" || r.GetUuid() == s.uuid
}

// verdict is what the database says about a claim.
type verdict int

const (
	// vacant: there is no record.
	vacant verdict = iota
	// mine: the record is this claim's.
	mine
	// newer: the record is this node's, of a later generation than it remembers.
	newer
	// weaker: the record is another claim's, which this one outranks.
	weaker
	// contested: another machine with this node's name has just claimed the ID, as one that was installed again does. It does not use the
	// ID yet, and this node, which is alive, must not let it.
	contested
	// released: another program has released the ID.
	released
	// lost: the record is another node's claim, which outranks this one.
	lost
)

// judge compares a claim with the record under its ID. Both sides of a conflict come to the same conclusion, in any order,
// from the two claims alone.
func judge(me self, c claim, there *vppnode.VppNode) verdict {
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

// outranks reports whether the claim is right and the record, of another node, is not.
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

// inUse says that the node of a record has gone further than to claim its ID.
func inUse(r *vppnode.VppNode) bool { return len(vppTexts(r)) > 0 }

// isReleased says that the record only keeps the memory of who had the ID.
func isReleased(r *vppnode.VppNode) bool { return r.GetReleasedMs() != 0 }
