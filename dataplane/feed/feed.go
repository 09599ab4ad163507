package feed

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/scheduler"
)

// Driver is the part of a driver that the feed needs.
type Driver interface {
	// SendMessage queues a message; it blocks while the driver's queue is full.
	SendMessage(msg any) error
	// RecvMessage waits for a status message. It fails after the driver has been stopped.
	RecvMessage() (any, error)
	// Flush waits until all messages sent before have been applied; an error means that not all of them could be written. The driver continues
	// to retry.
	Flush(ctx context.Context) error
	// Refresh makes the driver compare everything with the kernel, without waiting for it.
	Refresh() error
	// Expedite suspends the driver's throttle until release is called.
	Expedite() (release func())
}

// batchSender is a driver that applies several messages as one change. Other drivers receive them one by one, and an apply may run between them.
type batchSender interface {
	SendMessages(msgs ...any) error
}

// Config configures a Feed.
type Config struct {
	Driver Driver
	Log    *slog.Logger
	// LinkKey returns the key of the value that brings up the link of an endpoint. The endpoint's status cannot be up before. Optional.
	LinkKey func(id *proto.WorkloadEndpointID) string
	// Condition returns details about an endpoint that its status message has no field for: why it is not up, and whether it is connected
	// nevertheless, under rules that block more than requested. It must not wait. Optional.
	Condition func(id *proto.WorkloadEndpointID) (reason string, connected bool)
	// NoStatus is for a driver that reports no status of endpoints, such as Felix's driver for Windows of seed 001: an endpoint counts as up
	// when the driver has applied it.
	NoStatus bool
	// NoServices leaves services to another backend of the scheduler.
	NoServices bool
	// ApplyTimeout bounds the wait for a batch, UpTimeout the wait for endpoints to come up. Defaults 20 s and 5 s.
	ApplyTimeout, UpTimeout time.Duration
}

// Feed is the backend of the driver's descriptors. Its methods run on the scheduler's goroutine, except for Run.
type Feed struct {
	cfg      Config
	reported map[string]pb.Message // messages that the driver has received and that have not been removed
	synced   atomic.Bool           // InSync was sent
	ops      []queued
	ups      []waiting

	mu      sync.Mutex
	status  map[string]string // guarded by mu; status of endpoints by the key of workload-up
	changed chan struct{}     // guarded by mu; closed and replaced when status has changed
}

// queued is an operation of the wave whose message is sent to the driver.
type queued struct {
	op  *scheduler.Op
	key string
	msg pb.Message // the value; nil: it is removed
	out any        // the message to send
	// order is the position in the batch: objects are sent before the objects that refer to them, and removed after them.
	order int
}

// waiting is an operation that ends when an endpoint is up.
type waiting struct {
	op  *scheduler.Op
	key string
	id  *proto.WorkloadEndpointID
}

var _ scheduler.Backend = (*Feed)(nil)

// New returns a feed for a driver that has not received any message.
func New(cfg Config) *Feed {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ApplyTimeout <= 0 {
		cfg.ApplyTimeout = 20 * time.Second
	}
	if cfg.UpTimeout <= 0 {
		cfg.UpTimeout = 5 * time.Second
	}
	return &Feed{cfg: cfg, reported: map[string]pb.Message{}, status: map[string]string{}, changed: make(chan struct{})}
}

// Run receives the driver's status messages until the driver is stopped. It is a job.
func (f *Feed) Run(ctx context.Context) error {
	for {
		msg, err := f.cfg.Driver.RecvMessage()
		if err != nil {
			if ctx.Err() == nil {
				f.cfg.Log.Debug("the driver sends no more reports", "error", err)
			}
			return nil
		}
		switch m := msg.(type) {
		case *proto.WorkloadEndpointStatusUpdate:
			f.report(upKey(m.GetId()), m.GetStatus().GetStatus())
		case *proto.WorkloadEndpointStatusRemove:
			f.report(upKey(m.GetId()), "")
		}
	}
}

