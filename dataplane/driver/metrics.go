package driver

import (
	"cmp"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics holds the driver's metrics, with Felix's meanings where Felix has the metric. The names are Felix's, felix_<name>_… with the driver's
// name, or our own.
type metrics struct {
	failures  prometheus.Counter
	messages  *prometheus.CounterVec
	byType    map[reflect.Type]prometheus.Counter // used by the loop only
	applyTime prometheus.Summary
	batch     prometheus.Summary
	prefix    string
	// batchSuffix is the suffix of the names of batch sizes.
	batchSuffix string
}

func newMetrics(reg prometheus.Registerer, name, prefix string) (*metrics, error) {
	m := &metrics{prefix: prefix, byType: map[reflect.Type]prometheus.Counter{}}
	failures, messages, batch := "failures_total", "messages_total", "batch_messages"
	if prefix == "" { // Felix's
		m.prefix, failures, messages, batch = "felix_"+metricName(name)+"_", "failures", "messages", "msg_batch_size"
	}
	m.batchSuffix = batch
	m.failures = prometheus.NewCounter(prometheus.CounterOpts{Name: m.prefix + failures,
		Help: "Number of times dataplane updates failed and will be retried."})
	m.messages = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.prefix + messages,
		Help: "Number of messages from the datastore, by type."}, []string{"type"})
	m.applyTime = m.summary("apply_time_seconds", "Time to apply one batch of changes to the dataplane, in seconds.")
	m.batch = m.summary(batch, "Number of messages from the datastore processed in one batch.")
	var err error
	m.failures = register(reg, m.failures, &err)
	m.messages = register(reg, m.messages, &err)
	m.applyTime = register(reg, m.applyTime, &err)
	m.batch = register(reg, m.batch, &err)
	return m, err
}

// sourceBatch returns the batch size metric of a further source: with Felix's names felix_int_dataplane_iface_msg_batch_size for source iface.
func (m *metrics) sourceBatch(reg prometheus.Registerer, source string) (prometheus.Summary, error) {
	s := m.summary(metricName(source)+"_"+m.batchSuffix, "Number of messages from source "+source+" processed in one batch.")
	var err error
	s = register(reg, s, &err)
	return s, err
}

func (m *metrics) summary(name, help string) prometheus.Summary {
	return prometheus.NewSummary(prometheus.SummaryOpts{Name: m.prefix + name, Help: help, MaxAge: 10 * time.Minute,
		Objectives: map[float64]float64{0.5: 0.05, 0.9: 0.01, 0.99: 0.001}})
}

// register registers c; if another driver has already registered the metric, that one is returned. Without a registry nothing is exported.
func register[C prometheus.Collector](reg prometheus.Registerer, c C, failed *error) C {
	if reg == nil {
		return c
	}
	err := reg.Register(c)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			return same
		}
	}
	*failed = errors.Join(*failed, err)
	return c
}

// message counts one message from the datastore.
func (m *metrics) message(msg any) {
	t := reflect.TypeOf(msg)
	c, ok := m.byType[t]
	if !ok {
		bare := t
		if t.Kind() == reflect.Pointer {
			bare = t.Elem()
		}
		c = m.messages.WithLabelValues(cmp.Or(bare.Name(), bare.String()))
		m.byType[t] = c
	}
	c.Inc()
}

// metricName returns s with underscores in place of characters that are not allowed in a metric's name.
func metricName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}
