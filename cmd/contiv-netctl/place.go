package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
)

// placesHelp explains FROM and TO.
const placesHelp = "A pod is [NAMESPACE/]NAME, a service svc/[NAMESPACE/]NAME[:PORT], an address ADDR or ADDR:PORT " +
	"([ADDR]:PORT for IPv6).\nOther names are resolved as services, with or without \"svc/\"."

// place is a source or destination of packets: a pod, a node, or another address.
type place struct {
	text  string
	node  string // node of the place; empty if it is not known
	pod   *podRow
	addrs []netip.Addr
}

// find resolves [NAMESPACE/]POD, a node's name or an address.
func find(c *client.Cluster, pods []podRow, text string) (place, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		p := place{text: text, addrs: []netip.Addr{addr.Unmap()}}
		for i := range pods {
			if pods[i].Current && slices.ContainsFunc(pods[i].Addresses, func(a netip.Prefix) bool { return a.Addr() == addr }) {
				p.node, p.pod = pods[i].Node, &pods[i]
			}
		}
		return p, nil
	}
	for _, n := range c.Nodes().Nodes {
		if n.Name == text && n.State == "claimed" {
			return nodePlace(n.Name, append(slices.Clone(n.MgmtIPs), n.VPPIPs...)), nil
		}
	}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok {
		namespace, name = "default", text
	}
	for i := range pods {
		p := &pods[i]
		// The name of a pod without Kubernetes is its container's ID; a prefix of it is enough.
		alone := !ok && p.Namespace == "" && len(text) >= minID && strings.HasPrefix(p.Name, text)
		if p.Current && (p.Namespace == namespace && p.Name == name || alone) {
			out := place{text: p.ID(), node: p.Node, pod: p}
			for _, a := range p.Addresses {
				out.addrs = append(out.addrs, a.Addr())
			}
			return out, nil
		}
	}
	return place{}, fmt.Errorf("%w %q: not a pod (NAMESPACE/NAME), a node or an address; contiv-netctl pods and nodes list them",
		errNoPlace, text)
}

// minID is the shortest prefix of a container's ID that identifies a pod.
const minID = 4

var (
	errNoPlace   = errors.New("unknown name")
	errNoService = errors.New("serves no service")
)

// serviceID returns [NAMESPACE/]NAME[:PORT] as NAMESPACE/NAME.
func serviceID(text string) string {
	id, _, _ := strings.Cut(text, ":")
	if !strings.Contains(id, "/") {
		id = "default/" + id
	}
	return id
}

// destination resolves a destination. Unlike find, it accepts a port and services.
func (f *probeFlags) destination(ctx context.Context, c *client.Cluster, agent *client.Agent, pods []podRow, text string,
) (place, error) {
	if to, err := netip.ParseAddrPort(text); err == nil {
		if err := f.setPort(to.Port(), "tcp"); err != nil {
			return place{}, err
		}
		text = to.Addr().String()
	}
	name, explicit := strings.CutPrefix(text, "svc/")
	if !explicit {
		p, err := find(c, pods, text)
		if !errors.Is(err, errNoPlace) {
			if err == nil && f.port == 0 && f.proto == "" && p.node == "" {
				return f.serviceAt(ctx, agent, p)
			}
			return p, err
		}
		p, errService := f.serviceNamed(ctx, agent, text)
		if errors.Is(errService, errNoService) {
			return p, fmt.Errorf("%w %q: not a pod (NAMESPACE/NAME), a node or an address, and node %s serves no service %s; "+
				"contiv-netctl pods, nodes and services list them", errNoPlace, text, agent.Name, serviceID(text))
		}
		return p, errService
	}
	return f.serviceNamed(ctx, agent, name)
}

// setPort sets the port of the destination, which must not differ from the one in --port.
func (f *probeFlags) setPort(port uint16, proto string) error {
	if f.port != 0 && f.port != port {
		return fmt.Errorf("--port %d, and the destination has port %d: give one of them", f.port, port)
	}
	f.port = port
	if f.proto == "" {
		f.proto = proto
	}
	return nil
}

