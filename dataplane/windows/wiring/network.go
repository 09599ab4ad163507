package wiring

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	windows_hns "contiv.dev/vswitch/dataplane/nb/windows/hns"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/windows/hcn"
)

// The node's own endpoints in the network.
const (
	gatewayEndpoint = "contiv-gateway"    // on an L2 bridge: the node has the address of the pods' gateway
	sourceEndpoint  = "contiv-source-vip" // on an overlay: the source of load balancers' connections
)

const defaultVxlanPort = 4789

func (w *Wiring) networkDescriptor() scheduler.Descriptor[*windows_hns.Network] {
	return scheduler.Descriptor[*windows_hns.Network]{
		Name: "hns-network", Prefix: nb.HNSNetworkPrefix, Rank: scheduler.RankTable,
		Validate: validateNetwork,
		Equal: func(_ string, desired, applied *windows_hns.Network) bool {
			return pb.Equal(comparable(desired), comparable(applied))
		},
		Create: func(op *scheduler.Op, _ string, n *windows_hns.Network) {
			op.Done(w.createNetwork(n))
		},
		CanUpdate: func(_ string, applied, desired *windows_hns.Network) bool {
			return pb.Equal(withoutOwn(desired), withoutOwn(applied))
		},
		Update: func(op *scheduler.Op, _ string, _, n *windows_hns.Network) {
			id := w.networks[n.GetName()]
			w.balanced = false // load balancers send from this endpoint
			op.Done(w.do("network "+n.GetName(), func() error { return w.replaceNodeEndpoint(id, n) }))
		},
		Delete: func(op *scheduler.Op, _ string, n *windows_hns.Network) {
			var err error
			if id, is := w.networks[n.GetName()]; is {
				err = w.do("network "+n.GetName(), func() error { return gone(w.HCN.DeleteNetwork(id)) })
			}
			if err == nil {
				delete(w.networks, n.GetName())
				w.balanced = false
			}
			op.Done(err)
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, *windows_hns.Network)) { op.Done(w.dumpNetworks(emit)) },
	}
}

func validateNetwork(_ string, n *windows_hns.Network) error {
	if n.GetType() == windows_hns.Network_OVERLAY && (n.GetVni() < 4096 || n.GetVni() > 65535) {
		return fmt.Errorf("vni %d: Windows takes 4096 to 65535; set vxlanVNI in contiv.conf of all nodes", n.GetVni())
	}
	if len(n.GetSubnets()) == 0 {
		return errors.New("subnets: a network has at least one")
	}
	six := ipv6Subnets(n)
	switch {
	case len(six) == len(n.GetSubnets()):
		return errors.New("Windows has no networks with IPv6 alone; add an IPv4 network to podSubnetCIDR in contiv.conf of all nodes")
	case len(six) > 0 && n.GetType() == windows_hns.Network_OVERLAY:
		return fmt.Errorf("subnet %s: Windows has no IPv6 in overlay networks; set nodeToNodeTransport to nooverlay, or remove the IPv6 network from "+
			"podSubnetCIDR, in contiv.conf of all nodes", six[0])
	}
	return nil
}

// ipv6Subnets returns the IPv6 subnets of a network.
func ipv6Subnets(n *windows_hns.Network) (out []string) {
	for _, s := range n.GetSubnets() {
		if p, err := netip.ParsePrefix(s.GetPrefix()); err == nil && p.Addr().Is6() {
			out = append(out, s.GetPrefix())
		}
	}
	return out
}

// checkIPv6 returns an error if this Windows does not support the address families of a network. It calls HNS.
func (w *Wiring) checkIPv6(n *windows_hns.Network) error {
	six := ipv6Subnets(n)
	if len(six) == 0 {
		return nil
	}
	features, err := w.HCN.Features()
	if err == nil && !features.IPv6DualStack {
		err = fmt.Errorf("subnet %s: this Windows has no IPv6 for containers; use Windows Server 2022 or later, or remove the IPv6 network from "+
			"podSubnetCIDR in contiv.conf of all nodes: %w", six[0], hcn.ErrUnsupported)
	}
	return err
}

// comparable returns a network without the settings that HNS does not show (the adapter has another name since the network uses it), and with
// its subnets in a fixed order and spelling, which HNS may change.
func comparable(n *windows_hns.Network) *windows_hns.Network {
	n = pb.CloneOf(n)
	n.Adapter, n.RouterMac, n.ProviderAddress = "", "", canonical(n.ProviderAddress)
	if n.VxlanPort == defaultVxlanPort {
		n.VxlanPort = 0
	}
	for _, s := range n.Subnets {
		s.Prefix, s.Gateway, s.Reserved = canonical(s.Prefix), canonical(s.Gateway), canonical(s.Reserved)
	}
	slices.SortFunc(n.Subnets, func(a, b *windows_hns.Subnet) int { return cmp.Compare(a.GetPrefix(), b.GetPrefix()) })
	return n
}

