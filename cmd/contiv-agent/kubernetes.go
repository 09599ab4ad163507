package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/lifecycle"
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
