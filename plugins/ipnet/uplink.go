package ipnet

import (
	"fmt"
	"slices"

	"contiv.dev/vswitch/plugins/contivconf"
)

// uplinkState is what is known of the main interface since a resync.
type uplinkState struct {
	name string // as in contiv.conf; empty: VPP has none, or on Linux that of the default route
	lone bool   // VPP has a loopback in its place, which the operator has not asked for
}

// MainInterface is the interface that connects this node with the others, by the name that contiv.conf would have for it; empty
// before the first resync, where VPP has none, and on Linux where nothing is configured. From any goroutine.
func (n *IPNet) MainInterface() string {
	if u := n.uplink.Load(); u != nil {
		return u.name
	}
	return n.ContivConf.Node().MainVPPInterface.InterfaceName
}

// setUplink is what to do about a VPP without a NIC.
const setUplink = "set mainVPPInterface in contiv.conf (defaultRoute, network or namePattern; standAlone for a node that is alone), " +
	"or interfaceName in the node's section of nodeConfig"

// Connected reports why this node cannot reach the other nodes that there are: VPP has no NIC, and the configuration does not say that it
// needs none. From any goroutine.
func (n *IPNet) Connected() error {
	u, others := n.uplink.Load(), n.others.Load()
	if u == nil || !u.lone || others == 0 {
		return nil
	}
	return fmt.Errorf("VPP has no NIC, and there are %d other nodes: %s", others, setUplink)
}

// noteUplink warns when VPP has to do without a NIC, each time that this becomes so.
func (n *IPNet) noteUplink(s *settings) {
	now := &uplinkState{name: s.mainIf.InterfaceName}
	now.lone = n.Dataplane == DataplaneVPP && now.name == "" && !n.ContivConf.Node().Uplink.StandAlone
	before := n.uplink.Swap(now)
	if now.lone && (before == nil || !before.lone) {
		n.Logger().Warn("VPP has no NIC: a loopback takes its place, and this node reaches no other one", "fix", setUplink)
	}
}

// findUplink finds the main interface of a node whose section of contiv.conf names none: the NIC that is selected for the whole
// cluster, else the first NIC that VPP has by its start-up configuration.
func (n *IPNet) findUplink(s *settings, node contivconf.NodeConfig) error {
	switch {
	case s.mainIf.InterfaceName != "":
		return nil
	case !node.Uplink.Selects():
		return n.firstNIC(s)
	case n.Uplinks == nil:
		return fmt.Errorf("main interface: %s: this agent cannot look for NICs", node.Uplink)
	}
	name, err := n.Uplinks.Find()
	if err != nil {
		if own := n.ownNIC(s, node.Uplink); own != "" {
			s.mainIf.InterfaceName = own
			return nil
		}
		return fmt.Errorf("main interface: %w", err)
	}
	if n.Dataplane == DataplaneVPP {
		name = afPacketName + name
	}
	s.mainIf.InterfaceName = name
	return nil
}

// ownNIC is the one NIC that VPP has taken from the kernel and whose name in VPP is selected; empty if there is none, or if they
// are several.
func (n *IPNet) ownNIC(s *settings, u contivconf.Uplink) string {
	if len(u.NamePatterns) == 0 || len(u.Networks) > 0 || u.DefaultRoute {
		return "" // only the kernel's NICs have those
	}
	names, err := n.freeNICs(s)
	if err != nil {
		return ""
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !u.MatchesName(name) })
	if len(names) != 1 {
		return ""
	}
	return names[0]
}

// firstNIC makes the first of VPP's NICs the main interface.
func (n *IPNet) firstNIC(s *settings) error {
	names, err := n.freeNICs(s)
	if err != nil {
		return fmt.Errorf("main interface: %w", err)
	}
	if len(names) > 0 {
		s.mainIf.InterfaceName = names[0]
	}
	return nil
}

// freeNICs are those that VPP has and that have no other role.
func (n *IPNet) freeNICs(s *settings) ([]string, error) {
	if n.VPPNICs == nil {
		return nil, nil
	}
	names, err := n.VPPNICs.Names()
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(s.otherIfs, func(o contivconf.VPPInterface) bool { return o.InterfaceName == name })
	}), err
}
