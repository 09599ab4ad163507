package statscollector

import (
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
)

// Programming measures the time until changes of services are in the dataplane. Names, types and buckets are those of kube-proxy.
type Programming struct {
	started  time.Time
	latency  prometheus.Histogram
	sync     prometheus.Histogram
	full     prometheus.Histogram
	last     prometheus.Gauge
	services prometheus.Counter
	slices   prometheus.Counter
}

// NewProgramming returns a Programming that measures changes that were triggered after started: older changes did not wait for this agent.
func NewProgramming(reg prometheus.Registerer, started time.Time) (*Programming, error) {
	const ns = "kubeproxy"
	syncBuckets := prometheus.ExponentialBuckets(0.001, 2, 15)
	p := &Programming{
		started: started,
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: ns, Name: "network_programming_duration_seconds",
			Help:    "Time from the change of a pod or service that changed endpoints until it is in the dataplane.",
			Buckets: latencyBuckets()}),
		sync: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: ns, Name: "sync_proxy_rules_duration_seconds",
			Help: "Time to bring one change of services into the dataplane.", Buckets: syncBuckets}),
		full: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: ns, Name: "sync_full_proxy_rules_duration_seconds",
			Help: "Time of a resync, services among the rest.", Buckets: syncBuckets}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: ns, Name: "sync_proxy_rules_last_timestamp_seconds",
			Help: "When services were last brought into the dataplane with success."}),
		services: prometheus.NewCounter(prometheus.CounterOpts{Namespace: ns, Name: "sync_proxy_rules_service_changes_total",
			Help: "Changes of services."}),
		slices: prometheus.NewCounter(prometheus.CounterOpts{Namespace: ns, Name: "sync_proxy_rules_endpoint_changes_total",
			Help: "Changes of endpoint slices."}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{p.latency, p.sync, p.full, p.last, p.services, p.slices} {
		errs = append(errs, reg.Register(c))
	}
	return p, errors.Join(errs...)
}

// latencyBuckets returns the buckets of the SLI: fine ones up to a minute, coarse ones up to five minutes.
func latencyBuckets() []float64 {
	return slices.Concat(
		[]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1}, // the dataplane is faster than kube-proxy's first bucket
		prometheus.LinearBuckets(0.25, 0.25, 2), prometheus.LinearBuckets(1, 1, 59),
		prometheus.LinearBuckets(60, 5, 12), prometheus.LinearBuckets(120, 30, 7))
}

// EventHandled is called for every event when its transaction has been applied; err is its result.
func (p *Programming) EventHandled(ev api.Event, start, end time.Time, err error) {
	if change, ok := ev.(*api.KubeStateChange); ok {
		p.changed(change, start, end, err)
		return
	}
	if ev.Method() == api.FullResync || ev.Method() == api.UpstreamResync {
		p.full.Observe(end.Sub(start).Seconds())
		if err == nil {
			p.last.Set(seconds(end))
		}
	}
}

func (p *Programming) changed(ev *api.KubeStateChange, start, end time.Time, err error) {
	switch ev.Resource {
	case model.ServiceKeyword:
		p.services.Inc()
	case model.EndpointSliceKeyword:
		p.slices.Inc()
		if at := triggered(ev); err == nil && at.After(p.started) && !at.After(end) {
			p.latency.Observe(end.Sub(at).Seconds())
		}
	default:
		return
	}
	p.sync.Observe(end.Sub(start).Seconds())
	if err == nil {
		p.last.Set(seconds(end))
	}
}

// triggered returns the time of the change that changed the endpoints. A slice that changes for another reason keeps its old time, which
// must not be measured again.
func triggered(ev *api.KubeStateChange) time.Time {
	after, ok := ev.NewValue.(*model.EndpointSlice)
	if !ok || after.GetTriggerMs() == 0 {
		return time.Time{}
	}
	if before, ok := ev.PrevValue.(*model.EndpointSlice); ok && before.GetTriggerMs() == after.GetTriggerMs() {
		return time.Time{}
	}
	return time.UnixMilli(after.GetTriggerMs())
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