func (f *Feed) report(key, status string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if status == "" {
		delete(f.status, key)
	} else {
		f.status[key] = status
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// Synced reports whether InSync was sent to the driver. Before that the driver is idle on purpose. Synced may be called from any goroutine.
func (f *Feed) Synced() bool { return f.synced.Load() }

// statusOf returns the status of an endpoint, and a channel that is closed when a status changes.
func (f *Feed) statusOf(key string) (string, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status[key], f.changed
}

// Flush implements scheduler.Backend.
func (f *Feed) Flush(ctx context.Context) {
	ops, ups := f.ops, f.ups
	f.ops, f.ups = nil, nil
	if len(ops) > 0 {
		f.send(ctx, ops)
	}
	f.awaitUp(ctx, ups)
}

// send sends a batch and waits until it has been applied.
func (f *Feed) send(ctx context.Context, ops []queued) {
	slices.SortStableFunc(ops, func(a, b queued) int { return cmp.Compare(a.order, b.order) })
	failed, sent := f.hand(ops)
	if failed == nil && sent && f.synced.Load() {
		flush, cancel := context.WithTimeout(ctx, f.cfg.ApplyTimeout)
		defer cancel()
		if err := f.cfg.Driver.Flush(flush); err != nil {
			failed = fmt.Errorf("the driver could not apply all of its state, and retries: %w", err)
			f.cfg.Log.Warn("some objects are not programmed", "error", err)
		}
	}
	for _, q := range ops {
		switch {
		case q.op == nil:
		case failed != nil && mustBeApplied(q):
			q.op.Done(scheduler.Retry(failed))
		default:
			q.op.Done(nil)
		}
	}
}

// hand sends the messages of a batch, which are one change. Members of the same set are combined in one message. If the batch cannot be sent
// because the driver has been stopped, its operations end with the error.
func (f *Feed) hand(ops []queued) (failed error, sent bool) {
	var outs []any
	for i := 0; i < len(ops); {
		n := 1
		for n < len(ops)-i && sameSet(ops[i], ops[i+n]) {
			n++
		}
		group := ops[i : i+n]
		i += n
		if out := f.message(group); out != nil {
			outs = append(outs, out)
		}
		for _, q := range group {
			f.note(q)
		}
	}
	if failed = f.sendAll(outs); failed != nil {
		failed = fmt.Errorf("send the driver %s and %d more: %w", ops[0].key, len(ops)-1, failed)
		for i := range ops {
			delete(f.reported, ops[i].key)
			ops[i].op.Done(failed)
			ops[i].op = nil
		}
		return failed, true
	}
	if slices.ContainsFunc(ops, func(q queued) bool { return q.key == nb.DriverInSyncKey }) {
		f.synced.Store(true)
	}
	return nil, len(outs) > 0
}

func (f *Feed) sendAll(msgs []any) error {
	if d, can := f.cfg.Driver.(batchSender); can {
		return d.SendMessages(msgs...)
	}
	for _, msg := range msgs {
		if err := f.cfg.Driver.SendMessage(msg); err != nil {
			return err
		}
	}
	return nil
}

// note records the message that the driver receives.
func (f *Feed) note(q queued) {
	if q.msg == nil {
		delete(f.reported, q.key)
	} else {
		f.reported[q.key] = q.msg
	}
}

// message returns the driver's message for a group of operations; nil if none is to be sent.
func (f *Feed) message(group []queued) any {
	switch m := group[0].out.(type) {
	case *proto.IPSetMember:
		return delta(group)
	case *proto.WorkloadPolicy:
		ep, known := f.reported[workloadKey(m.GetId())].(*proto.WorkloadEndpointUpdate)
		if !known || group[0].msg == nil {
			return nil // the endpoint will be sent with its policy, or there is no endpoint
		}
		return withPolicy(ep, m)
	case *proto.WorkloadEndpointUpdate:
		policy, _ := f.reported[nb.DriverWorkloadPolicyKey(m.GetId())].(*proto.WorkloadPolicy)
		return withPolicy(m, policy)
	}
	return group[0].out
}

func workloadKey(id *proto.WorkloadEndpointID) string { return nb.DriverWorkloadKey(id) }

// withPolicy returns an endpoint with the policy that applies to it. Without policy, the endpoint has no profile and no tier, which drops all
// traffic.
func withPolicy(ep *proto.WorkloadEndpointUpdate, policy *proto.WorkloadPolicy) *proto.WorkloadEndpointUpdate {
	full := pb.CloneOf(ep.GetEndpoint())
	full.Tiers, full.ProfileIds = policy.GetTiers(), policy.GetProfileIds()
	return &proto.WorkloadEndpointUpdate{Id: ep.GetId(), Endpoint: full}
}

// sameSet reports whether two operations are about members of one set.
func sameSet(a, b queued) bool {
	m, is := a.out.(*proto.IPSetMember)
	n, too := b.out.(*proto.IPSetMember)
	return is && too && m.GetSetId() == n.GetSetId()
}

// delta returns the change of a set.
func delta(group []queued) *proto.IPSetDeltaUpdate {
	out := &proto.IPSetDeltaUpdate{}
	for _, q := range group {
		m := q.out.(*proto.IPSetMember)
		out.Id = m.GetSetId()
		if q.msg == nil {
			out.RemovedMembers = append(out.RemovedMembers, m.GetMember())
		} else {
			out.AddedMembers = append(out.AddedMembers, m.GetMember())
		}
	}
	return out
}

// refresh makes the driver compare its state with the kernel, and waits until the driver has repaired all differences that it can repair. A
// difference that it cannot repair is not an error of the dump.
func (f *Feed) refresh(ctx context.Context) error {
	if err := f.cfg.Driver.Refresh(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.cfg.ApplyTimeout)
	defer cancel()
	if err := f.cfg.Driver.Flush(ctx); err != nil {
		f.cfg.Log.Warn("not everything could be repaired", "error", err)
	}
	return nil
}

// mustBeApplied reports whether a failed apply fails the operation: a pod whose endpoint may not be programmed must not come up. The driver
// retries everything else.
func mustBeApplied(q queued) bool {
	switch q.msg.(type) {
	case *proto.WorkloadEndpointUpdate, *proto.WorkloadPolicy:
		return true
	}
	return false
}

// awaitUp waits until all endpoints are up, or the timeout expires.
func (f *Feed) awaitUp(ctx context.Context, ups []waiting) {
	if len(ups) == 0 {
		return
	}
	defer f.cfg.Driver.Expedite()()
	deadline := time.NewTimer(f.cfg.UpTimeout)
	defer deadline.Stop()
	for _, w := range ups {
		w.op.Done(f.await(ctx, w, deadline.C))
	}
}

func (f *Feed) await(ctx context.Context, w waiting, deadline <-chan time.Time) error {
	for {
		status, changed := f.statusOf(w.key)
		up, reason := f.up(w.id, status)
		if up {
			return nil
		}
		select {
		case <-changed:
		case <-deadline:
			return scheduler.Retry(fmt.Errorf("the endpoint is %q after %s; %s", orUnknown(status), f.cfg.UpTimeout,
				cmp.Or(reason, "GET /linux/dataplane has the reason")))
		case <-ctx.Done():
			return scheduler.Retry(ctx.Err())
		}
	}
}

// up reports whether an endpoint is connected, given its reported status; if not, reason is the cause, if there is one.
func (f *Feed) up(id *proto.WorkloadEndpointID, status string) (is bool, reason string) {
	if f.cfg.NoStatus || status == "up" {
		return true, ""
	}
	if f.cfg.Condition == nil || status == "" {
		return false, ""
	}
	reason, is = f.cfg.Condition(id)
	return is, reason
}

func orUnknown(status string) string {
	if status == "" {
		return "not reported"
	}
	return status
}
