package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	policyrenderer "contiv.dev/vswitch/plugins/policy/renderer"
	"contiv.dev/vswitch/plugins/service"
)

// dataplane is the scheduler and what it programs: the pods' and the host's links by netlink, and what moves the packets.
type dataplane struct {
	mover
	linux     *netlink.Backend
	janitor   *netlink.Janitor
	scheduler *scheduler.Scheduler
	host      *hostLinks
	lock      *nodeLock
}

// mover is what moves the packets: VPP (vpp.go), or the host's own stack (linux.go).
type mover interface {
	// backends are flushed by the scheduler before netlink is.
	backends() []scheduler.Backend
	// register adds the kinds, those of netlink among them.
	register(d *dataplane) error
	// renderServices gives the service plugin its renderers.
	renderServices(a *agent, p *service.Plugin) error
	// policyRenderer renders policies; nil: the dataplane does not enforce them.
	policyRenderer(a *agent) policyrenderer.Renderer
	// start connects.
	start(a *agent) error
	// await gives what was started a moment to be there before the first resync.
	await(log *slog.Logger)
	// alive says why it cannot be programmed.
	alive() error
	// roomForPods says why it cannot take more pods.
	roomForPods() error
	// close ends our side; what is programmed stays.
	close() error
}

func newDataplane(ctx context.Context, a *agent) (*dataplane, error) {
	lockPath, err := nodeLockPath()
	if err != nil {
		return nil, err
	}
	lock, err := lockNode(ctx, a.opts.dataplane, lockPath, takeOver)
	if err != nil {
		return nil, err
	}
	d := &dataplane{
		lock: lock, host: a.host, linux: netlink.NewBackend(netlink.Config{Log: a.log}), janitor: netlink.NewJanitor(a.log),
	}
	if a.opts.dataplane == dataplaneLinux {
		d.mover, err = newLinuxMover(a)
	} else {
		d.mover = newVPPMover(a)
	}
	if err != nil {
		return nil, err
	}
	d.scheduler = scheduler.New(scheduler.Config{
		Backends: append(d.backends(), d.linux), Jobs: a.jobs, Decode: decodeValue, Retry: retryPolicy(a.control.RetryConfig),
		// What was retried in vain may need something that only a look at the whole dataplane finds.
		Report: func(_ *txn.Record, err *txn.Error) {
			if err := a.controller.DataplaneReconnected("gave up retrying: " + err.Error()); err != nil {
				a.log.Warn("repair of the dataplane not queued", "error", err)
			}
		},
	}, a.log.With("component", "scheduler"))
	if err := d.register(d); err != nil {
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
	a.jobs.Go("netlink janitor", d.janitor.Run)
	a.jobs.Go("host addresses", d.host.watch)
	return nil
}

// close ends the dataplane's own parts; what is programmed stays.
func (d *dataplane) close() error {
	d.scheduler.Close()
	err := d.mover.close()
	d.linux.Close()
	return errors.Join(err, d.lock.release())
}

// check says which of the values are not in the dataplane as they should be. It looks: what the scheduler remembers of them
// may have been changed by somebody else since.
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
