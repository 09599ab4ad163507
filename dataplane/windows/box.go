package windataplane

// box is a conjunction of conditions on a packet that HNS can match. It becomes one rule, unless it exceeds the limits of a rule. A nil list
// is no condition; a list that is empty but not nil does not occur, because HNS would treat it as no condition.
type box struct {
	protocol      uint16 // 0: any
	local, remote netList
	// Ports are conditions only for protocols that have ports.
	localPorts, remotePorts portList
}

// all reports whether every packet matches.
func (b box) all() bool {
	return b.protocol == 0 && b.local == nil && b.remote == nil && b.localPorts == nil && b.remotePorts == nil
}

// anyAddress reports whether there is no condition on addresses, so that the box applies to both families.
func (b box) anyAddress() bool { return b.local == nil && b.remote == nil }

// and returns the intersection of two boxes; false: it is empty.
func (b box) and(c box) (box, bool) {
	switch {
	case b.protocol == 0:
		b.protocol = c.protocol
	case c.protocol != 0 && c.protocol != b.protocol:
		return box{}, false
	}
	if !intersectList(&b.local, c.local, netList.intersect) || !intersectList(&b.remote, c.remote, netList.intersect) ||
		!intersectList(&b.localPorts, c.localPorts, portList.intersect) || !intersectList(&b.remotePorts, c.remotePorts, portList.intersect) {
		return box{}, false
	}
	if b.local != nil && b.remote != nil && familyOf(b.local[0]) != familyOf(b.remote[0]) {
		return box{}, false
	}
	return b, true
}

// intersectList replaces a list by its intersection with another one, where nil means everything. It returns false if the result is empty.
func intersectList[L ~[]E, E any](into *L, with L, intersect func(a, b L) L) bool {
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
