package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/podmanager"
)

// alive returns why the agent must be restarted, or nil.
func (a *agent) alive() error {
	if ok, reason := a.controller.Healthy(); !ok {
		return errors.New(reason)
	}
	return nil
}

// ready returns why pods cannot be served. contiv-cni can connect when it returns nil.
func (a *agent) ready() error {
	if ok, reason := a.controller.Ready(); !ok {
		return a.notReady(reason)
	}
	if err := a.pods.Listening(); err != nil {
		return err
	}
	if a.opts.dataplane == dataplaneVPP {
		if err := a.ipnet.Connected(); err != nil {
			return err
		}
	}
	if err := a.dataplane.health.alive(); err != nil || a.path == nil {
		return err
	}
	return a.path.Ready()
}

// notReady returns the cause of the controller's reason, if it is known.
func (a *agent) notReady(reason string) error {
	if !a.db.Connected() {
		if cause := a.db.Cause(); cause != nil {
			return fmt.Errorf("%s; etcd does not respond: %w", reason, cause)
		}
		return fmt.Errorf("%s; etcd does not respond (%s)", reason, a.etcdName())
	}
	if err := a.kube.connected(); err != nil {
		return fmt.Errorf("%s; %w", reason, err)
	}
	// Without VPP every operation fails for the same cause, which the controller's reason repeats for each.
	if a.opts.dataplane == dataplaneVPP {
		if err := a.dataplane.health.alive(); err != nil {
			return err
		}
	}
	return errors.New(reason)
}

// etcdName describes the etcd that an operator must check.
func (a *agent) etcdName() string {
	endpoints := a.db.Endpoints()
	if len(endpoints) == 0 {
		return "embedded, in " + a.opts.dataDir
	}
	return strings.Join(endpoints, ", ")
}

// cniChecks returns the checks of CNI STATUS, CHECK and GC.
func (a *agent) cniChecks() podmanager.Checks {
	return podmanager.Checks{
		Health: []podmanager.HealthCheck{
			{Name: "dataplane", Check: func(context.Context) error {
				if err := a.dataplane.health.alive(); err != nil {
					return fmt.Errorf("%w: %w", podmanager.ErrLimitedConnectivity, err)
				}
				return nil
			}},
			{Name: "data path", Check: func(context.Context) error {
				if a.path == nil || a.path.Ready() == nil {
					return nil
				}
				return fmt.Errorf("%w: %w", podmanager.ErrLimitedConnectivity, a.path.Ready())
			}},
			{Name: "agent", Check: func(context.Context) error { return a.ready() }},
			{Name: "room", Check: func(context.Context) error { return a.dataplane.health.room() }},
			{Name: "addresses", Check: func(context.Context) error { return a.ipam.Available() }},
		},
		Verifier: verifier{a},
		AwaitPod: a.policies.AwaitPod,
		Prune: func(ctx context.Context) error {
			_, err := a.controller.Resync(ctx, api.DownstreamResync)
			return err
		},
	}
}

// verifier serves CNI CHECK: it reports whether the dataplane has the attachment's values as they are desired.
type verifier struct{ a *agent }

// CheckAttachment implements podmanager.Verifier.
func (v verifier) CheckAttachment(ctx context.Context, att *podmanager.Attachment) error {
	return v.a.dataplane.check(ctx, v.a.ipnet.KeysOf(att.ID))
}
