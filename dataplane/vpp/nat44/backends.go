package nat44

import (
	"cmp"
	"net/netip"
	"slices"
)

// natBackend is a backend of a mapping, with its weight in VPP.
type natBackend struct {
	Addr   netip.Addr
	Port   uint16
	Weight uint8
	VRF    uint32
}

// natTarget identifies a backend in VPP.
type natTarget struct {
	addr netip.Addr
	port uint16
	vrf  uint32
}

func (b natBackend) target() natTarget { return natTarget{b.Addr, b.Port, b.VRF} }

// natMaxBackends is VPP's limit: VPP 25.10 counts the backends of a request, and adds up their weights, in eight bits. More than 255
// backends make VPP loop until its memory is exhausted; weights that add up to a multiple of 256 make VPP divide by zero at the first
// packet.
const natMaxBackends = 255

// natWeights scales the requested probabilities to VPP's eight bits. A backend with 0 gets no new connections; if all have 0, all get the
// same weight. The result is 0 for the backends to leave out.
func natWeights(requested []uint32) []uint8 {
	weights := make([]uint8, len(requested))
	var sum uint64
	for _, p := range requested {
		sum += uint64(p)
	}
	if sum == 0 {
		for i := range weights {
			weights[i] = 1
		}
		return weights
	}
	total := 0
	times := natScale(sum)
	for i, p := range requested {
		switch {
		case p == 0:
		case sum <= natMaxBackends:
			weights[i] = uint8(uint64(p) * times)
		default:
			weights[i] = uint8(max(1, uint64(p)*natMaxBackends/sum))
		}
		total += int(weights[i])
	}
	for total > natMaxBackends { // the small weights were rounded up
		i := slices.Index(weights, slices.Max(weights))
		weights[i]--
		total--
	}
	return weights
}

// natScale returns the factor by which probabilities are multiplied. VPP selects a backend by the remainder of a random number whose lowest
// bit simply alternates, and twice-NAT takes a second random number for the port: of two backends of weight 1, one would get all
// connections. With larger weights the higher bits decide. There are few factors, because for VPP other weights are another mapping; and
// the factors are odd, so that each backend has a share of both the even and the odd remainders.
func natScale(sum uint64) uint64 {
	for _, times := range []uint64{17, 7, 3} {
		if sum*times <= natMaxBackends {
			return times
		}
	}
	return 1
}

func sortBackends(list []natBackend) {
	slices.SortFunc(list, func(a, b natBackend) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Port, b.Port), cmp.Compare(a.VRF, b.VRF))
	})
}

// natHold returns a placeholder for the second backend that VPP requires: it is never selected, and has the same address, so that with
// several workers it is on the same worker as the only backend.
func natHold(b natBackend) natBackend { return natBackend{Addr: b.Addr, VRF: b.VRF} }

// placed returns the backends in VPP's order. Without affinity the order does not matter: the result is the backends, with a placeholder if
// there is only one. With affinity VPP stores the backend of a client by its index (place), uses that index even after the mapping was made
// again, and does not check whether it exists. So all places that VPP can count are filled, and every backend keeps its own; the places of
// a removed backend are shared among the others, starting with new ones. Only one place of each backend has a weight, so the others get no
// new clients.
func placed(before, backends []natBackend, affinity bool) []natBackend {
	if !affinity {
		places := slices.Clone(backends)
		if len(places) == 1 {
			places = append(places, natHold(places[0]))
		}
		return places
	}
	index := make(map[natTarget]int, len(backends))
	for i, b := range backends {
		index[b.target()] = i
	}
	holder := make([]int, natMaxBackends) // by place: index in backends
	first := make([]int, len(backends))   // by backend: the place with the weight
	for i := range first {
		first[i] = -1
	}
	var free []int
	for place := range holder {
		holder[place] = -1
		if place < len(before) {
			if i, ok := index[before[place].target()]; ok {
				holder[place] = i
				if first[i] < 0 || before[place].Weight > 0 {
					first[i] = place
				}
				continue
			}
		}
		free = append(free, place)
	}
	free = settle(holder, first, free)
	for n, place := range free {
		holder[place] = n % len(backends)
	}
	places := make([]natBackend, natMaxBackends)
	for place, i := range holder {
		places[place] = backends[i]
		if first[i] != place {
			places[place].Weight = 0
		}
	}
	return places
}

// settle gives a place to each backend that has none: a free one, otherwise the last place of a backend that has several.
func settle(holder, first, free []int) (left []int) {
	for i := range first {
		if first[i] >= 0 {
			continue
		}
		if len(free) > 0 {
			first[i], free = free[0], free[1:]
		} else {
			for place := len(holder) - 1; place >= 0; place-- {
				if first[holder[place]] != place {
					first[i] = place
					break
				}
			}
		}
		holder[first[i]] = i
	}
	return free
}

// natStep adds or deletes one backend.
type natStep struct {
	add     bool
	backend natBackend
}

// natSteps returns the requests that change some places to others, without affinity; false if that is not possible one by one: a weight
// would have to change, or the sum of all weights would be too large in between. VPP always keeps two backends.
func natSteps(from, to []natBackend) (steps []natStep, ok bool) {
	have := make(map[natTarget]uint8, len(from))
	sum := 0
	for _, b := range from {
		have[b.target()] = b.Weight
		sum += int(b.Weight)
	}
	count := len(from)
	for _, b := range to {
		w, there := have[b.target()]
		switch {
		case there && w != b.Weight:
			return nil, false
		case !there:
			steps = append(steps, natStep{true, b})
			sum += int(b.Weight)
			count++
		}
		delete(have, b.target())
	}
	if sum > natMaxBackends || count > natMaxBackends {
		return nil, false
	}
	for _, b := range from {
		if _, stays := have[b.target()]; stays {
			steps = append(steps, natStep{false, b})
			delete(have, b.target())
		}
	}
	return steps, true
}

// lost reports whether any step removes a backend that may have connections.
func lost(steps []natStep) bool {
	return slices.ContainsFunc(steps, func(s natStep) bool { return !s.add && s.backend.Weight > 0 })
}
