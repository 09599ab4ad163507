package clusterdb

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestFollowMembers checks that a client connects to an etcd that has moved, and that its cause names the new address while that does not respond.
func TestFollowMembers(t *testing.T) {
	first, second := newServer(t), newServer(t)
	first.start()
	db := first.client()
	waitFor(t, "the first connection", db.Connected)
	var mu sync.Mutex
	lookups, answer := 0, []string{}
	set := func(endpoints ...string) {
		mu.Lock()
		defer mu.Unlock()
		answer = endpoints
	}
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	jobs.Go("follow", func(ctx context.Context) error {
		return db.FollowMembers(ctx, func(context.Context) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			lookups++
			if len(answer) == 0 {
				return nil, errors.New("the API server does not respond")
			}
			return slices.Clone(answer), nil
		})
	})
	t.Cleanup(func() {
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	if put(t, db, 1, "a"); lookups > 0 {
		t.Errorf("%d lookups while etcd responds", lookups)
	}
	first.stop()
	waitFor(t, "the loss", func() bool { return !db.Connected() })
	moved := "unix://" + second.address()
	set(moved)
	waitFor(t, "the new address", func() bool { return slices.Equal(db.Endpoints(), []string{moved}) })
	waitFor(t, "the cause", func() bool { err := db.Cause(); return err != nil && strings.Contains(err.Error(), second.address()) })
	second.start()
	waitFor(t, "the connection to the new address", db.Connected)
	put(t, db, 2, "b")
}

// TestSetEndpoints checks that addresses that --etcd-endpoints would reject are not used.
func TestSetEndpoints(t *testing.T) {
	s := newServer(t)
	s.start()
	db := s.client()
	for _, bad := range [][]string{nil, {"http://192.0.2.1:2379"}, {"ftp://192.0.2.1:2379"}, {"https://"}} {
		if err := db.SetEndpoints(bad); err == nil || len(db.Endpoints()) != 1 {
			t.Errorf("%v: %v, now %v", bad, err, db.Endpoints())
		}
	}
	waitFor(t, "the connection", db.Connected)
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := poll.Until(ctx, 10*time.Millisecond, func() error {
		if ok() {
			return nil
		}
		return errors.New(what)
	}); err != nil {
		t.Fatal(err)
	}
}
