package clusterdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"

	"contiv.dev/vswitch/internal/keyval"
	"contiv.dev/vswitch/internal/lifecycle"
)

const (
	// probeKey is read to check whether the database answers; it never exists. The name comes from contiv.
	probeKey = "/probe-etcd-connection"
	// minRetry is the first pause after a failure; pauses double up to a limit, with jitter.
	minRetry    = 200 * time.Millisecond
	stopTimeout = 10 * time.Second
)

// DB is a client of etcd. All methods are safe for concurrent use, and all calls end within the configured time.
type DB struct {
	conf     Config // Endpoints is guarded by mu
	log      *slog.Logger
	embedded *Embedded
	client   *clientv3.Client
	jobs     *lifecycle.Group
	closing  atomic.Bool

	mu   sync.Mutex
	link linkState
	// losses counts the lost connections; a watcher compares it to detect that it may have missed changes.
	losses    uint64
	clusterID uint64
	revision  int64
	onConnect []func() error // called on the first connection, then nil
	ever      bool
	changed   chan struct{} // closed and replaced when link or losses changes
	cause     error         // why the database does not respond, as found by diagnose; nil while it answers
}

var _ keyval.KvProtoPlugin = (*DB)(nil)

// linkState is the state of the connection to the database.
type linkState int

const (
	linkLost linkState = iota
	// linkLate: the database does not answer in time, but the connection to it exists. Watches on the connection continue after the delay, so
	// no change is missed.
	linkLate
	linkUp
)

// Open starts the embedded etcd if there are no endpoints, and a client. It does not wait for the operator's etcd: Connected reports
// whether that answers.
func Open(ctx context.Context, conf Config, log *slog.Logger) (*DB, error) {
	if err := conf.Validate(); err != nil {
		return nil, err
	}
	db := &DB{conf: conf.withDefaults(), log: log, changed: make(chan struct{})}
	endpoints := db.conf.Endpoints
	if db.conf.UsesEmbedded() {
		e, err := StartEmbedded(ctx, db.conf, log)
		if err != nil {
			return nil, err
		}
		db.embedded = e
		endpoints = []string{e.Endpoint()}
	}
	if err := db.connect(endpoints); err != nil {
		db.closeEmbedded()
		return nil, err
	}
	db.jobs = lifecycle.NewGroup(ctx, log)
	db.jobs.Go("etcd-probe", db.probe)
	return db, nil
}

func (db *DB) connect(endpoints []string) error {
	tlsConf, err := db.conf.tlsConfig()
	if err != nil {
		return err
	}
	db.client, err = clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		TLS:                  tlsConf,
		Logger:               newZap(db.log, &db.closing),
		DialTimeout:          db.conf.OperationTimeout,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		MaxUnaryRetries:      2, // bounded by the operation's time anyway
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: minRetry, Multiplier: 1.6, Jitter: 0.3, MaxDelay: db.conf.ProbeInterval},
			MinConnectTimeout: db.conf.ProbeTimeout,
		})},
	})
	if err != nil {
		return fmt.Errorf("--etcd-endpoints: client for %v: %w", endpoints, err)
	}
	return nil
}

// Close stops the client and the embedded etcd.
func (db *DB) Close() error {
	if !db.closing.CompareAndSwap(false, true) {
		return nil
	}
	err := db.jobs.Stop(stopTimeout)
	if closeErr := db.client.Close(); closeErr != nil && !errors.Is(closeErr, context.Canceled) {
		err = errors.Join(err, fmt.Errorf("closing the etcd client: %w", closeErr))
	}
	db.closeEmbedded()
	return err
}

func (db *DB) closeEmbedded() {
	if db.embedded != nil {
		db.embedded.Close()
	}
}

// Connected reports whether the database answered the last request.
func (db *DB) Connected() bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.link == linkUp
}

// Cause describes why the database does not respond: the endpoint, the fault and the fix. It returns nil while the database answers, and
// until the cause is determined.
func (db *DB) Cause() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.cause
}

// explain records why a probe failed, and logs each cause once.
func (db *DB) explain(ctx context.Context, err error) {
	ctx, cancel := context.WithTimeout(ctx, db.conf.ProbeTimeout)
	defer cancel()
	db.mu.Lock()
	conf := db.conf
	db.mu.Unlock()
	cause := conf.diagnose(ctx, err)
	db.mu.Lock()
	known := db.cause != nil && db.cause.Error() == cause.Error()
	db.cause = cause
	db.mu.Unlock()
	if !known && !db.closing.Load() {
		db.log.Warn("etcd does not respond", "error", cause)
	}
}

// OnConnect registers a callback that is called when the first connection is established, or immediately if it is established already.
func (db *DB) OnConnect(callback func() error) {
	db.mu.Lock()
	if !db.ever {
		db.onConnect = append(db.onConnect, callback)
		db.mu.Unlock()
		return
	}
	db.mu.Unlock()
	db.runCallback(callback)
}

