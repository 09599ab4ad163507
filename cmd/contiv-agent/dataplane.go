package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/pathwatch"
	"contiv.dev/vswitch/plugins/policy"
	policyrenderer "contiv.dev/vswitch/plugins/policy/renderer"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/statscollector"
)

// dataplane is the scheduler and what it programs.
type dataplane struct {
	mover
	scheduler *scheduler.Scheduler
	host      *hostLinks
	lock      *nodeLock
}

// mover is what moves the packets: VPP (vpp.go), the host's own stack (linux.go), or Windows' network service (hns.go). What it
// is not asked for by an empty method it does not have.
type mover interface {
	// backends are flushed by the scheduler in their order.
	backends() []scheduler.Backend
	// register adds the kinds.
	register(s *scheduler.Scheduler) error
	// wire reports how pods are wired.
	wire(a *agent, d *ipnet.Deps)
	// renderServices gives the service plugin its renderers.
	renderServices(a *agent, p *service.Plugin) error
	// policyRenderer renders policies; nil: the dataplane does not enforce them.
	policyRenderer(a *agent) policyrenderer.Renderer
	// notEnforced reports what network policy lacks on this node; empty: nothing.
	notEnforced(a *agent) string
	// watch reports what of the data path is watched; false: packets are not watched.
	watch(a *agent, d *pathwatch.Deps) bool
	// diagnose adds what contiv-netctl can ask of this dataplane only.
	diagnose(a *agent, d *diag.Deps)
	// devices are the devices of pods, by namespace/name, where they are the host's.
	devices() map[string]string
	// counters are those of all interfaces that are ours.
	counters(a *agent) ([]statscollector.Counters, error)
	// translated reports where translated connections are counted; false: nowhere.
	translated(s *statscollector.NATSource) bool
	// denied reports what policies have dropped; nil: nothing does.
	denied(a *agent) policy.Denied
	// connections lists open connections; nil: it does not.
	connections() policy.Connections
	// start connects.
	start(a *agent) error
	// await gives what was started a moment to be there before the first resync.
	await(log *slog.Logger)
	// alive reports why it cannot be programmed.
	alive() error
	// roomForPods reports why it cannot take more pods.
	roomForPods() error
	// close ends our side; what is programmed stays.
	close() error
}

func newDataplane(ctx context.Context, a *agent) (*dataplane, error) {
	lockPath, err := a.lockPath()
	if err != nil {
		return nil, err
	}
	lock, err := lockNode(ctx, a.opts.dataplane, lockPath, takeOver)
	if err != nil {
		return nil, err
	}
	d := &dataplane{lock: lock, host: a.host}
	if d.mover, err = newMover(a); err != nil {
		return nil, err
	}
	d.scheduler = scheduler.New(scheduler.Config{
		Backends: d.backends(), Jobs: a.jobs, Decode: decodeValue, Retry: retryPolicy(a.control.RetryConfig),
		// What was retried without result may need something that only a look at the whole dataplane finds.
		Report: func(_ *txn.Record, err *txn.Error) {
			if err := a.controller.DataplaneReconnected("gave up retrying: " + err.Error()); err != nil {
				a.log.Warn("repair of the dataplane not queued", "error", err)
			}
		},
	}, a.log.With("component", "scheduler"))
	if err := d.register(d.scheduler); err != nil {
		return nil, err
	}
	d.scheduler.RegisterREST(a.http)
	return d, a.registry.Register(schedulerCollector{d.scheduler})
}

// decodeValue reads a northbound value of a dry run.
func decodeValue(key string, data []byte) (proto.Message, error) {
	msg, err := nb.New(key)
	if err != nil {
		return nil, err
	}
	return msg, nb.UnmarshalJSON(data, msg)
}

// start connects; whenever what moves the packets is a new one, or one whose state is in doubt, the controller repairs it.
func (d *dataplane) start(a *agent) error {
	if err := d.mover.start(a); err != nil {
		return err
	}
	if err := d.scheduler.Start(); err != nil {
		return err
	}
	a.jobs.Go("host addresses", d.host.watch)
	return nil
}

// close ends the dataplane's own parts; what is programmed stays.
func (d *dataplane) close() error {
	d.scheduler.Close()
	return errors.Join(d.mover.close(), d.lock.release())
}

// check reports which of the values are not in the dataplane as they should be. It looks: what the scheduler remembers of them may have
// been changed by another program since.
func (d *dataplane) check(ctx context.Context, keys []string) error {
	var errs []error
	for _, key := range keys {
		status := d.scheduler.Status(scheduler.Filter{Key: key})
		switch {
		case len(status) == 0:
			errs = append(errs, fmt.Errorf("%s is not configured", key))
		case status[0].State != scheduler.Configured:
			errs = append(errs, fmt.Errorf("%s is %s %s", key, status[0].State, status[0].Error))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	repairs, err := d.scheduler.Check(ctx, keys)
	if err != nil {
		return fmt.Errorf("compare with the dataplane: %w", err)
	}
	for _, op := range repairs {
		errs = append(errs, fmt.Errorf("%s is not in the dataplane as it should be (%s is due); a downstream resync repairs it",
			op.Key, op.Action))
	}
	return errors.Join(errs...)
}