// withoutOwn returns a network without the addresses of the node's own endpoint, which can be replaced while the network stays.
func withoutOwn(n *windows_hns.Network) *windows_hns.Network {
	n = comparable(n)
	n.ProviderAddress = ""
	for _, s := range n.Subnets {
		if n.GetType() == windows_hns.Network_OVERLAY {
			s.Reserved = ""
		} else {
			s.Gateway = ""
		}
	}
	return n
}

// hnsGateway returns the gateway that HNS uses in a subnet.
func hnsGateway(n *windows_hns.Network, s *windows_hns.Subnet) string {
	if n.GetType() == windows_hns.Network_OVERLAY {
		return s.GetGateway()
	}
	return s.GetReserved()
}

func (w *Wiring) createNetwork(n *windows_hns.Network) error {
	spec, err := networkSpec(n)
	if err != nil {
		return err
	}
	made, err := within(w, "network "+n.GetName(), func() (hcn.Network, error) {
		if err := w.checkIPv6(n); err != nil {
			return hcn.Network{}, err
		}
		made, err := w.HCN.CreateNetwork(spec)
		if err != nil {
			return made, err
		}
		// The network stays if this fails, because its removal would disconnect the node once more. The next read of HNS finds it incomplete.
		return made, scheduler.OutcomeUnknown(w.nodeEndpoint(made.ID, n))
	})
	if err != nil {
		return err
	}
	w.networks[n.GetName()] = made.ID
	w.noteSubnets(made)
	w.checkRouterMAC(n, made)
	return nil
}

func networkSpec(n *windows_hns.Network) (hcn.Network, error) {
	spec := hcn.Network{Name: n.GetName(), Type: hcn.L2Bridge, SchemaVersion: hcn.V2}
	overlay := n.GetType() == windows_hns.Network_OVERLAY
	var p policies
	if n.GetAdapter() != "" {
		p.add(hcn.TypeNetAdapterName, hcn.NetAdapterNameSettings{NetworkAdapterName: n.GetAdapter()})
	}
	p.add(hcn.TypeHostRoute, nil)
	pool := hcn.IPAM{Type: "Static"}
	for _, s := range n.GetSubnets() {
		subnet := hcn.Subnet{IPAddressPrefix: s.GetPrefix(), Routes: []hcn.Route{defaultRoute(hnsGateway(n, s))}}
		if overlay {
			var vsid policies
			vsid.add(hcn.TypeVSID, hcn.VSIDSettings{IsolationID: n.GetVni()})
			subnet.Policies, p.err = vsid.list, errors.Join(p.err, vsid.err)
		}
		pool.Subnets = append(pool.Subnets, subnet)
	}
	if overlay {
		spec.Type = hcn.Overlay
		p.add(hcn.TypeDrMacAddress, hcn.DrMacAddressSettings{Address: dashed(n.GetRouterMac())})
		if port := n.GetVxlanPort(); port != 0 && port != defaultVxlanPort {
			p.add(hcn.TypeVxlanPort, hcn.VxlanPortSettings{Port: uint16(port)})
		}
	}
	spec.Policies, spec.IPAMs = p.list, []hcn.IPAM{pool}
	return spec, p.err
}

// checkRouterMAC logs an error if the router MAC address differs from the requested one: other nodes send to the MAC address that is derived
// from this node's ID.
func (w *Wiring) checkRouterMAC(n *windows_hns.Network, made hcn.Network) {
	list, err := hcn.SettingsOf[hcn.DrMacAddressSettings](made.Policies, hcn.TypeDrMacAddress)
	if err != nil || n.GetType() != windows_hns.Network_OVERLAY || len(list) == 0 || list[0].Address == dashed(n.GetRouterMac()) {
		return
	}
	w.Log.Error("HNS has given the overlay a MAC address that differs from the requested one: other nodes cannot send to the pods of this one; "+
		"report it with the version of Windows", "network", n.GetName(), "desired", dashed(n.GetRouterMac()), "actual", list[0].Address)
}

// replaceNodeEndpoint replaces the node's endpoint in the network, if it differs or does not work.
func (w *Wiring) replaceNodeEndpoint(network string, n *windows_hns.Network) error {
	list, err := w.HCN.ListEndpoints()
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.HostComputeNetwork != network || e.Name != gatewayEndpoint && e.Name != sourceEndpoint {
			continue
		}
		if e.HostComputeNamespace != "" {
			if err := gone(w.HCN.DetachEndpoint(e.HostComputeNamespace, e.ID)); err != nil {
				return fmt.Errorf("endpoint %s: %w", e.Name, err)
			}
		}
		if err := gone(w.HCN.DeleteEndpoint(e.ID)); err != nil {
			return fmt.Errorf("endpoint %s: %w", e.Name, err)
		}
	}
	return w.nodeEndpoint(network, n)
}

