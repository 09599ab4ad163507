package ipnet

import (
	"fmt"
	"slices"

	"contiv.dev/vswitch/plugins/contivconf"
)

// uplinkState describes the main interface as of the last resync.
type uplinkState struct {
	name string // as in contiv.conf; empty: VPP has none, or on Linux the NIC with the default route is used
	lone bool   // VPP has a loopback instead of a NIC, and the operator has not requested this
}

// MainInterface returns the interface that connects this node with the others, by its name in contiv.conf. It is empty where VPP has none,
// and on Linux if none is configured. Before the first resync it is the configured name. It may be called from any goroutine.
func (n *IPNet) MainInterface() string {
	if u := n.uplink.Load(); u != nil {
		return u.name
	}
	return n.ContivConf.Node().MainVPPInterface.InterfaceName
}

// setUplink is the fix for a VPP without a NIC.
const setUplink = "set mainVPPInterface in contiv.conf (defaultRoute, network or namePattern; standAlone for a cluster of one node), " +
	"or interfaceName in the node's section of nodeConfig"

// Connected returns the reason why this node cannot reach the existing other nodes: VPP has no NIC, and the configuration does not state
// that it needs none. It may be called from any goroutine.
func (n *IPNet) Connected() error {
	u, others := n.uplink.Load(), n.others.Load()
	if u == nil || !u.lone || others == 0 {
		return nil
	}
	return fmt.Errorf("VPP has no NIC, and there are %d other nodes: %s", others, setUplink)
}

// noteUplink stores the state of the main interface, and logs a warning whenever VPP changes to having no NIC.
func (n *IPNet) noteUplink(s *settings) {
	now := &uplinkState{name: s.mainIf.InterfaceName}
	now.lone = n.Dataplane == DataplaneVPP && now.name == "" && !n.ContivConf.Node().Uplink.StandAlone
	before := n.uplink.Swap(now)
	if now.lone && (before == nil || !before.lone) {
		n.Logger().Warn("VPP has no NIC: a loopback interface replaces it, and this node cannot reach other nodes", "fix", setUplink)
	}
}

// findUplink finds the main interface of a node whose section of contiv.conf does not set it: the NIC that is selected for the whole
// cluster, else the first NIC that VPP has from its start-up configuration.
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

// ownNIC returns the name of the only NIC that VPP has taken from the kernel and whose name in VPP matches; it is empty if there is no such
// NIC, or more than one.
func (n *IPNet) ownNIC(s *settings, u contivconf.Uplink) string {
	if len(u.NamePatterns) == 0 || len(u.Networks) > 0 || u.DefaultRoute {
		return "" // only the kernel's NICs can be selected by these
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

// freeNICs returns the names of VPP's NICs that have no other role.
func (n *IPNet) freeNICs(s *settings) ([]string, error) {
	if n.VPPNICs == nil {
		return nil, nil
	}
	names, err := n.VPPNICs.Names()
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(s.otherIfs, func(o contivconf.VPPInterface) bool { return o.InterfaceName == name })
	}), err
}
