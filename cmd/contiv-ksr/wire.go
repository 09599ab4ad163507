package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/daemon"
	"contiv.dev/vswitch/internal/httpapi"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/logs"
	"contiv.dev/vswitch/internal/relay"
	"contiv.dev/vswitch/plugins/policy/large"
)

// ksr holds the parts of contiv-ksr in the order of their construction.
type ksr struct {
	opts     *options
	log      *slog.Logger
	ring     *logs.Ring
	jobs     *lifecycle.Group
	client   *kube.Client
	registry *prometheus.Registry
	http     *httpapi.Server
	db       *clusterdb.DB
	relay    *relay.Relay
	source   *kube.Source
	statuses *kube.PolicyStatus
	large    large.Finder
}

// run runs until ctx ends or a part fails. When it stops, it gives up the leadership at once.
func run(ctx context.Context, opts *options) error {
	if err := opts.complete(); err != nil {
		return err
	}
	log, ring, err := daemon.NewLogger("contiv-ksr", opts.logLevel)
	if err != nil {
		return err
	}
	kube.UseLogger(log)
	k := &ksr{opts: opts, log: log, ring: ring, jobs: lifecycle.NewGroup(context.WithoutCancel(ctx), log), registry: daemon.NewRegistry()}
	return daemon.Run(ctx, log, k, k.jobs, func() {
		log.Info("contiv-ksr started", "name", opts.name, "etcd", strings.Join(opts.etcd.Endpoints, ","))
	})
}

// Make calls the constructors of all parts, in order.
func (k *ksr) Make(ctx context.Context) (err error) {
	if k.http, err = httpapi.New(k.opts.http, k.log); err != nil {
		return err
	}
	if k.client, err = kube.NewClient(k.opts.kubernetes); err != nil {
		return err
	}
	if k.db, err = clusterdb.Open(context.WithoutCancel(ctx), k.opts.etcd, k.log.With("component", "clusterdb")); err != nil {
		return err
	}
	if k.relay, err = relay.New(relay.Deps{
		DB: k.db, Log: k.log.With("component", "relay"), Metrics: k.registry, Name: k.opts.name,
		Fresh:    func() error { return k.source.Connected() },
		LeaseTTL: k.opts.leaseTTL, ResyncInterval: k.opts.resync,
	}); err != nil {
		return err
	}
	k.statuses = kube.NewPolicyStatus(kube.PolicyStatusDeps{
		Client: k.client, Log: k.log.With("component", "kube"), Writes: k.relay.Leading, Large: k.largeClusterPolicies, Interval: k.opts.policyStatus,
	})
	k.source, err = kube.NewSource(kube.Deps{
		Client: k.client, Events: k.relay, Log: k.log.With("component", "kube"), Metrics: k.registry,
	})
	return err
}

// largeClusterPolicies maps the names of ClusterNetworkPolicies with sets over the limit to a description of the fault.
func (k *ksr) largeClusterPolicies() map[string]string {
	return k.large.FindIn(k.relay, k.opts.policySetLimit)
}

// Start starts all parts.
func (k *ksr) Start() error {
	k.ring.Register(k.http)
	daemon.ServeHealth(k.http, k.registry, func() error { return nil }, k.ready)
	if err := k.http.Start(k.jobs); err != nil {
		return err
	}
	k.source.Start(k.jobs)
	k.jobs.Go("relay", k.relay.Run)
	if k.opts.etcd.Service != "" {
		k.jobs.Go("etcd members", func(ctx context.Context) error {
			return k.db.FollowMembers(ctx, func(ctx context.Context) ([]string, error) { return k.client.PodURLs(ctx, k.opts.etcd.Service) })
		})
	}
	k.jobs.Go("policy conditions", k.statuses.Run)
	return nil
}

// ready returns why this replica could not become the leader, or nil.
func (k *ksr) ready() error {
	if !k.db.Connected() {
		if cause := k.db.Cause(); cause != nil {
			return fmt.Errorf("etcd does not respond: %w", cause)
		}
		return fmt.Errorf("etcd %s does not respond", strings.Join(k.db.Endpoints(), ","))
	}
	if err := k.source.Connected(); err != nil {
		return err
	}
	if synced, missing := k.source.Synced(); !synced {
		return fmt.Errorf("not read from the API server yet: %s", strings.Join(missing, ", "))
	}
	return nil
}

// Stop ends the jobs, the relay first, and then the client of etcd.
func (k *ksr) Stop() error {
	steps := lifecycle.NewSteps(k.log, daemon.StepsLimit)
	steps.Do("jobs", 4*time.Second, k.jobs.Stop)
	if k.db != nil {
		steps.Do("cluster database", 2*time.Second, func(time.Duration) error { return k.db.Close() })
	}
	return steps.Err()
}
