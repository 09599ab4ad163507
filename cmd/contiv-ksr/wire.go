package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/httpapi"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/relay"
)

// stopTimeout bounds an orderly stop.
const stopTimeout = 10 * time.Second

// ksr is what contiv-ksr is made of, in the order in which it is made.
type ksr struct {
	opts     *options
	log      *slog.Logger
	jobs     *lifecycle.Group
	registry *prometheus.Registry
	http     *httpapi.Server
	db       *clusterdb.DB
	relay    *relay.Relay
	source   *kube.Source
}

// run works until ctx ends or a part fails. The leadership is given up at once when it stops.
func run(ctx context.Context, opts *options) (err error) {
	if err := opts.complete(); err != nil {
		return err
	}
	log, err := newLogger(opts.logLevel)
	if err != nil {
		return err
	}
	k := &ksr{
		opts: opts, log: log, jobs: lifecycle.NewGroup(context.WithoutCancel(ctx), log), registry: prometheus.NewRegistry(),
	}
	defer func() { err = errors.Join(err, k.stop()) }()
	if err := k.make(ctx); err != nil {
		return err
	}
	if err := k.start(); err != nil {
		return err
	}
	log.Info("contiv-ksr started", "name", opts.name, "etcd", strings.Join(opts.etcd.Endpoints, ","))
	select {
	case <-ctx.Done():
		return nil
	case err := <-k.jobs.Failed():
		return fmt.Errorf("contiv-ksr cannot go on: %w", err)
	}
}

// make is THE list of constructors.
func (k *ksr) make(ctx context.Context) (err error) {
	k.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if k.http, err = httpapi.New(k.opts.http, k.log); err != nil {
		return err
	}
	client, err := kube.NewClient(k.opts.kubernetes)
	if err != nil {
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
	k.source, err = kube.NewSource(kube.Deps{
		Client: client, Events: k.relay, Log: k.log.With("component", "kube"), Metrics: k.registry,
	})
	return err
}

func (k *ksr) start() error {
	k.http.RegisterHTTPHandler("/metrics", promhttp.HandlerFor(k.registry, promhttp.HandlerOpts{}).ServeHTTP)
	k.http.RegisterHTTPHandler("/liveness", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	k.http.RegisterHTTPHandler("/readiness", func(w http.ResponseWriter, _ *http.Request) {
		if err := k.ready(); err != nil {
			httpapi.WriteError(w, http.StatusServiceUnavailable, err)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	if err := k.http.Start(k.jobs); err != nil {
		return err
	}
	k.source.Start(k.jobs)
	k.jobs.Go("relay", k.relay.Run)
	return nil
}

// ready says why this replica could not take the lead.
func (k *ksr) ready() error {
	if !k.db.Connected() {
		return fmt.Errorf("etcd %s does not answer", strings.Join(k.opts.etcd.Endpoints, ","))
	}
	if err := k.source.Connected(); err != nil {
		return err
	}
	if synced, missing := k.source.Synced(); !synced {
		return fmt.Errorf("not read from the API server yet: %s", strings.Join(missing, ", "))
	}
	return nil
}

// stop ends the jobs, the relay first, and then the client of etcd.
func (k *ksr) stop() error {
	err := k.jobs.Stop(stopTimeout)
	if k.db != nil {
		err = errors.Join(err, k.db.Close())
	}
	return err
}
