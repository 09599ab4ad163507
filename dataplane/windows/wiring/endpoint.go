package wiring

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	windows_hns "contiv.dev/vswitch/dataplane/nb/windows/hns"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/windows/hcn"
)

// PodPrefix is the prefix of the names of pods' endpoints.
const PodPrefix = "contiv-pod-"

func (w *Wiring) endpointDescriptor() scheduler.Descriptor[*windows_hns.Endpoint] {
	return scheduler.Descriptor[*windows_hns.Endpoint]{
		Name: "hns-endpoint", Prefix: nb.HNSEndpointPrefix, Rank: scheduler.RankInterface,
		Validate: func(_ string, e *windows_hns.Endpoint) error {
			if !strings.HasPrefix(e.GetName(), PodPrefix) || e.GetNamespace() == "" || len(e.GetAddresses()) == 0 {
				return fmt.Errorf("name, namespace, addresses: an endpoint has all of them, and its name begins with %s", PodPrefix)
			}
			return nil
		},
		Deps: func(_ string, e *windows_hns.Endpoint, add func(string)) { add(nb.HNSNetworkKey(e.GetNetwork())) },
		Equal: func(_ string, a, b *windows_hns.Endpoint) bool {
			return sameEndpoint(a, b) && sameNAT(a, b) && sameNode(a, b)
		},
		Create: func(op *scheduler.Op, _ string, e *windows_hns.Endpoint) {
			op.Done(w.createEndpoint(e))
		},
		CanUpdate: func(_ string, applied, desired *windows_hns.Endpoint) bool {
			return sameEndpoint(applied, desired) && (!w.rigid || sameNode(applied, desired))
		},
		Update: func(op *scheduler.Op, _ string, applied, e *windows_hns.Endpoint) {
			op.Done(w.changeEndpoint(applied, e))
		},
		Delete: func(op *scheduler.Op, _ string, e *windows_hns.Endpoint) {
			op.Done(w.deleteEndpoint(e))
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, *windows_hns.Endpoint)) { op.Done(w.dumpEndpoints(emit)) },
	}
}

// sameEndpoint compares the settings that cannot be changed in place. A pod's DNS stays as it was when it was connected.
func sameEndpoint(a, b *windows_hns.Endpoint) bool {
	return a.GetNetwork() == b.GetNetwork() && strings.EqualFold(a.GetNamespace(), b.GetNamespace()) &&
		sameTexts(a.GetAddresses(), b.GetAddresses()) && colons(a.GetMac()) == colons(b.GetMac())
}

func sameNAT(a, b *windows_hns.Endpoint) bool {
	return sameTexts(a.GetNoNat(), b.GetNoNat())
}

// ipConfig returns an address with the prefix length of its subnet.
func ipConfig(address, subnet string) hcn.IPConfig {
	bits := 0
	if p, err := netip.ParsePrefix(subnet); err == nil {
		bits = p.Bits()
	} else if a, err := netip.ParseAddr(address); err == nil {
		bits = a.BitLen()
	}
	return hcn.IPConfig{IPAddress: address, PrefixLength: uint8(bits)}
}

func (w *Wiring) createEndpoint(e *windows_hns.Endpoint) error {
	network, ok := w.networks[e.GetNetwork()]
	if !ok {
		return hnsError("endpoint "+e.GetName(), fmt.Errorf("network %s: %w", e.GetNetwork(), hcn.ErrNotFound))
	}
	spec, err := endpointSpec(network, e)
	if err != nil {
		return err
	}
	id, err := within(w, "endpoint "+e.GetName(), func() (string, error) { return w.connect(e.GetNamespace(), spec) })
	if err != nil {
		return err
	}
	w.endpoints[e.GetName()] = id
	w.balanced = false
	return nil
}

// connect makes a closed endpoint in a namespace. It runs on its own goroutine.
func (w *Wiring) connect(namespace string, spec hcn.Endpoint) (id string, err error) {
	closed, err := w.Closed()
	if err != nil {
		return "", err
	}
	spec.Policies = append(spec.Policies, closed...)
	made, err := w.HCN.CreateEndpoint(spec)
	if err != nil {
		return "", err
	}
	if err := w.HCN.AttachEndpoint(namespace, made.ID); err != nil {
		return "", errors.Join(fmt.Errorf("namespace %s: %w", namespace, err), gone(w.HCN.DeleteEndpoint(made.ID)))
	}
	return made.ID, nil
}

func endpointSpec(network string, e *windows_hns.Endpoint) (hcn.Endpoint, error) {
	spec := hcn.Endpoint{
		Name: e.GetName(), HostComputeNetwork: network, MacAddress: dashed(e.GetMac()), SchemaVersion: hcn.V2,
		DNS: hcn.DNS{Domain: e.GetDnsDomain(), Search: e.GetDnsSearch(), ServerList: e.GetDnsServers()},
	}
	var p policies
	if len(e.GetNoNat()) > 0 {
		p.add(hcn.TypeOutBoundNAT, hcn.OutboundNATSettings{Exceptions: e.GetNoNat()})
	}
	for _, dst := range e.GetThroughSwitch() {
		p.add(hcn.TypeSDNRoute, hcn.SDNRouteSettings{DestinationPrefix: dst, NeedEncap: true})
	}
	if e.GetProviderAddress() != "" {
		p.add(hcn.TypeProviderAddr, hcn.ProviderAddressSettings{ProviderAddress: e.GetProviderAddress()})
	}
	for _, a := range e.GetAddresses() {
		spec.IPConfigurations = append(spec.IPConfigurations, ipConfig(a, ""))
	}
	for _, gw := range e.GetGateways() {
		spec.Routes = append(spec.Routes, defaultRoute(gw))
	}
	spec.Policies = p.list
	return spec, p.err
}

