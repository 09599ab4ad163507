package clusterdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"contiv.dev/vswitch/internal/clusterdb/cas"
)

// resignTimeout bounds the resignation. If etcd does not respond within it, the leadership ends with its lease.
const resignTimeout = 2 * time.Second

// Leadership is held by one process at a time. The holder can lose it without a notice, when the process is cut off from etcd or is suspended for a
// while; so every change that only the leader may make has the condition Fence.
type Leadership struct {
	// Fence is true exactly as long as the leadership lasts.
	Fence cas.Cond

	db      *DB
	session *concurrency.Session
}

// Campaign waits until this process is the leader among all candidates with the same prefix; candidates win in the order in which they came. name
// identifies the candidate to operators. Campaign fails when ctx ends or etcd does not respond; then the candidate is removed, at the latest after
// ttl. ttl is also the time for which a leader that died blocks the others.
func (db *DB) Campaign(ctx context.Context, prefix, name string, ttl time.Duration) (*Leadership, error) {
	callCtx, cancel := context.WithTimeout(ctx, db.conf.OperationTimeout)
	lease, err := db.client.Grant(callCtx, int64((ttl+time.Second-1)/time.Second))
	cancel()
	if err != nil {
		return nil, fmt.Errorf("etcd: lease for the election %s: %w", prefix, err)
	}
	session, err := concurrency.NewSession(db.client, concurrency.WithLease(lease.ID))
	if err != nil {
		return nil, fmt.Errorf("etcd: keeping the lease for the election %s: %w", prefix, err)
	}
	l := &Leadership{db: db, session: session}
	ctx, stop := l.Bind(ctx)
	defer stop()
	if err := l.win(ctx, prefix, name); err != nil {
		l.Resign()
		return nil, fmt.Errorf("etcd: election %s: %w", prefix, errors.Join(err, context.Cause(ctx)))
	}
	return l, nil
}

// win joins the queue and waits until no candidate is ahead.
func (l *Leadership) win(ctx context.Context, prefix, name string) error {
	key := fmt.Sprintf("%s%016x", prefix, l.session.Lease())
	callCtx, cancel := context.WithTimeout(ctx, l.db.conf.OperationTimeout)
	resp, err := l.db.client.Put(callCtx, key, name, clientv3.WithLease(l.session.Lease()))
	cancel()
	if err != nil {
		return err
	}
	l.Fence = cas.Cond{Key: key, Rev: resp.Header.Revision}
	for {
		ahead, rev, err := l.ahead(ctx, prefix)
		if err != nil || ahead == "" {
			return err
		}
		if err := l.awaitGone(ctx, ahead, rev); err != nil {
			return err
		}
	}
}

// ahead returns the key of the candidate directly before this one. An empty key means that this process leads.
func (l *Leadership) ahead(ctx context.Context, prefix string) (key string, rev int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.db.conf.OperationTimeout)
	defer cancel()
	resp, err := l.db.client.Get(ctx, prefix, append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(l.Fence.Rev-1))...)
	if err != nil || len(resp.Kvs) == 0 {
		return "", 0, err
	}
	return string(resp.Kvs[0].Key), resp.Header.Revision, nil
}

// awaitGone waits until a key that existed at a revision is deleted.
func (l *Leadership) awaitGone(ctx context.Context, key string, rev int64) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for resp := range l.db.client.Watch(ctx, key, clientv3.WithRev(rev+1)) {
		if err := resp.Err(); err != nil {
			return fmt.Errorf("watching %s: %w", key, err)
		}
		for _, ev := range resp.Events {
			if ev.Type == clientv3.EventTypeDelete {
				return nil
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("watching %s: the watch ended", key)
}

// ErrLeaseEnded is the cause with which a context of Bind ends when the leadership is lost.
var ErrLeaseEnded = errors.New("the lease of the leadership has ended")

// Bind returns a context that also ends when the leadership is found to be lost.
func (l *Leadership) Bind(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(l.session.Ctx(), func() { cancel(ErrLeaseEnded) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Resign gives up the leadership, so that the next candidate need not wait for the end of the lease.
func (l *Leadership) Resign() {
	l.session.Orphan()
	ctx, cancel := context.WithTimeout(l.db.client.Ctx(), resignTimeout)
	defer cancel()
	if _, err := l.db.client.Revoke(ctx, l.session.Lease()); err != nil {
		l.db.log.Debug("the lease of the leadership was not revoked and expires by itself", "error", err)
	}
}
