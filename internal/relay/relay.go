package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/plugins/controller/api"
)

// The default times of a Relay.
const (
	defaultLeaseTTL       = 10 * time.Second
	defaultResyncInterval = 5 * time.Minute
	defaultSettle         = 2 * time.Second
	// checkInterval is how often the leader checks whether it may stay the leader.
	checkInterval = 2 * time.Second
	// maxValue is the maximum size of one value; etcd accepts 1.5 MiB in a transaction, unless it is configured otherwise.
	maxValue = 1 << 20
	minRetry = 200 * time.Millisecond
	maxRetry = 15 * time.Second
)

// Deps are the dependencies of a Relay.
type Deps struct {
	DB      *clusterdb.DB
	Log     *slog.Logger
	Metrics prometheus.Registerer // nil: none
	// Name identifies this replica as the leader to operators.
	Name string
	// Fresh returns nil while the API server reports changes; a replica without such reports leaves the leadership to others. A nil
	// function counts as always fresh.
	Fresh func() error
	// LeaseTTL is how long a leader that died blocks the others; 10 s when zero.
	LeaseTTL time.Duration
	// ResyncInterval is how often all of etcd's state is compared; 5 min when zero.
	ResyncInterval time.Duration
	// Settle is the time without changes of other programs after which the state may be marked as complete: otherwise a user that deletes
	// the state piece by piece would delete the rest of it while agents take it for complete. 2 s when zero.
	Settle time.Duration
}

// Relay writes the state of Kubernetes to etcd. It is the sink of a kube.Source; Run is its job.
type Relay struct {
	Deps
	table   *table
	arrived chan struct{} // closed when the state is known
	stats   stats
	leading atomic.Bool
}

// Reasons to give up the leadership, or to read all of etcd's state again.
var (
	errDeposed = errors.New("another replica is the leader")
	errStale   = errors.New("the API server does not respond to this replica")
	errResync  = errors.New("a comparison with etcd is due")
)

// New returns a Relay, and registers its metrics; the caller starts it with Run.
func New(deps Deps) (*Relay, error) {
	if deps.LeaseTTL == 0 {
		deps.LeaseTTL = defaultLeaseTTL
	}
	if deps.ResyncInterval == 0 {
		deps.ResyncInterval = defaultResyncInterval
	}
	if deps.Settle == 0 {
		deps.Settle = defaultSettle
	}
	if deps.Fresh == nil {
		deps.Fresh = func() error { return nil }
	}
	r := &Relay{Deps: deps, table: newTable(), arrived: make(chan struct{})}
	if deps.Metrics != nil {
		if err := deps.Metrics.Register(&collector{r}); err != nil {
			return nil, fmt.Errorf("metrics of the relay: %w", err)
		}
	}
	return r, nil
}

// PushEvent implements kube.EventSink. There is no queue: a newer value replaces one that has not been written yet.
func (r *Relay) PushEvent(event api.Event) error {
	switch ev := event.(type) {
	case *api.DBResync:
		r.resync(ev)
	case *api.KubeStateChange:
		key := clusterdb.KSRPrefix + ev.Key
		if ev.NewValue == nil {
			r.table.remove(key)
		} else {
			r.table.put(key, r.prepare(key, ev.NewValue))
		}
	}
	return nil
}

func (r *Relay) resync(ev *api.DBResync) {
	want, refused := map[string]string{}, map[string]string{}
	for _, kvs := range ev.KubeState {
		for name, value := range kvs {
			key := clusterdb.KSRPrefix + name
			f := r.prepare(key, value)
			if f.exists {
				want[key] = f.data
			}
			if f.refused != "" {
				refused[key] = f.refused
			}
		}
	}
	first := !r.table.known()
	r.table.setAll(want, refused)
	if first {
		close(r.arrived)
	}
}

// Count returns the number of objects of a resource, including those that are not in etcd yet.
func (r *Relay) Count(keyword string) (n int) {
	r.table.each(keyword, func(string, string) { n++ })
	return n
}

// Objects returns the objects of resources, including those that are not in etcd yet. Each call decodes them again.
func (r *Relay) Objects(keywords ...string) api.KubeStateData {
	out := api.KubeStateData{}
	var decoder kube.Decoder
	for _, keyword := range keywords {
		out[keyword] = api.KeyValuePairs{}
		data := map[string]string{}
		r.table.each(keyword, func(key, value string) { data[key] = value })
		for key, value := range data {
			if object, err := decoder.Decode(keyword, []byte(value)); err == nil { // our own encoding can be decoded
				out[keyword][key] = object
			}
		}
	}
	return out
}

// Leading reports whether this replica leads.
func (r *Relay) Leading() bool { return r.leading.Load() }

