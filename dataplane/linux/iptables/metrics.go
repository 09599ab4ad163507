package iptables

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics has the meaning of Felix's metrics.
type metrics struct {
	restoreCalls, restoreErrors prometheus.Counter
	saveCalls, saveErrors       prometheus.Counter
	chains, rules               *prometheus.GaugeVec // ip_version, table
	lines                       *prometheus.CounterVec
	lockSeconds                 prometheus.Summary
	lockRetries                 prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, prefix string) (*metrics, error) {
	count, lines, seconds := "_total", "lines", "lock_acquire_seconds"
	if prefix == "" { // Felix's names
		prefix, count, lines, seconds = "felix_", "", "lines_executed", "lock_acquire_secs"
	}
	prefix += "iptables_"
	labels := []string{"ip_version", "table"}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + name + count, Help: help})
	}
	m := &metrics{
		restoreCalls:  counter("restore_calls", "Number of iptables-restore calls."),
		restoreErrors: counter("restore_errors", "Number of iptables-restore errors."),
		saveCalls:     counter("save_calls", "Number of iptables-save calls."),
		saveErrors:    counter("save_errors", "Number of iptables-save errors."),
		lockRetries:   counter("lock_retries", "Number of times the iptables lock was held by another program."),
		chains: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "chains", Help: "Number of active iptables chains."}, labels),
		rules: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "rules", Help: "Number of active iptables rules."}, labels),
		lines: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + lines + count, Help: "Number of iptables rule updates executed."}, labels),
		lockSeconds: prometheus.NewSummary(prometheus.SummaryOpts{
			Name: prefix + seconds, Help: "Time taken to acquire the iptables lock."}),
	}
	if reg == nil {
		return m, nil
	}
	var err error
	for _, c := range []*prometheus.Counter{&m.restoreCalls, &m.restoreErrors, &m.saveCalls, &m.saveErrors, &m.lockRetries} {
		register(reg, c, &err)
	}
	register(reg, &m.chains, &err)
	register(reg, &m.rules, &err)
	register(reg, &m.lines, &err)
	register(reg, &m.lockSeconds, &err)
	return m, err
}

// register registers *c; if another instance has already registered this metric, *c becomes that one.
func register[C prometheus.Collector](reg prometheus.Registerer, c *C, failed *error) {
	err := reg.Register(*c)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			*c = same
			return
		}
	}
	*failed = errors.Join(*failed, err)
}
