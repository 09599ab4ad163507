package clusterdb

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/lifecycle"
)

const electionPrefix = "/test/election/"

func campaign(t *testing.T, db *DB, name string) *Leadership {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l, err := db.Campaign(ctx, electionPrefix, name, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// commit writes with the leader's condition.
func commit(t *testing.T, db *DB, l *Leadership, value string) (done bool) {
	t.Helper()
	i, _, err := db.CommitFirst(t.Context(), cas.Change{
		If: []cas.Cond{l.Fence}, Do: []cas.Write{{Key: "/test/value", Value: []byte(value)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return i == 0
}

// TestCampaign checks that there is one leader at a time, in the order of arrival; a candidate that
// has resigned cannot write.
func TestCampaign(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	a := campaign(t, db, "a")
	won := make(chan *Leadership, 1)
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	jobs.Go("b", func(ctx context.Context) error {
		b, err := db.Campaign(ctx, electionPrefix, "b", 2*time.Second)
		won <- b
		return err
	})
	if !commit(t, db, a, "1") {
		t.Error("the leader cannot write")
	}
	select {
	case <-won:
		t.Fatal("two lead")
	case <-time.After(200 * time.Millisecond):
	}
	a.Resign()
	b := <-won
	if b == nil {
		t.Fatal(<-jobs.Failed())
	}
	if commit(t, db, a, "2") {
		t.Error("a deposed leader wrote")
	}
	if !commit(t, db, b, "3") {
		t.Error("the new leader cannot write")
	}
	b.Resign()
}

// TestLeaseEnds checks that a leader whose lease has ended is notified, and cannot write before
// that.
func TestLeaseEnds(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	a := campaign(t, db, "a")
	defer a.Resign()
	ctx, cancel := a.Bind(t.Context())
	defer cancel()
	if _, err := db.client.Revoke(t.Context(), a.session.Lease()); err != nil {
		t.Fatal(err)
	}
	if commit(t, db, a, "1") {
		t.Error("a leader without a lease wrote")
	}
	select {
	case <-ctx.Done():
		if !errors.Is(context.Cause(ctx), ErrLeaseEnded) {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
	case <-time.After(20 * time.Second):
		t.Error("the leader does not hear that its lease has ended")
	}
}

// TestCampaignEnds checks that Campaign ends with its context, and when etcd does not respond;
// nothing is left behind.
func TestCampaignEnds(t *testing.T) {
	s := newServer(t)
	s.start()
	db := s.client()
	a := campaign(t, db, "a")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := db.Campaign(ctx, electionPrefix, "b", 2*time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	resp, err := db.client.Get(t.Context(), electionPrefix, clientv3.WithPrefix())
	if err != nil || len(resp.Kvs) != 1 {
		t.Errorf("%d candidates, %v", len(resp.Kvs), err)
	}
	a.Resign()
	s.stop()
	ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := db.Campaign(ctx, electionPrefix, "c", 2*time.Second); err == nil {
		t.Error("elected without etcd")
	}
}

// TestFollow checks that the feed returns the state, then changes in order, then an error when the
// connection was lost.
func TestFollow(t *testing.T) {
	s := newServer(t)
	s.start()
	db := s.client()
	until(t, "connection", db.Connected)
	put(t, db, 1, "a")
	n := 0
	feed, err := db.Follow(t.Context(), KSRPrefix, func(cas.Value) { n++ })
	if err != nil || n != 1 {
		t.Fatalf("%d values, %v", n, err)
	}
	defer feed.Close()
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	if got, err := feed.Next(t.Context(), wake); got != nil || err != nil {
		t.Errorf("woken with %v, %v", got, err)
	}
	put(t, db, 2, "b")
	deleteAll(t, db, "allocatedIDs/1")
	var got []cas.Value
	for len(got) < 2 {
		changes, err := feed.Next(t.Context(), wake)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, changes...)
	}
	if got[0].Key != KSRPrefix+"allocatedIDs/2" || got[0].Value == nil || got[1].Value != nil || got[1].Rev != got[0].Rev+1 {
		t.Errorf("changes %v", got)
	}
	s.stop()
	until(t, "loss", func() bool { return !db.Connected() })
	s.start()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := feed.Next(ctx, wake); err == nil || ctx.Err() != nil {
		t.Errorf("after a loss: %v", err)
	}
}
