package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// status records which watches work. It logs changes, not each attempt.
type status struct {
	log  *slog.Logger
	host string

	mu       sync.Mutex
	broken   map[string]error // by resource; guarded by mu
	failures uint64           // guarded by mu
}

func newStatus(log *slog.Logger, host string) *status {
	return &status{log: log, host: host, broken: map[string]error{}}
}

func (s *status) failed(resource string, err error) {
	if errors.Is(err, context.Canceled) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // the reflector only lists again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	known := s.broken[resource] != nil
	s.broken[resource] = err
	if !known {
		s.log.Warn("the API server cannot be watched; the last known state stays in force", "resource", resource, "server", s.host,
			"error", err, "fix", advice(err, resource))
	}
}

func (s *status) worked(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken[resource] != nil {
		delete(s.broken, resource)
		s.log.Info("the API server is watched again", "resource", resource, "server", s.host)
	}
}

func (s *status) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.broken) == 0 {
		return nil
	}
	var parts []string
	for resource, err := range s.broken {
		parts = append(parts, fmt.Sprintf("%s: %v", resource, err))
	}
	slices.Sort(parts)
	return fmt.Errorf("API server %s: %s", s.host, strings.Join(parts, "; "))
}

// advice returns what the operator should do about the error.
func advice(err error, resource string) string {
	switch {
	case apierrors.IsForbidden(err):
		return "give the agent's service account the verbs list and watch on " + resource
	case apierrors.IsUnauthorized(err):
		return "renew the agent's credentials"
	}
	return "check that the API server runs and can be reached from this node"
}

// collector publishes the counters of the mirror and the status as metrics.
type collector struct{ s *Source }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("contiv_kube_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	m := c.s.mirror
	m.mu.Lock()
	objects := make(map[string]int, len(m.kinds))
	for keyword, k := range m.kinds {
		objects[keyword] = len(k.values)
	}
	counts, pending := m.counts, len(m.prev)
	m.mu.Unlock()
	c.s.status.mu.Lock()
	failures, broken := c.s.status.failures, len(c.s.status.broken)
	c.s.status.mu.Unlock()

	for keyword, n := range objects {
		ch <- prometheus.MustNewConstMetric(desc("objects", "Objects known, by resource.", "resource"),
			prometheus.GaugeValue, float64(n), keyword)
	}
	gauge := func(name, help string, v float64) {
		ch <- prometheus.MustNewConstMetric(desc(name, help), prometheus.GaugeValue, v)
	}
	counter := func(name, help string, v uint64) {
		ch <- prometheus.MustNewConstMetric(desc(name, help), prometheus.CounterValue, float64(v))
	}
	gauge("pending_changes", "Changes that the event loop has not taken yet.", float64(pending))
	gauge("broken_watches", "Resources that cannot be watched at the moment.", float64(broken))
	counter("changes_total", "Changes from the API server that changed the state here.", counts.changed)
	counter("unchanged_total", "Changes from the API server that changed nothing here.", counts.same)
	counter("lists_total", "Complete lists of a resource that were read.", counts.lists)
	counter("watch_failures_total", "Attempts to list or watch that failed.", failures)
}
