package clusterdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// The tuning of the embedded etcd. It is the only member, so that it sends no heartbeats and wins every election at once:
// short intervals make it ready sooner. Every write is synced to disk as usual.
const (
	embeddedTick     = 20  // ms
	embeddedElection = 100 // ms; at least five ticks
	embeddedQuota    = 256 << 20
	embeddedSnapshot = 2000
	embeddedRetained = "1000" // revisions
	startTimeout     = 30 * time.Second
)

// Embedded is an etcd in this process: one member, no listener for peers, clients on a socket or on loopback.
type Embedded struct {
	server   *embed.Etcd
	lock     *fileutil.LockedFile
	endpoint string
	closing  atomic.Bool
	close    sync.Once
}

// StartEmbedded starts etcd and waits until it serves clients.
func StartEmbedded(ctx context.Context, conf Config, log *slog.Logger) (*Embedded, error) {
	dir := conf.Embedded.DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	// etcd itself would wait for the lock of its database without a timeout.
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "agent.lock"), os.O_WRONLY|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("--data-dir: %s is in use by another agent; stop it or use another directory", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	e := &Embedded{lock: lock}
	if err := e.start(ctx, conf, log); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *Embedded) start(ctx context.Context, conf Config, log *slog.Logger) error {
	dir := conf.Embedded.DataDir
	listen := url.URL{Scheme: "http", Host: conf.Embedded.Listen}
	if conf.Embedded.Listen == "" {
		listen = url.URL{Scheme: "unix", Path: conf.socketPath()}
	}
	data := filepath.Join(dir, "etcd")
	err := checkBackend(data)
	if err == nil {
		err = recovered(func() (err error) {
			e.server, err = embed.StartEtcd(embeddedConfig(data, listen, newZap(log, &e.closing)))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("embedded etcd in %s: %w; if its data is damaged, remove the directory (nodes then get new IDs)", dir, err)
	}
	server := e.server
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return fmt.Errorf("embedded etcd in %s: %w", dir, err)
	case <-ctx.Done():
		return fmt.Errorf("embedded etcd in %s is not ready: %w", dir, ctx.Err())
	}
	e.endpoint = "unix://" + conf.socketPath()
	if conf.Embedded.Listen != "" {
		e.endpoint = server.Clients[0].Addr().String() // with the port that the kernel chose
	}
	return nil
}

func embeddedConfig(dir string, listen url.URL, log *zap.Logger) *embed.Config {
	c := embed.NewConfig()
	c.Name = "contiv"
	c.Dir = dir
	c.ListenClientUrls = []url.URL{listen}
	c.ListenPeerUrls = nil
	// etcd requires a peer address of a member, although nothing listens there.
	peer := url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", "2380")}
	c.AdvertisePeerUrls = []url.URL{peer}
	c.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2379"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = embeddedTick, embeddedElection
	c.QuotaBackendBytes = embeddedQuota
	c.SnapshotCount = embeddedSnapshot
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModeRevision, embeddedRetained
	c.EnableGRPCGateway = false
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	c.LogLevel = "error"
	return c
}

// Endpoint returns the address to which clients connect.
func (e *Embedded) Endpoint() string { return e.endpoint }

// Close stops etcd and waits until it has stopped.
func (e *Embedded) Close() {
	e.close.Do(func() {
		e.closing.Store(true)
		if e.server != nil {
			e.server.Close()
		}
		if err := e.lock.Close(); err != nil {
			return // the kernel releases the lock when the process ends
		}
	})
}
