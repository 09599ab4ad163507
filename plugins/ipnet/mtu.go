package ipnet

import (
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/plugins/podmanager"
)

// The MTU of pods follows the MTU of the uplink, which the operator may change at any time: the interfaces of existing pods get the new MTU
// in place. At start the agent rejects a configuration that does not fit. A running agent continues with an MTU that fits, since its pods
// are running, too.

// minMTU and minMTUIPv6 are the least MTU that IPv4 (RFC 791) and IPv6 (RFC 8200) require of a link.
const (
	minMTU     = 576
	minMTUIPv6 = 1280
)

// checkMTU makes sure that pods' packets fit into the uplink and into the pods' own links: a configured MTU must fit, a default one is
// reduced to an MTU that fits.
func (n *IPNet) checkMTU(s *settings, isDefault bool) error {
	if n.Dataplane == DataplaneVPP && !s.useTAP && s.mtu > nb.MaxVethMTU {
		return fmt.Errorf("mtuSize %d does not fit: VPP takes at most %d bytes from a VETH; use less, or useTAPInterfaces: true",
			s.mtu, nb.MaxVethMTU)
	}
	uplinkMTU := s.uplink().MTU
	if uplinkMTU == 0 {
		return nil
	}
	overhead := uint32(s.transport.Overhead(&s.local))
	least := uint32(minMTU)
	if len(s.podSubnets) > 0 && !s.podSubnets[len(s.podSubnets)-1].Subnet.Addr().Is4() {
		least = minMTUIPv6
	}
	var fault error
	if uplinkMTU < overhead+least {
		fault = fmt.Errorf("the uplink's MTU of %d leaves less than %d bytes for pods' packets (%d are the overlay's); raise it",
			uplinkMTU, least, overhead)
	}
	s.fits = max(uplinkMTU, overhead+least) - overhead
	switch {
	case isDefault && n.Dataplane == DataplaneVPP && !s.useTAP:
		s.mtu = min(s.fits, nb.MaxVethMTU)
	case isDefault:
		s.mtu = s.fits
	case s.mtu > s.fits && fault == nil:
		fault = fmt.Errorf("mtuSize %d does not fit: packets on the uplink may have %d bytes, of which the overlay takes %d; "+
			"use %d or less, or leave mtuSize out", s.mtu, uplinkMTU, overhead, s.fits)
	}
	if fault == nil {
		return nil
	}
	if n.settings == nil {
		return fault
	}
	s.mtu = min(s.mtu, s.fits)
	s.mtuFault = fault
	return nil
}

// noteMTU stores the result of MTUFits and logs it when it has changed.
func (n *IPNet) noteMTU(s *settings) {
	fault := s.mtuFault
	if large := largerThan(s.fits, n.pods); fault == nil && len(large) > 0 {
		fault = fmt.Errorf("the network configuration of pods requests a larger MTU than the uplink supports (%d bytes): %s; "+
			"lower mtu in the CNI configuration and create these pods again, or raise the uplink's MTU", s.fits, list(large))
	}
	was := n.mtuFault.Swap(&fault)
	switch before := was != nil && *was != nil; {
	case fault != nil && (!before || (*was).Error() != fault.Error()):
		n.Logger().Warn("the uplink's MTU is too small; packets that are too long are dropped, and their senders get ICMP errors", "error", fault)
	case fault == nil && before:
		n.Logger().Info("packets of all pods fit into the uplink's MTU again")
	}
}

// largerThan returns the names of the pods whose own MTU is larger than fits.
func largerThan(fits uint32, pods map[podmanager.AttachmentID]*podLink) []string {
	var out []string
	for _, p := range pods {
		if fits > 0 && p.mtu > fits {
			out = append(out, p.attachment.Pod.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// list joins the first few names.
func list(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// MTUFits returns the reason why packets of pods do not fit into the uplink's MTU, or nil. It may be called from any goroutine.
func (n *IPNet) MTUFits() error {
	if fault := n.mtuFault.Load(); fault != nil {
		return *fault
	}
	return nil
}
