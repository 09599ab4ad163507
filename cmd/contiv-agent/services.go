package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"contiv.dev/vswitch/plugins/policy/large"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/proxyhealth"
)

// serviceOptions holds the flags of kube-proxy that users need.
type serviceOptions struct {
	ignoreExternalIPs bool
	nodePortAddresses []string
	nodePortNetworks  []netip.Prefix // nodePortAddresses, parsed
	reservedPorts     []string
	reservedAddresses []string
	reserved          service.Reserved // reservedPorts and reservedAddresses, parsed
	healthAddress     string
	policySetLimit    int
}

func (o *serviceOptions) register(f *pflag.FlagSet) {
	f.BoolVar(&o.ignoreExternalIPs, "ignore-external-ips", false, "do not serve spec.externalIPs of services (CVE-2020-8554)")
	f.StringSliceVar(&o.nodePortAddresses, "nodeport-addresses", nil, "networks of the node's addresses that accept "+
		"traffic for node ports (default: all)")
	f.StringVar(&o.healthAddress, healthFlag, proxyhealth.DefaultAddress, "address of the health checks of cloud load balancers, "+
		"as in kube-proxy (/healthz, /livez); empty: none, for nodes on which kube-proxy runs")
	large.RegisterFlag(f, &o.policySetLimit, "maximum number of members of a set of network policy (0: as many as "+
		"fit); rules that allow by a larger one match nothing, rules that deny by it deny everything")
	f.StringSliceVar(&o.reservedPorts, "reserved-node-ports", service.DefaultReservedNodePorts(), "ports of nodes that a service "+
		"cannot use with a node's address in spec.externalIPs or as the address of a load balancer")
	f.StringSliceVar(&o.reservedAddresses, "reserved-addresses", nil, "addresses and networks outside of the cluster that a service cannot "+
		"use in spec.externalIPs or as the address of a load balancer, such as those of DNS servers and registries of images; "+
		"the endpoints of the service default/kubernetes and the addresses of --etcd-endpoints are reserved in any case")
}

// healthFlag has the name of kube-proxy's flag.
const healthFlag = "healthz-bind-address"

// complete parses the networks and ports.
func (o *serviceOptions) complete() (err error) {
	if o.reserved.NodePorts, err = service.ParseNodePorts(o.reservedPorts); err != nil {
		return fmt.Errorf("--reserved-node-ports: %w", err)
	}
	if o.reserved.Addresses, err = service.ParseAddresses(o.reservedAddresses); err != nil {
		return fmt.Errorf("--reserved-addresses: %w", err)
	}
	for _, text := range o.nodePortAddresses {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--nodeport-addresses: %w; give networks such as 192.0.2.0/24", err)
		}
		o.nodePortNetworks = append(o.nodePortNetworks, p.Masked())
	}
	if err := large.CheckLimit(o.policySetLimit); err != nil {
		return err
	}
	return checkListenAddress(healthFlag, o.healthAddress)
}

// checkListenAddress rejects an address that no server can listen on. An empty address turns the server off.
func checkListenAddress(flag, address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("--%s %q: %w; use host:port, or :port for all addresses", flag, address, err)
	}
	return nil
}

// newServices makes the service plugin with the renderers of this dataplane.
func (a *agent) newServices(ctx context.Context) *service.Plugin {
	reserved := a.opts.services.reserved
	reserved.Etcd = a.etcdAddresses(ctx)
	p := service.New(service.Deps{
		PluginDeps: a.pluginDeps("service"), ServiceLabel: a.label, ContivConf: a.conf, IPNet: a.ipnet, MainInterface: a.ipnet.MainInterface, NodeSync: a.nodesync,
		PodManager: a.pods, HTTPHandlers: a.http, Healthy: func() bool { return a.ready() == nil },
		NodeLeaving:       a.proxyHealth.SetNodeLeaving,
		IgnoreExternalIPs: a.opts.services.ignoreExternalIPs, NodePortAddresses: a.opts.services.nodePortNetworks,
		Reserved: reserved, Problems: a.problems,
	})
	for _, r := range a.dataplane.services(p) {
		p.RegisterRenderer(r)
	}
	return p
}

// lookupTimeout bounds the look-up of etcd's host names, which delays the start of the agent.
const lookupTimeout = 2 * time.Second

// etcdAddresses returns the addresses of etcd: no service may have them. A service at such an address would cut off all nodes from etcd.
func (a *agent) etcdAddresses(ctx context.Context) []netip.AddrPort {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addrs, err := a.opts.etcd.Addresses(ctx, net.DefaultResolver.LookupNetIP)
	if err != nil {
		a.log.Warn("addresses of etcd are unknown, so a service can have them as external addresses; write addresses instead of names in "+
			"--etcd-endpoints, or add them to --reserved-addresses", "error", err)
	}
	return addrs
}

// newProxyHealth makes the server that answers health checks of load balancers as kube-proxy does; without Kubernetes it does not listen.
func (a *agent) newProxyHealth() (*proxyhealth.Server, error) {
	address := a.opts.services.healthAddress
	if a.kube == nil {
		address = ""
	}
	families := []string{"IPv4"}
	for _, p := range a.conf.IPAM().PodSubnetCIDR {
		if p.Addr().Is6() {
			families = append(families, "IPv6")
		}
	}
	return proxyhealth.New(proxyhealth.Config{
		Address: address, Alive: a.dataplane.health.alive, Programmed: a.ready, Families: families, Log: a.logger("service"),
		Metrics: a.registry, Flag: "--" + healthFlag,
	})
}
