package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/relay"
	"contiv.dev/vswitch/plugins/idalloc"
	"contiv.dev/vswitch/plugins/idalloc/idallocation"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// relaySaveDelay is the longest time until relayed state of Kubernetes reaches the local copy; it is the same as for state from the API
// server.
const relaySaveDelay = 500 * time.Millisecond

// clusterDB is the cluster database, the node's own copy of it, and the watcher that turns both into events.
type clusterDB struct {
	*clusterdb.DB
	local   *clusterdb.LocalCopy
	watcher *clusterdb.Watcher
	before  map[string][]byte // content of the local copy at start
}

func (a *agent) newDB(ctx context.Context, events clusterdb.EventSink) (*clusterDB, error) {
	log := a.log.With("component", "clusterdb")
	cfg := a.opts.etcd
	cfg.ProbeInterval = time.Duration(a.control.RemoteDBProbingInterval)
	if cfg.UsesEmbedded() {
		log.Info("etcd: embedded: the cluster has only this node", "dataDir", cfg.Embedded.DataDir)
	} else {
		log.Info("etcd: external", "endpoints", cfg.Endpoints)
	}
	db, err := clusterdb.Open(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	local, err := clusterdb.OpenLocalCopy(filepath.Join(a.opts.dataDir, "cluster-state.db"), log)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	before, err := local.Load()
	if err != nil {
		log.Warn("the local copy of the cluster state cannot be read", "error", err)
	}
	kinds, ignore := resources(), relay.KeyPrefix // keys that contiv-ksr may have relayed for other agents
	if a.opts.kubernetes.mode == kubernetesRelay {
		kinds, ignore = append(kinds, relay.Resources()...), ""
	}
	return &clusterDB{DB: db, local: local, before: before, watcher: clusterdb.NewWatcher(clusterdb.WatcherDeps{
		DB: db, Events: events, Local: local, Log: log, Resources: kinds, Ignore: ignore,
		SaveDelay: relaySaveDelay, LocalDelay: time.Duration(a.control.DelayLocalResync),
	})}, nil
}

// resources returns the kinds of shared state whose changes become events for plugins.
func resources() []clusterdb.Resource {
	return []clusterdb.Resource{{
		Keyword: "allocatedIDs", KeyPrefix: "allocatedIDs/", New: func() proto.Message { return &vppnode.VppNode{} },
	}, {
		Keyword: idalloc.Keyword, KeyPrefix: idalloc.KeyPrefix, New: func() proto.Message { return &idallocation.Entry{} },
	}}
}

// start starts watching; the first snapshot causes the start-up resync.
func (d *clusterDB) start(jobs *lifecycle.Group) { jobs.Go("cluster database", d.watcher.Run) }

// followEtcd starts the job that gets the addresses of a managed etcd, whose members may move to other nodes.
func (a *agent) followEtcd() {
	client := a.kube.writer()
	if client == nil || a.opts.etcd.Service == "" {
		return
	}
	a.jobs.Go("etcd members", func(ctx context.Context) error {
		return a.db.FollowMembers(ctx, func(ctx context.Context) ([]string, error) { return client.PodURLs(ctx, a.opts.etcd.Service) })
	})
}

// Close closes the client, and etcd if it is embedded.
func (d *clusterDB) Close() error { return errors.Join(d.DB.Close(), d.local.Close()) }
