package uplink

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/plugins/contivconf"
)

// NIC is an interface of the host.
type NIC struct {
	Name         string
	Up           bool
	Part         bool // member of a bridge or a bond, which then counts as the NIC
	DefaultRoute bool
	MTU          int
	Addresses    []netip.Prefix
}

// ErrSeveral means that more than one NIC fits.
var ErrSeveral = errors.New("several NICs of this node match")

// Wanted holds the criteria for the NIC.
type Wanted struct {
	contivconf.Uplink
	Others []string // the kernel's names of NICs that have another role
	Before string   // the previously selected NIC, which is kept as long as it fits
}

// Select returns the one NIC that fits. It returns an error if several fit, since the choice cannot be guessed; but a NIC that was selected
// before remains selected when another one appears.
func Select(w Wanted, nics []NIC) (NIC, error) {
	var fit []NIC
	for _, n := range nics {
		if !n.Part && !slices.Contains(w.Others, n.Name) && w.fits(n) {
			fit = append(fit, n)
		}
	}
	if at := slices.IndexFunc(fit, func(n NIC) bool { return n.Name == w.Before }); at >= 0 {
		return fit[at], nil
	}
	if up := slices.DeleteFunc(slices.Clone(fit), func(n NIC) bool { return !n.Up }); len(up) > 0 {
		fit = up
	}
	switch len(fit) {
	case 0:
		return NIC{}, fmt.Errorf("no NIC of this node matches %s; it has %s", w.Uplink, list(nics))
	case 1:
		return fit[0], nil
	}
	return NIC{}, fmt.Errorf("%w %s: %s; make the condition more specific, or set interfaceName in the node's section of nodeConfig", ErrSeveral, w.Uplink,
		list(fit))
}

func (w Wanted) fits(n NIC) bool {
	inNetwork := len(w.Networks) == 0 || slices.ContainsFunc(w.Networks, func(p netip.Prefix) bool {
		return slices.ContainsFunc(n.Addresses, func(a netip.Prefix) bool { return p.Contains(a.Addr()) })
	})
	return inNetwork && w.MatchesName(n.Name) && (n.DefaultRoute || !w.DefaultRoute)
}

// list describes NICs for messages, sorted by name.
func list(nics []NIC) string {
	const most = 12
	nics = slices.SortedFunc(slices.Values(nics), func(a, b NIC) int { return cmp.Compare(a.Name, b.Name) })
	var parts []string
	for _, n := range nics {
		if n.Part {
			continue
		}
		if len(parts) == most {
			parts = append(parts, "and others")
			break
		}
		text := n.Name
		var notes []string
		for _, a := range n.Addresses {
			notes = append(notes, a.String())
		}
		if n.DefaultRoute {
			notes = append(notes, "default route")
		}
		if !n.Up {
			notes = append(notes, "down")
		}
		if len(notes) > 0 {
			text += " (" + strings.Join(notes, ", ") + ")"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
