package controller

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts events. A nil *metrics is valid and counts nothing.
type metrics struct {
	events       *prometheus.CounterVec
	duration     *prometheus.HistogramVec
	healings     *prometheus.CounterVec
	verification prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, queueLength func() int, ready func() bool) (*metrics, error) {
	if reg == nil {
		return nil, nil
	}
	const ns, sub = "contiv", "controller"
	m := &metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Subsystem: sub,
			Name: "events_total", Help: "Events handled, by kind and result."}, []string{"event", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: ns, Subsystem: sub,
			Name: "event_duration_seconds", Help: "Time from taking an event from the queue to its end.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9)}, []string{"event"}),
		healings: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Subsystem: sub,
			Name: "healings_total", Help: "Healing resyncs, by result."}, []string{"result"}),
		verification: prometheus.NewCounter(prometheus.CounterOpts{Namespace: ns, Subsystem: sub,
			Name: "verification_errors_total", Help: "Verifications in which updates and a resync did not agree."}),
	}
	length := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub,
		Name: "queue_length", Help: "Events that wait to be handled."}, func() float64 { return float64(queueLength()) })
	readiness := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub,
		Name: "ready", Help: "1 when the node's configuration is in place."}, func() float64 {
		if ready() {
			return 1
		}
		return 0
	})
	var errs []error
	for _, col := range []prometheus.Collector{m.events, m.duration, m.healings, m.verification, length, readiness} {
		errs = append(errs, reg.Register(col))
	}
	return m, errors.Join(errs...)
}

func (m *metrics) handled(r *EventRecord, out outcome, healing bool) {
	if m == nil {
		return
	}
	m.events.WithLabelValues(r.Name, out.result).Inc()
	m.duration.WithLabelValues(r.Name).Observe(r.ProcessingEnd.Sub(r.ProcessingStart).Seconds())
	if healing {
		m.healings.WithLabelValues(out.result).Inc()
	}
	if out.verificationErr != nil {
		m.verification.Inc()
	}
}