// nodeEndpoint makes the node's own endpoint in the network. It runs on its own goroutine, like hostNamespace.
func (w *Wiring) nodeEndpoint(network string, n *windows_hns.Network) error {
	e := hcn.Endpoint{Name: gatewayEndpoint, HostComputeNetwork: network, SchemaVersion: hcn.V2}
	overlay := n.GetType() == windows_hns.Network_OVERLAY
	if overlay {
		e.Name = sourceEndpoint
		var p policies
		if n.GetProviderAddress() != "" {
			p.add(hcn.TypeProviderAddr, hcn.ProviderAddressSettings{ProviderAddress: n.GetProviderAddress()})
		}
		if p.err != nil {
			return p.err
		}
		e.Policies = p.list
	}
	for _, s := range n.GetSubnets() {
		address := s.GetGateway()
		if overlay {
			address = s.GetReserved()
		}
		e.IPConfigurations = append(e.IPConfigurations, ipConfig(address, s.GetPrefix()))
	}
	made, err := w.HCN.CreateEndpoint(e)
	if err != nil {
		return fmt.Errorf("endpoint %s: %w", e.Name, err)
	}
	if overlay {
		return nil
	}
	host, err := w.hostNamespace()
	if err == nil {
		err = w.HCN.AttachEndpoint(host, made.ID)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("endpoint %s: %w", e.Name, err), w.HCN.DeleteEndpoint(made.ID))
	}
	return nil
}

// hostNamespace returns the ID of the node's own namespace, and makes the namespace if it does not exist.
func (w *Wiring) hostNamespace() (string, error) {
	list, err := w.HCN.ListNamespaces()
	if err != nil {
		return "", err
	}
	for _, ns := range list {
		if ns.Type == hcn.NamespaceHostDefault {
			return ns.ID, nil
		}
	}
	made, err := w.HCN.CreateNamespace(hcn.Namespace{Type: hcn.NamespaceHostDefault, SchemaVersion: hcn.V2})
	return made.ID, err
}

// dumpNetworks emits our network, and stores its ID.
func (w *Wiring) dumpNetworks(emit func(string, *windows_hns.Network)) error {
	has, err := w.read()
	if err != nil {
		return err
	}
	clear(w.networks)
	for _, n := range has.networks {
		if n.Name != w.Network {
			continue
		}
		w.networks[n.Name] = n.ID
		w.noteSubnets(n)
		name := sourceEndpoint
		if n.Type != hcn.Overlay {
			name = gatewayEndpoint
		}
		i := slices.IndexFunc(has.endpoints, func(e hcn.Endpoint) bool {
			return e.Name == name && e.HostComputeNetwork == n.ID && (n.Type == hcn.Overlay || e.HostComputeNamespace != "")
		})
		var own hcn.Endpoint
		if i >= 0 {
			own = has.endpoints[i]
		}
		v, err := readNetwork(n, own)
		if err != nil {
			return fmt.Errorf("network %s: %w", n.Name, err)
		}
		if v.ProviderAddress, err = providerOf(own); err != nil { // the node's endpoint is made again
			w.Log.Warn("HNS shows a provider address in a form that is not known", "endpoint", own.Name, "error", err)
		}
		emit(nb.HNSNetworkKey(n.Name), v)
	}
	return nil
}

func readNetwork(n hcn.Network, own hcn.Endpoint) (*windows_hns.Network, error) {
	v := &windows_hns.Network{Name: n.Name}
	if n.Type == hcn.Overlay {
		v.Type = windows_hns.Network_OVERLAY
	}
	ports, err := hcn.SettingsOf[hcn.VxlanPortSettings](n.Policies, hcn.TypeVxlanPort)
	if err != nil {
		return nil, err
	}
	if len(ports) > 0 {
		v.VxlanPort = uint32(ports[0].Port)
	}
	for _, pool := range n.IPAMs {
		for _, s := range pool.Subnets {
			subnet := &windows_hns.Subnet{Prefix: s.IPAddressPrefix}
			ofHNS, ofNode := "", addressIn(own, s.IPAddressPrefix)
			if len(s.Routes) > 0 {
				ofHNS = s.Routes[0].NextHop
			}
			subnet.Gateway, subnet.Reserved = ofHNS, ofNode
			if n.Type != hcn.Overlay {
				subnet.Gateway, subnet.Reserved = ofNode, ofHNS
			}
			vsids, err := hcn.SettingsOf[hcn.VSIDSettings](s.Policies, hcn.TypeVSID)
			if err != nil {
				return nil, err
			}
			if len(vsids) > 0 {
				v.Vni = vsids[0].IsolationID
			}
			v.Subnets = append(v.Subnets, subnet)
		}
	}
	return v, nil
}

// addressIn returns the address of an endpoint in a subnet; "": none.
func addressIn(e hcn.Endpoint, subnet string) string {
	p, err := netip.ParsePrefix(subnet)
	if err != nil {
		return ""
	}
	for _, c := range e.IPConfigurations {
		if a, err := netip.ParseAddr(c.IPAddress); err == nil && p.Contains(a) {
			return c.IPAddress
		}
	}
	return ""
}

func (w *Wiring) noteSubnets(n hcn.Network) {
	w.subnets = nil
	for _, pool := range n.IPAMs {
		for _, s := range pool.Subnets {
			if p, err := netip.ParsePrefix(s.IPAddressPrefix); err == nil {
				w.subnets = append(w.subnets, p)
			}
		}
	}
}
