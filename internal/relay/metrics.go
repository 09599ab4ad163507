package relay

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/clusterdb/cas"
)

// stats has totals since the start.
type stats struct {
	puts, deletes, txns, failures, terms, compared atomic.Uint64
}

func (s *stats) count(writes []cas.Write) {
	s.txns.Add(1)
	for _, w := range writes {
		if w.Value == nil {
			s.deletes.Add(1)
		} else {
			s.puts.Add(1)
		}
	}
}

// maxNamed bounds the objects that metrics name.
const maxNamed = 20

// collector publishes the counters of the relay as metrics.
type collector struct{ r *Relay }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("contiv_ksr_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	t := c.r.table
	t.mu.Lock()
	values, pending, refused, foreign, complete := len(t.want), len(t.dirty), len(t.refused), t.foreign, t.marker
	t.mu.Unlock()
	gauge := func(name, help string, v int) {
		ch <- prometheus.MustNewConstMetric(desc(name, help), prometheus.GaugeValue, float64(v))
	}
	counter := func(name, help string, v uint64, labels ...string) {
		names := []string{"operation"}[:len(labels)]
		ch <- prometheus.MustNewConstMetric(desc(name, help, names...), prometheus.CounterValue, float64(v), labels...)
	}
	bit := map[bool]int{true: 1}
	gauge("leader", "1 while this replica leads.", bit[c.r.Leading()])
	gauge("complete", "1 while this replica leads and the state in etcd is marked as complete.", bit[complete])
	gauge("values", "Values that etcd should have.", values)
	gauge("pending_values", "Values in etcd that differ from what they should be.", pending)
	gauge("refused_values", "Objects that cannot be written to etcd. Agents get a closed version of them, or none.", refused)
	for i, key := range slices.Sorted(maps.Keys(c.r.Refused())) {
		if i == maxNamed {
			break
		}
		ch <- prometheus.MustNewConstMetric(desc("refused_value", "Object that cannot be written to etcd, by key.", "key"),
			prometheus.GaugeValue, 1, strings.TrimPrefix(key, statePrefix))
	}
	s := &c.r.stats
	counter("writes_total", "Values written to etcd.", s.puts.Load(), "put")
	counter("writes_total", "Values written to etcd.", s.deletes.Load(), "delete")
	counter("transactions_total", "Transactions that have written values.", s.txns.Load())
	counter("failures_total", "Attempts to write to etcd or to follow it that failed.", s.failures.Load())
	counter("terms_total", "Times that this replica was elected.", s.terms.Load())
	counter("comparisons_total", "Times that all of etcd's state was compared.", s.compared.Load())
	counter("foreign_changes_total", "Changes of the state in etcd by other writers that were examined.", foreign)
}
