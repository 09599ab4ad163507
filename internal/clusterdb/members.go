package clusterdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The pauses between two requests for the members' addresses: while etcd responds, and the longest pause while it does not.
const (
	followConnected = 5 * time.Minute
	followMax       = 30 * time.Second
	followTimeout   = 5 * time.Second
)

// Endpoints returns the addresses of etcd; none if it is embedded.
func (db *DB) Endpoints() []string {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.Clone(db.conf.Endpoints)
}

// SetEndpoints replaces the addresses of an etcd that is not embedded.
func (db *DB) SetEndpoints(endpoints []string) error {
	var errs []error
	if len(endpoints) == 0 {
		errs = append(errs, errors.New("the list is empty"))
	}
	for _, e := range endpoints {
		db.conf.validateEndpoint(e, func(_, format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) })
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("new addresses of etcd: %w", err)
	}
	db.mu.Lock()
	before := db.conf.Endpoints
	db.conf.Endpoints = slices.Clone(endpoints)
	db.mu.Unlock()
	db.client.SetEndpoints(endpoints...)
	db.log.Info("etcd has other addresses", "endpoints", strings.Join(endpoints, ","), "previous", strings.Join(before, ","))
	return nil
}

// FollowMembers connects to the addresses that lookup returns when members of etcd have moved to other machines, until ctx ends. While etcd
// responds, it calls lookup rarely.
func (db *DB) FollowMembers(ctx context.Context, lookup func(context.Context) ([]string, error)) error {
	retry := minRetry
	for {
		_, connected, changed := db.state()
		pause := jitter(followConnected)
		if connected {
			retry = minRetry
		} else {
			pause, retry = jitter(retry), min(2*retry, followMax)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-changed:
			timer.Stop()
		case <-timer.C:
			db.follow(ctx, lookup)
		}
	}
}

// follow looks for new addresses once. A member that is absent at the moment keeps its old address, as it usually returns there.
func (db *DB) follow(ctx context.Context, lookup func(context.Context) ([]string, error)) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	found, err := lookup(ctx)
	if err == nil {
		have := db.Endpoints()
		if !slices.ContainsFunc(found, func(e string) bool { return !slices.Contains(have, e) }) {
			return
		}
		err = db.SetEndpoints(found)
	}
	if err != nil && ctx.Err() == nil {
		db.log.Debug("the addresses of etcd's members are not read; the previous ones stay in use", "error", err)
	}
}