// serviceNamed finds [NAMESPACE/]NAME[:PORT], where PORT is a name or a number, among the services of the sender's node.
func (f *probeFlags) serviceNamed(ctx context.Context, agent *client.Agent, text string) (place, error) {
	_, port, _ := strings.Cut(text, ":")
	namespace, name, _ := strings.Cut(serviceID(text), "/")
	var rows []serviceRow
	query := url.Values{"namespace": {namespace}, "name": {name}}
	if err := agent.Get(ctx, servicesPath+"?"+query.Encode(), &rows); err != nil {
		return place{}, err
	}
	if len(rows) == 0 {
		return place{}, fmt.Errorf("node %s %w %s/%s; contiv-netctl services lists those that it serves (headless "+
			"services have no address)", agent.Name, errNoService, namespace, name)
	}
	return f.toService(&rows[0], port, rows[0].ClusterIPs)
}

// serviceAt checks whether an address without a port belongs to a service.
func (f *probeFlags) serviceAt(ctx context.Context, agent *client.Agent, p place) (place, error) {
	var rows []serviceRow
	if err := agent.Get(ctx, servicesPath, &rows); err != nil && !notThere(err) {
		return p, err
	}
	for i := range rows {
		for _, text := range slices.Concat(rows[i].ClusterIPs, rows[i].ExternalIPs, rows[i].LoadBalancerIPs) {
			if addr, err := netip.ParseAddr(text); err == nil && addr == p.addrs[0] {
				return f.toService(&rows[i], "", []string{text})
			}
		}
	}
	return p, nil
}

// toService selects the port of a service: the only one of the protocol, or the one with the given name or number.
func (f *probeFlags) toService(s *serviceRow, port string, addresses []string) (place, error) {
	p := place{text: "svc/" + s.Namespace + "/" + s.Name}
	for _, text := range addresses {
		if addr, err := netip.ParseAddr(text); err == nil {
			p.addrs = append(p.addrs, addr)
		}
	}
	if port == "" && f.port != 0 {
		port = strconv.Itoa(int(f.port))
	}
	var fit, all []string
	for _, sp := range s.Ports {
		text := fmt.Sprintf("%d/%s", sp.Port, sp.Protocol)
		if sp.Name != "" {
			text += " (" + sp.Name + ")"
		}
		all = append(all, text)
		if port != "" && port != sp.Name && port != strconv.Itoa(int(sp.Port)) ||
			f.proto != "" && !strings.EqualFold(f.proto, sp.Protocol) {
			continue
		}
		if fit = append(fit, text); len(fit) == 1 {
			f.port, f.proto = sp.Port, strings.ToLower(sp.Protocol)
		}
	}
	switch {
	case len(fit) == 1:
		return p, nil
	case len(fit) == 0:
		return p, fmt.Errorf("%s has no such port; it has %s", p.text, strings.Join(all, ", "))
	}
	return p, fmt.Errorf("%s has several ports, say which one: %s", p.text, strings.Join(fit, ", "))
}

func nodePlace(name string, texts []string) place {
	p := place{text: name, node: name}
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			p.addrs = append(p.addrs, prefix.Addr())
		} else if addr, err := netip.ParseAddr(text); err == nil {
			p.addrs = append(p.addrs, addr)
		}
	}
	return p
}

// pair selects addresses of one family: IPv4 before IPv6, unless ipv6 is set.
func pair(from, to place, ipv6 bool) (src, dst netip.Addr, err error) {
	for _, want6 := range []bool{ipv6, !ipv6} {
		for _, d := range to.addrs {
			if d.Is6() != want6 {
				continue
			}
			for _, s := range from.addrs {
				if s.Is6() == want6 {
					return s, d, nil
				}
			}
		}
		if ipv6 {
			break
		}
	}
	return src, dst, fmt.Errorf("%s %v and %s %v have no common address family", from.text, from.addrs, to.text, to.addrs)
}
