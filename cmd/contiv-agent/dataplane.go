package main

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
)

// dataplane is the scheduler and the dataplane that it programs.
type dataplane struct {
	parts
	scheduler *scheduler.Scheduler
	host      *hostLinks
	lock      *nodeLock
}

// newDataplane makes the dataplane that the options name, and the scheduler with its handlers and metrics. It first locks the node, so that no other
// agent programs the same dataplane.
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
	if d.parts, err = newParts(a); err != nil {
		return nil, err
	}
	d.scheduler = scheduler.New(scheduler.Config{
		Backends: d.backends, Jobs: a.jobs, Decode: decodeValue, Retry: retryPolicy(a.control.RetryConfig),
		// Values whose retries all failed may need something that only a full comparison with the dataplane finds.
		Report: func(_ *txn.Record, err *txn.Error) {
			if err := a.controller.DataplaneReconnected("gave up retrying: " + err.Error()); err != nil {
				a.log.Warn("the repair of the dataplane could not be queued", "error", err)
			}
		},
	}, a.log.With("component", "scheduler"))
	if err := d.kinds(d.scheduler); err != nil {
		return nil, err
	}
	d.scheduler.RegisterREST(a.http)
	return d, a.registry.Register(schedulerCollector{d.scheduler})
}

// decodeValue decodes a northbound value of a dry run.
func decodeValue(key string, data []byte) (proto.Message, error) {
	msg, err := nb.New(key)
	if err != nil {
		return nil, err
	}
	return msg, nb.UnmarshalJSON(data, msg)
}

// start connects to the dataplane. Whenever the dataplane is a new instance, or its state is in doubt, the controller repairs it.
func (d *dataplane) start(a *agent) error {
	if err := d.open(); err != nil {
		return err
	}
	for _, j := range d.jobs {
		a.jobs.Go(j.name, j.run)
	}
	for _, c := range d.collectors {
		if err := a.registry.Register(c); err != nil {
			return err
		}
	}
	if err := d.scheduler.Start(); err != nil {
		return err
	}
	a.jobs.Go("host addresses", d.host.watch)
	return nil
}

// check returns which of the values are not in the dataplane as they should be. It reads the dataplane: another program may have changed the
// values since the scheduler wrote them.
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
		errs = append(errs, fmt.Errorf("%s differs in the dataplane from its desired state (%s is due); a downstream resync repairs it",
			op.Key, op.Action))
	}
	return errors.Join(errs...)
}
