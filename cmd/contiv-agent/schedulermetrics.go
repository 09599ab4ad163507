package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/scheduler"
)

// schedulerCollector exports the operations of the scheduler and the states of its values.
type schedulerCollector struct{ s *scheduler.Scheduler }

var (
	descOps    = prometheus.NewDesc("contiv_scheduler_operations_total", "Operations on the dataplane.", []string{"action"}, nil)
	descFailed = prometheus.NewDesc("contiv_scheduler_operations_failed_total", "Operations that failed.", nil, nil)
	descTxns   = prometheus.NewDesc("contiv_scheduler_transactions_total", "Transactions, retries included.", nil, nil)
	descQueue  = prometheus.NewDesc("contiv_scheduler_queue_length", "Transactions that wait for those before them.", nil, nil)
	descPlan   = prometheus.NewDesc("contiv_scheduler_plan_seconds_total", "Time spent on planning.", nil, nil)
	descExec   = prometheus.NewDesc("contiv_scheduler_execute_seconds_total", "Time spent on operations on the dataplane.", nil, nil)
	descValues = prometheus.NewDesc("contiv_scheduler_values", "Values by state.", []string{"state"}, nil)
)

// Describe implements prometheus.Collector.
func (c schedulerCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descOps, descFailed, descTxns, descValues, descQueue, descPlan, descExec} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c schedulerCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.s.Stats()
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	counter(descOps, uint64(stats.Creates), "create")
	counter(descOps, uint64(stats.Updates), "update")
	counter(descOps, uint64(stats.Deletes), "delete")
	counter(descFailed, uint64(stats.OpsFailed))
	counter(descTxns, uint64(stats.Txns))
	number := func(d *prometheus.Desc, t prometheus.ValueType, v float64) {
		out <- prometheus.MustNewConstMetric(d, t, v)
	}
	number(descQueue, prometheus.GaugeValue, float64(c.s.QueueLength()))
	number(descPlan, prometheus.CounterValue, stats.PlanTime.Seconds())
	number(descExec, prometheus.CounterValue, stats.ExecTime.Seconds())
	for state, n := range c.s.Counts() {
		out <- prometheus.MustNewConstMetric(descValues, prometheus.GaugeValue, float64(n), state.String())
	}
}
