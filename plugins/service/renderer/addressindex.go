package renderer

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/kube/svcmodel"
)

// This file is not part of the documented API. With it, an event of a node finds the few services that it affects.

// AddressIndex maps addresses to services, for example the addresses of backends that are not pods.
type AddressIndex map[netip.Addr]map[svcmodel.ID]struct{}

// Move replaces the addresses of a service; an empty list removes the service.
func (x AddressIndex) Move(id svcmodel.ID, before, after []netip.Addr) {
	if slices.Equal(before, after) {
		return
	}
	for _, addr := range before {
		if delete(x[addr], id); len(x[addr]) == 0 {
			delete(x, addr)
		}
	}
	for _, addr := range after {
		if x[addr] == nil {
			x[addr] = map[svcmodel.ID]struct{}{}
		}
		x[addr][id] = struct{}{}
	}
}

// At returns the services that have one of the addresses, sorted, without duplicates.
func (x AddressIndex) At(addrs []netip.Addr) []svcmodel.ID {
	var out []svcmodel.ID
	for _, addr := range addrs {
		for id := range x[addr] {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, svcmodel.ID.Compare)
	return slices.Compact(out)
}
