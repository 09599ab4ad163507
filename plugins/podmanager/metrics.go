package podmanager

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/cniapi"
)

// The stages of an ADD: waiting in the queue and being handled. DEL is not split, since its handlers run in reverse order.
const (
	stageQueue  = "queue"
	stageHandle = "handle"
)

// metrics measures CNI requests. A nil *metrics is valid and measures nothing.
type metrics struct {
	requests *prometheus.HistogramVec
	stages   *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer, count func() int) (*metrics, error) {
	if reg == nil {
		return nil, nil
	}
	const ns, sub = "contiv", "cni"
	buckets := prometheus.ExponentialBuckets(0.0005, 2, 16)
	m := &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: ns, Subsystem: sub, Buckets: buckets,
			Name: "request_duration_seconds", Help: "Time to process a CNI request, by command and CNI error code (0 = success)."},
			[]string{"command", "code"}),
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: ns, Subsystem: sub, Buckets: buckets,
			Name: "add_stage_duration_seconds", Help: "Time that a CNI ADD spends in the event queue and in its handling."},
			[]string{"stage"}),
	}
	attachments := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub,
		Name: "attachments", Help: "Pod interfaces on this node."}, func() float64 { return float64(count()) })
	return m, errors.Join(reg.Register(m.requests), reg.Register(m.stages), reg.Register(attachments))
}

func (m *metrics) request(command cniapi.Command, err error, took time.Duration) {
	if m == nil {
		return
	}
	code := uint(0)
	var e *cniapi.Error
	if errors.As(err, &e) {
		code = e.Code
	} else if err != nil {
		code = cniapi.CodeInternal
	}
	m.requests.WithLabelValues(string(command), strconv.FormatUint(uint64(code), 10)).Observe(took.Seconds())
}

// stage ends a stage of ev; the next stage begins now.
func (m *metrics) stage(name string, ev *AddPod) {
	now := time.Now()
	if m != nil && !ev.since.IsZero() {
		m.stages.WithLabelValues(name).Observe(now.Sub(ev.since).Seconds())
	}
	ev.since = now
}
