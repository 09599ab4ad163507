package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/plugins/policy/drops"
)

// deniedCollector exports what network policy has denied.
type deniedCollector struct {
	counts func() map[drops.Label]uint64
}

var descDenied = prometheus.NewDesc("contiv_policy_denied_reports_total",
	"Packets denied by network policy that the dataplane has reported, by policy and direction. The dataplane limits reports.",
	[]string{"policy", "direction"}, nil)

// Describe implements prometheus.Collector.
func (c deniedCollector) Describe(out chan<- *prometheus.Desc) { out <- descDenied }

// Collect implements prometheus.Collector.
func (c deniedCollector) Collect(out chan<- prometheus.Metric) {
	for l, n := range c.counts() {
		direction := "egress"
		if l.Ingress {
			direction = "ingress"
		}
		out <- prometheus.MustNewConstMetric(descDenied, prometheus.CounterValue, float64(n), l.Policy, direction)
	}
}
