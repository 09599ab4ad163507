package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/service"
)

// kubeState is where the state of Kubernetes comes from.
type kubeState struct {
	source *kube.Source
	local  *clusterdb.LocalCopy
}

// kubernetesOptions say how to reach the API server.
type kubernetesOptions struct {
	mode       string
	kubeconfig string
	server     string
}

// serviceOptions are those of kube-proxy's flags that matter to users.
type serviceOptions struct {
	ignoreExternalIPs bool
	nodePortAddresses []string
	nodePortNetworks  []netip.Prefix // nodePortAddresses, read
}

// complete reads the networks.
func (o *serviceOptions) complete() error {
	for _, text := range o.nodePortAddresses {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--nodeport-addresses: %w; give networks such as 192.0.2.0/24", err)
		}
		o.nodePortNetworks = append(o.nodePortNetworks, p.Masked())
	}
	return nil
}

const (
	kubernetesAuto = "auto"
	kubernetesOn   = "on"
	kubernetesOff  = "off"
)

// serviceAccountToken is there in every pod that has a service account.
const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// complete decides whether there is a Kubernetes.
func (o *kubernetesOptions) complete() error {
	switch o.mode {
	case kubernetesAuto:
		o.mode = kubernetesOff
		if _, err := os.Stat(serviceAccountToken); err == nil || o.kubeconfig != "" {
			o.mode = kubernetesOn
		}
	case kubernetesOn:
	case kubernetesOff:
		if o.kubeconfig != "" {
			return errors.New("--kubeconfig with --kubernetes=off: leave one of them out")
		}
	default:
		return fmt.Errorf("--kubernetes %q: use on, off or auto", o.mode)
	}
	return nil
}

// newKube makes the source of the state of Kubernetes.
func (a *agent) newKube(events kube.EventSink) (*kubeState, error) {
	client, err := kube.NewClient(kube.Config{
		Kubeconfig: a.opts.kubernetes.kubeconfig, Server: a.opts.kubernetes.server, UserAgent: "contiv-agent/" + a.opts.nodeName,
	})
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
	return &kubeState{source: source, local: local}, nil
}

// start begins to watch; without Kubernetes (nil) the node has pods but no services.
func (k *kubeState) start(jobs *lifecycle.Group) {
	if k != nil {
		k.source.Start(jobs)
	}
}

// connected says what of Kubernetes cannot be watched.
func (k *kubeState) connected() error {
	if k == nil {
		return nil
	}
	return k.source.Connected()
}

// Close closes the local copy; the jobs have ended before.
func (k *kubeState) Close() error {
	if k == nil {
		return nil
	}
	return k.local.Close()
}

// newServices makes the service plugin with what renders for this dataplane.
func (a *agent) newServices() (*service.Plugin, error) {
	p := service.New(service.Deps{
		PluginDeps: a.pluginDeps("service"), ServiceLabel: a.label, ContivConf: a.conf, IPNet: a.ipnet, NodeSync: a.nodesync,
		PodManager: a.pods, HTTPHandlers: a.http, Healthy: func() bool { return a.ready() == nil },
		IgnoreExternalIPs: a.opts.services.ignoreExternalIPs, NodePortAddresses: a.opts.services.nodePortNetworks,
	})
	if err := a.dataplane.renderServices(a, p); err != nil {
		return nil, fmt.Errorf("services: %w", err)
	}
	return p, nil
}
