package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/plugins/podmanager"
)

// allocations maps attachments to their addresses: one per family, from the pools of this node. Not safe for concurrent use.
type allocations struct {
	pools []*pool // one per family, IPv4 before IPv6
	byID  map[podmanager.AttachmentID][]netip.Addr
	byIP  map[netip.Addr]podmanager.AttachmentID
}

func newAllocations(subnets []PodSubnet) *allocations {
	a := &allocations{byID: map[podmanager.AttachmentID][]netip.Addr{}, byIP: map[netip.Addr]podmanager.AttachmentID{}}
	for _, s := range subnets {
		a.pools = append(a.pools, newPool(s.Subnet))
	}
	return a
}

// allocate allocates an address of each family in which the attachment has none yet; if this fails, it changes nothing.
func (a *allocations) allocate(id podmanager.AttachmentID) ([]netip.Addr, error) {
	have := a.byID[id]
	addrs := make([]netip.Addr, 0, len(a.pools))
	fresh := make([]netip.Addr, 0, len(a.pools))
	for _, p := range a.pools {
		if old, ok := ofFamily(have, p); ok {
			addrs = append(addrs, old)
			continue
		}
		addr, err := p.allocate()
		if err != nil {
			for _, f := range fresh {
				a.free(f)
			}
			return nil, err
		}
		a.byIP[addr] = id
		addrs, fresh = append(addrs, addr), append(fresh, addr)
	}
	for _, old := range have { // of a family that is no longer in use
		if !slices.Contains(addrs, old) {
			addrs = append(addrs, old)
		}
	}
	a.byID[id] = addrs
	return addrs, nil
}

// ofFamily returns the address of the pool's family.
func ofFamily(addrs []netip.Addr, p *pool) (netip.Addr, bool) {
	for _, addr := range addrs {
		if addr.Is4() == p.first.Is4() {
			return addr, true
		}
	}
	return netip.Addr{}, false
}

// recordAddresses records the addresses that the attachment had before a restart. Addresses that this node would no longer allocate stay with the
// attachment, since its pod uses them, and are reported.
func (a *allocations) recordAddresses(id podmanager.AttachmentID, addrs []netip.Prefix) error {
	var errs []error
	for _, prefix := range addrs {
		addr := prefix.Addr().Unmap()
		if owner, taken := a.byIP[addr]; taken {
			if owner != id {
				errs = append(errs, fmt.Errorf("address %s of attachment %s belongs to attachment %s already; delete the pod of one "+
					"of the two", addr, id, owner))
			}
			continue
		}
		a.byIP[addr] = id
		a.byID[id] = append(a.byID[id], addr)
		if !a.take(addr) {
			errs = append(errs, fmt.Errorf("address %s of attachment %s is not one for pods of this node (%s); recreate the pod, "+
				"or undo the change of ipamConfig or of the node ID", addr, id, a.subnetNames()))
		}
	}
	return errors.Join(errs...)
}

func (a *allocations) take(addr netip.Addr) bool {
	for _, p := range a.pools {
		if p.take(addr) {
			return true
		}
	}
	return false
}

func (a *allocations) release(id podmanager.AttachmentID) []netip.Addr {
	addrs := a.byID[id]
	for _, addr := range addrs {
		a.free(addr)
	}
	delete(a.byID, id)
	return addrs
}

// restore releases the addresses of the attachment that it did not have before; had holds those that it had.
func (a *allocations) restore(id podmanager.AttachmentID, had []netip.Addr) {
	if len(had) == 0 {
		a.release(id)
		return
	}
	for _, addr := range a.byID[id] {
		if !slices.Contains(had, addr) {
			a.free(addr)
		}
	}
	a.byID[id] = had
}

func (a *allocations) free(addr netip.Addr) {
	for _, p := range a.pools {
		p.release(addr)
	}
	delete(a.byIP, addr)
}

// goOnAfter makes the addresses the last allocated ones.
func (a *allocations) goOnAfter(addrs []netip.Addr) {
	for _, p := range a.pools {
		for _, addr := range addrs {
			p.goOnAfter(addr)
		}
	}
}

// inherit continues at the position of old, if the node's slices are the same.
func (a *allocations) inherit(old *allocations) {
	for i, p := range a.pools {
		if i < len(old.pools) && old.pools[i].subnet == p.subnet {
			p.next = old.pools[i].next
		}
	}
}

func (a *allocations) subnetNames() string {
	text := "pod subnet"
	for _, p := range a.pools {
		text += " " + p.subnet.String()
	}
	return text
}
