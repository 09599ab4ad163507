package main

import (
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/daemon"
)

func TestOptions(t *testing.T) {
	good := func(change func(o *options)) *options {
		o := defaultOptions()
		o.name, o.etcd = "a", clusterdb.Config{Endpoints: []string{"https://etcd:2379"}}
		change(o)
		return o
	}
	for name, c := range map[string]struct {
		opts *options
		want string // text of the error; empty: none
	}{
		"good":          {good(func(*options) {}), ""},
		"no etcd":       {good(func(o *options) { o.etcd.Endpoints = nil }), "--etcd-endpoints"},
		"short lease":   {good(func(o *options) { o.leaseTTL = time.Second }), "--lease-ttl"},
		"short resync":  {good(func(o *options) { o.resync = 0 }), "--resync-interval"},
		"short status":  {good(func(o *options) { o.policyStatus = 0 }), "--policy-status-interval"},
		"large sets":    {good(func(o *options) { o.policySetLimit = -1 }), "--policy-set-limit"},
		"the host name": {good(func(o *options) { o.name = "" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.opts.complete()
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if c.opts.name == "" || !strings.HasSuffix(c.opts.kubernetes.UserAgent, c.opts.name) {
				t.Errorf("name %q, user agent %q", c.opts.name, c.opts.kubernetes.UserAgent)
			}
		})
	}
}

// TestEnvironment: flags come from the environment unless they are given.
func TestEnvironment(t *testing.T) {
	t.Setenv("CONTIV_ETCD_ENDPOINTS", "https://a:2379,https://b:2379")
	t.Setenv("CONTIV_LEASE_TTL", "7s")
	cmd := newCommand()
	if err := cmd.Flags().Parse([]string{"--lease-ttl=9s"}); err != nil {
		t.Fatal(err)
	}
	if err := daemon.FromEnvironment(cmd.Flags()); err != nil {
		t.Fatal(err)
	}
	endpoints, err := cmd.Flags().GetStringSlice("etcd-endpoints")
	ttl, ttlErr := cmd.Flags().GetDuration("lease-ttl")
	if err != nil || ttlErr != nil || len(endpoints) != 2 || ttl != 9*time.Second {
		t.Errorf("endpoints %q, lease of %s, %v, %v", endpoints, ttl, err, ttlErr)
	}
	t.Setenv("CONTIV_RESYNC_INTERVAL", "often")
	err = daemon.FromEnvironment(newCommand().Flags())
	if err == nil || !strings.Contains(err.Error(), "CONTIV_RESYNC_INTERVAL") {
		t.Errorf("error %v", err)
	}
}
