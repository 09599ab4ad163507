package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/policy/large"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/processor"
	"contiv.dev/vswitch/plugins/service/proxyhealth"
)

// kubeState is the source of the state of Kubernetes: the API server, or contiv-ksr through etcd.
type kubeState struct {
	client *kube.Client // nil: the agent has no account at the API server
	source *kube.Source
	local  *clusterdb.LocalCopy
	relay  *clusterdb.Watcher // instead of source and local

	conditions *nodeConditions // nil without client
}

// kubernetesOptions selects how the agent reaches the API server.
type kubernetesOptions struct {
	mode string
	api  kube.Config
}

// serviceOptions holds the flags of kube-proxy that users need.
type serviceOptions struct {
	ignoreExternalIPs bool
	nodePortAddresses []string
	nodePortNetworks  []netip.Prefix // nodePortAddresses, parsed
	reservedPorts     []string
	reservedNodePorts []processor.NodePort // reservedPorts, parsed
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
}

// healthFlag has the name of kube-proxy's flag.
const healthFlag = "healthz-bind-address"

// complete parses the networks and ports.
func (o *serviceOptions) complete() (err error) {
	if o.reservedNodePorts, err = service.ParseNodePorts(o.reservedPorts); err != nil {
		return fmt.Errorf("--reserved-node-ports: %w", err)
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

const (
	kubernetesAuto  = "auto"
	kubernetesOn    = "on"
	kubernetesOff   = "off"
	kubernetesRelay = "relay"
)

// serviceAccountToken exists in every pod that has a service account.
const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// complete resolves the mode auto, and rejects flags that contradict the mode.
func (o *kubernetesOptions) complete() error {
	switch o.mode {
	case kubernetesAuto:
		o.mode = kubernetesOff
		if _, err := os.Stat(serviceAccountToken); err == nil || o.api.Kubeconfig != "" {
			o.mode = kubernetesOn
		}
	case kubernetesOn:
	case kubernetesOff:
		if o.api.Kubeconfig != "" {
			return errors.New("--kubeconfig with --kubernetes=off: leave one of them out")
		}
	case kubernetesRelay:
		if o.api.Kubeconfig != "" || o.api.Server != "" {
			return errors.New("--kubernetes=relay takes everything from etcd: leave --kubeconfig and --kubernetes-server out")
		}
	default:
		return fmt.Errorf("--kubernetes %q: use on, off, auto or relay", o.mode)
	}
	return nil
}

// newKube makes the source of the state of Kubernetes; nil without Kubernetes.
func (a *agent) newKube(state *kube.Join) (*kubeState, error) {
	switch a.opts.kubernetes.mode {
	case kubernetesOn:
		return a.newKubeSource(state.NewPart(false))
	case kubernetesRelay: // its events arrive with the rest of the cluster's state
		if err := a.opts.checkRelay(); err != nil {
			return nil, err
		}
		client, err := a.relayWriter()
		if err != nil {
			return nil, err
		}
		k := &kubeState{relay: a.db.watcher, client: client}
		return k, a.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "contiv_kube_relay_complete", Help: "1 while etcd has the complete state of Kubernetes.",
		}, func() float64 {
			if _, err := k.relay.Incomplete(); err != nil {
				return 0
			}
			return 1
		}))
	}
	return nil, nil
}

func (a *agent) newKubeSource(events kube.EventSink) (*kubeState, error) {
	api := a.opts.kubernetes.api
	api.UserAgent = "contiv-agent/" + a.opts.nodeName
	client, err := kube.NewClient(api)
	if err != nil {
		return nil, err
	}
	log := a.log.With("component", "kube")
	local, err := clusterdb.OpenLocalCopy(filepath.Join(a.opts.dataDir, "kube.db"), log)
	if err != nil {
		return nil, err
	}
	source, err := kube.NewSource(kube.Deps{
		Client: client, Events: events, Local: local, Log: log, Metrics: a.registry,
	})
	if err != nil {
		return nil, errors.Join(err, local.Close())
	}
	return &kubeState{client: client, source: source, local: local}, nil
}

// start starts watching; without Kubernetes (nil) the node has pods but no services.
func (k *kubeState) start(jobs *lifecycle.Group) {
	if k != nil && k.source != nil {
		k.source.Start(jobs)
	}
}

// connected returns which part of Kubernetes cannot be watched, or nil.
func (k *kubeState) connected() error {
	if k == nil {
		return nil
	}
	if k.relay != nil {
		_, err := k.relay.Incomplete()
		return err
	}
	return k.source.Connected()
}

// current returns why the agent's copy of the state of Kubernetes may be out of date, or nil.
func (k *kubeState) current() error {
	if k != nil && k.source != nil {
		if synced, missing := k.source.Synced(); !synced {
			return fmt.Errorf("not read from the API server yet: %s", strings.Join(missing, ", "))
		}
	}
	return k.connected()
}

// Close closes the local copy; the caller has ended the jobs.
func (k *kubeState) Close() error {
	if k == nil || k.local == nil {
		return nil
	}
	return k.local.Close()
}

// newServices makes the service plugin with the renderers of this dataplane.
func (a *agent) newServices() *service.Plugin {
	p := service.New(service.Deps{
		PluginDeps: a.pluginDeps("service"), ServiceLabel: a.label, ContivConf: a.conf, IPNet: a.ipnet, MainInterface: a.ipnet.MainInterface, NodeSync: a.nodesync,
		PodManager: a.pods, HTTPHandlers: a.http, Healthy: func() bool { return a.ready() == nil },
		NodeLeaving:       a.proxyHealth.SetNodeLeaving,
		IgnoreExternalIPs: a.opts.services.ignoreExternalIPs, NodePortAddresses: a.opts.services.nodePortNetworks,
		ReservedNodePorts: a.opts.services.reservedNodePorts, Problems: a.problems,
	})
	for _, r := range a.dataplane.services(p) {
		p.RegisterRenderer(r)
	}
	return p
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