// Run campaigns, leads and campaigns again until ctx ends. A replica without the state does not campaign.
func (r *Relay) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.arrived:
	}
	for retry := minRetry; ; {
		err := r.term(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, errDeposed) || errors.Is(err, clusterdb.ErrLeaseEnded) {
			retry = minRetry
		}
		r.Log.Debug("not leading", "error", err, "retryIn", retry)
		if err := pause(ctx, retry); err != nil {
			return err
		}
		retry = min(2*retry, maxRetry)
	}
}

// term campaigns once, and leads if it has won.
func (r *Relay) term(ctx context.Context) error {
	if err := r.Fresh(); err != nil {
		return fmt.Errorf("%w: %w", errStale, err)
	}
	leadership, err := r.DB.Campaign(ctx, electionPrefix, r.Name, r.LeaseTTL)
	if err != nil {
		return err
	}
	defer leadership.Resign()
	if err := r.Fresh(); err != nil { // the replica may have been on standby for days: its stale state would replace a newer one
		return fmt.Errorf("%w: %w", errStale, err)
	}
	ctx, cancel := leadership.Bind(ctx)
	defer cancel()
	r.leading.Store(true)
	defer r.leading.Store(false)
	r.stats.terms.Add(1)
	r.Log.Info("this replica writes the state of Kubernetes to etcd", "name", r.Name)
	err = r.lead(ctx, leadership.Fence)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	r.Log.Info("this replica stopped writing", "name", r.Name, "reason", err)
	return err
}

// lead keeps etcd in the wanted state until the leadership ends.
func (r *Relay) lead(ctx context.Context, fence cas.Cond) error {
	defer r.table.invalidate()
	for retry := minRetry; ; {
		progress, err := r.follow(ctx, fence)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errDeposed), errors.Is(err, errStale):
			return err
		case errors.Is(err, errResync):
			retry = minRetry
			continue
		}
		if progress {
			retry = minRetry
		}
		r.stats.failures.Add(1)
		r.Log.Debug("etcd cannot be written or followed", "error", err, "retryIn", retry)
		if err := pause(ctx, retry); err != nil {
			return err
		}
		retry = min(2*retry, maxRetry)
	}
}

// follow compares all of etcd's state with the wanted state, writes the differences, and then handles changes on either side. progress is
// true if something was written or received.
func (r *Relay) follow(ctx context.Context, fence cas.Cond) (progress bool, err error) {
	var values []cas.Value
	feed, err := r.DB.Follow(ctx, statePrefix, func(v cas.Value) { values = append(values, v) })
	if err != nil {
		return false, err
	}
	defer feed.Close()
	check := newChecks(r)
	if suspicious := r.table.load(values); suspicious {
		check.disturbed()
	}
	values = nil
	r.stats.compared.Add(1)
	for {
		wrote, err := r.write(ctx, fence, check.settled())
		if err != nil {
			return progress, err
		}
		if err := check.due(); err != nil {
			return true, err
		}
		waitCtx, cancel := context.WithTimeout(ctx, check.pause())
		changes, err := feed.Next(waitCtx, r.table.wake)
		cancel()
		if err != nil && (!errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil) {
			return progress, err
		}
		if foreign := r.table.observe(changes); foreign {
			check.disturbed()
		}
		progress = progress || wrote || len(changes) > 0
	}
}

// write writes one batch, or the marker if only the marker is missing and settled is true.
func (r *Relay) write(ctx context.Context, fence cas.Cond, settled bool) (wrote bool, err error) {
	writes := r.table.next()
	marker := false
	if writes == nil && settled && r.table.markerDue() {
		value, err := json.Marshal(struct {
			Since time.Time `json:"since"`
			By    string    `json:"by"`
		}{time.Now().UTC().Truncate(time.Second), r.Name})
		if err != nil {
			return false, err
		}
		writes, marker = []cas.Write{{Key: markerKey, Value: value}}, true
	}
	if writes == nil {
		return false, nil
	}
	index, rev, err := r.DB.CommitFirst(ctx, cas.Change{If: []cas.Cond{fence}, Do: writes})
	if clusterdb.TooLarge(err) && r.tooLarge(writes, err) {
		return r.write(ctx, fence, settled) // smaller ones
	}
	if err != nil {
		return false, err
	}
	if index == cas.None {
		return false, errDeposed
	}
	r.stats.count(writes)
	if marker {
		r.table.marked()
	} else {
		r.table.written(writes, rev)
	}
	return true, nil
}

// jitter returns a random duration between d and 1.5 d.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/2+1) }

// pause waits for between d and 1.5 d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(jitter(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