func (w *Wiring) deleteEndpoint(e *windows_hns.Endpoint) error {
	id, ok := w.endpoints[e.GetName()]
	if !ok {
		return nil
	}
	err := w.do("endpoint "+e.GetName(), func() error {
		if e.GetNamespace() != "" { // an agent that was killed may have left an endpoint without a namespace: HNS has no namespace of that ID
			if err := gone(w.HCN.DetachEndpoint(e.GetNamespace(), id)); err != nil {
				return err
			}
		}
		return gone(w.HCN.DeleteEndpoint(id))
	})
	if err != nil {
		return err
	}
	delete(w.endpoints, e.GetName())
	w.balanced = false
	return nil
}

// state holds the networks and endpoints of HNS.
type state struct {
	networks  []hcn.Network
	endpoints []hcn.Endpoint
}

// read reads the networks and endpoints of HNS.
func (w *Wiring) read() (state, error) {
	return within(w, "list of networks and endpoints", func() (s state, err error) {
		if s.networks, err = w.HCN.ListNetworks(); err == nil {
			s.endpoints, err = w.HCN.ListEndpoints()
		}
		return s, err
	})
}

// dumpEndpoints emits the pods' endpoints, and stores their IDs.
func (w *Wiring) dumpEndpoints(emit func(string, *windows_hns.Endpoint)) error {
	has, err := w.read()
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, n := range has.networks {
		names[n.ID] = n.Name
	}
	clear(w.endpoints)
	for _, e := range has.endpoints {
		if !strings.HasPrefix(e.Name, PodPrefix) || names[e.HostComputeNetwork] != w.Network {
			continue
		}
		w.endpoints[e.Name] = e.ID
		v := &windows_hns.Endpoint{
			Name: e.Name, Network: w.Network, Namespace: e.HostComputeNamespace, Mac: colons(e.MacAddress),
			DnsServers: e.DNS.ServerList, DnsDomain: e.DNS.Domain, DnsSearch: e.DNS.Search,
		}
		for _, c := range e.IPConfigurations {
			v.Addresses = append(v.Addresses, c.IPAddress)
		}
		nat, err := hcn.SettingsOf[hcn.OutboundNATSettings](e.Policies, hcn.TypeOutBoundNAT)
		if err != nil { // the endpoint is written again
			w.Log.Warn("HNS shows an endpoint's outbound NAT in a form that is not known", "endpoint", e.Name, "error", err)
		}
		for _, n := range nat {
			v.NoNat = append(v.NoNat, n.Exceptions...)
		}
		if err := readNode(e, v); err != nil {
			w.Log.Warn("HNS shows an endpoint's routes or provider address in a form that is not known", "endpoint", e.Name, "error", err)
		}
		emit(nb.HNSEndpointKey(e.Name), v)
	}
	return nil
}

// routeDescriptor returns the descriptor of the node's own routes.
func (w *Wiring) routeDescriptor() scheduler.Descriptor[*windows_hns.HostRoute] {
	read := func(r *windows_hns.HostRoute) (out HostRoute, err error) {
		if out.Destination, err = netip.ParsePrefix(r.GetDestination()); err != nil {
			return out, fmt.Errorf("destination: %w", err)
		}
		if out.NextHop, err = netip.ParseAddr(r.GetNextHop()); err != nil {
			return out, fmt.Errorf("next_hop: %w", err)
		}
		return out, nil
	}
	do := func(op *scheduler.Op, r *windows_hns.HostRoute, call func(HostRoute) error) {
		route, err := read(r)
		if err == nil {
			err = w.do("route to "+r.GetDestination(), func() error { return call(route) })
		}
		op.Done(err)
	}
	return scheduler.Descriptor[*windows_hns.HostRoute]{
		Name: "windows-host-route", Prefix: nb.HNSHostRoutePrefix, Rank: scheduler.RankRoute,
		Validate: func(_ string, r *windows_hns.HostRoute) error { _, err := read(r); return err },
		Equal:    func(_ string, a, b *windows_hns.HostRoute) bool { return pb.Equal(a, b) },
		Create:   func(op *scheduler.Op, _ string, r *windows_hns.HostRoute) { do(op, r, w.Routes.Add) },
		Delete:   func(op *scheduler.Op, _ string, r *windows_hns.HostRoute) { do(op, r, w.Routes.Remove) },
		Dump: func(op *scheduler.DumpOp, emit func(string, *windows_hns.HostRoute)) {
			list, err := within(w, "list of routes", w.Routes.List)
			for _, r := range list {
				v := &windows_hns.HostRoute{Destination: r.Destination.String(), NextHop: r.NextHop.String()}
				emit(nb.HNSHostRouteKey(v.Destination), v)
			}
			op.Done(err)
		},
	}
}
