package windataplane

// box is a conjunction of conditions on a packet, which HNS can match: one rule, except for its limits. A list that is nil is no condition;
// a list without elements does not occur, as HNS would take it for none.
type box struct {
	protocol      uint16 // 0: any
	local, remote netList
	// Ports are of protocols that have them.
	localPorts, remotePorts portList
}

// all says that every packet matches.
func (b box) all() bool {
	return b.protocol == 0 && b.local == nil && b.remote == nil && b.localPorts == nil && b.remotePorts == nil
}

// anyAddress says that there is no condition on addresses, so the box is for both families.
func (b box) anyAddress() bool { return b.local == nil && b.remote == nil }

// and is the box of what is in both; false: nothing is.
func (b box) and(c box) (box, bool) {
	switch {
	case b.protocol == 0:
		b.protocol = c.protocol
	case c.protocol != 0 && c.protocol != b.protocol:
		return box{}, false
	}
	if !meet(&b.local, c.local, netList.intersect) || !meet(&b.remote, c.remote, netList.intersect) ||
		!meet(&b.localPorts, c.localPorts, portList.intersect) || !meet(&b.remotePorts, c.remotePorts, portList.intersect) {
		return box{}, false
	}
	if b.local != nil && b.remote != nil && familyOf(b.local[0]) != familyOf(b.remote[0]) {
		return box{}, false
	}
	return b, true
}

// meet makes a list what is in both, where nil is everything. It is false if nothing is left.
func meet[L ~[]E, E any](into *L, with L, intersect func(a, b L) L) bool {
	switch {
	case with == nil:
	case *into == nil:
		*into = with
	default:
		*into = intersect(*into, with)
		return len(*into) > 0
	}
	return true
}