func (db *DB) runCallback(callback func() error) {
	if err := callback(); err != nil {
		db.log.Error("callback on connection to etcd failed", "error", err)
	}
}

// report records whether the database has just answered. Errors of the caller do not count.
func (db *DB) report(err error) {
	if err != nil && db.closing.Load() {
		return
	}
	late := err != nil && db.late(err)
	db.mu.Lock()
	before, now := db.link, linkUp
	switch {
	case late && before != linkLost:
		now = linkLate
	case err != nil:
		now = linkLost
	}
	if now == before {
		db.mu.Unlock()
		return
	}
	db.link = now
	var callbacks []func() error
	switch now {
	case linkUp:
		callbacks, db.onConnect, db.ever, db.cause = db.onConnect, nil, true, nil
	case linkLost:
		db.losses++
	case linkLate:
	}
	close(db.changed)
	db.changed = make(chan struct{})
	db.mu.Unlock()

	switch {
	case now == linkLost:
		db.log.Warn("the connection to etcd is lost; the node continues with its last state", "error", err)
	case now == linkLate:
		db.log.Warn("etcd does not answer in time; the node continues with its last state", "error", err)
	case before == linkLate:
		db.log.Info("etcd answers again; no change was missed")
	default:
		db.log.Info("connected to etcd")
	}
	for _, c := range callbacks {
		db.runCallback(c)
	}
}

// late reports whether a call that failed with err has only taken too long. A busy etcd is late on all nodes at the same time: if that counted as
// a loss, all nodes would read the whole state again at once and keep it busy. If etcd has lost data meanwhile, checkHistory finds that.
func (db *DB) late(err error) bool {
	slow := errors.Is(err, context.DeadlineExceeded)
	for _, e := range []error{rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrLeaderChanged, rpctypes.ErrTooManyRequests} {
		slow = slow || errors.Is(err, e)
	}
	return slow && db.client.ActiveConnection().GetState() == connectivity.Ready
}

// knownRevision returns the highest revision of all answers so far; 0 when there was none.
func (db *DB) knownRevision() int64 {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.revision
}

// saw records the revision of an answer.
func (db *DB) saw(rev int64) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.revision = max(db.revision, rev)
}

// checkHistory checks the answer to a probe, which was sent when known was the highest revision. If the answer comes from another
// cluster or has an earlier revision, the data has been replaced without a notice, and a watch would wait for revisions beyond those of
// the new data.
func (db *DB) checkHistory(h *etcdserverpb.ResponseHeader, known int64) {
	db.mu.Lock()
	defer db.mu.Unlock()
	replaced := db.clusterID != 0 && (h.ClusterId != db.clusterID || h.Revision < known)
	db.clusterID = h.ClusterId
	if !replaced {
		db.revision = max(db.revision, h.Revision)
		return
	}
	db.log.Warn("etcd has lost its data or has been replaced")
	db.revision = h.Revision
	db.losses++
	close(db.changed)
	db.changed = make(chan struct{})
}

// state returns the number of losses so far, whether there is a connection, and a channel that is closed when either changes.
func (db *DB) state() (losses uint64, connected bool, changed <-chan struct{}) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.losses, db.link == linkUp, db.changed
}

// probe is the job that checks whether the database answers.
func (db *DB) probe(ctx context.Context) error {
	retry := minRetry
	for {
		known := db.knownRevision()
		callCtx, cancel := context.WithTimeout(ctx, min(db.conf.ProbeTimeout, db.conf.OperationTimeout))
		resp, err := db.client.Get(callCtx, probeKey, clientv3.WithKeysOnly())
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			db.checkHistory(resp.Header, known)
		}
		db.report(err)
		if err != nil {
			db.explain(ctx, err)
		}
		pause := db.conf.ProbeInterval
		if err == nil {
			retry = minRetry
		} else {
			pause, retry = jitter(retry), min(2*retry, db.conf.ProbeInterval)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// jitter returns a random duration between 0.5 d and 1.5 d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// PutIfNotExists atomically puts the pair if the key has no value. After an error the value may have been written nevertheless.
func (db *DB) PutIfNotExists(key string, value []byte) (succeeded bool, err error) {
	return db.putIf(db.client.Ctx(), clientv3.Compare(clientv3.CreateRevision(key), "=", 0), key, value)
}

// PutIfRevision atomically puts the pair if the key still has the revision at which it was read.
func (db *DB) PutIfRevision(ctx context.Context, key string, rev int64, value []byte) (succeeded bool, err error) {
	return db.putIf(ctx, clientv3.Compare(clientv3.ModRevision(key), "=", rev), key, value)
}

func (db *DB) putIf(ctx context.Context, cond clientv3.Cmp, key string, value []byte) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, db.conf.OperationTimeout)
	defer cancel()
	resp, err := db.client.Txn(ctx).If(cond).Then(clientv3.OpPut(key, string(value))).Commit()
	if err != nil {
		return false, fmt.Errorf("etcd: conditional put of %s: %w", key, err)
	}
	return resp.Succeeded, nil
}
