package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// vppCollector exports the counters of the VPP connection.
type vppCollector struct{ conn *conn.Conn }

var (
	descWrites    = prometheus.NewDesc("contiv_vpp_writes_total", "Requests sent to VPP that change its state.", nil, nil)
	descConnected = prometheus.NewDesc("contiv_vpp_connected", "1 while VPP can be programmed.", nil, nil)
	descSessions  = prometheus.NewDesc("contiv_vpp_sessions_total", "Times that VPP was connected.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c vppCollector) Describe(out chan<- *prometheus.Desc) {
	out <- descWrites
	out <- descConnected
	out <- descSessions
}

// Collect implements prometheus.Collector.
func (c vppCollector) Collect(out chan<- prometheus.Metric) {
	state := c.conn.State()
	connected := 0.0
	if state.Connected() {
		connected = 1
	}
	out <- prometheus.MustNewConstMetric(descWrites, prometheus.CounterValue, float64(c.conn.Writes()))
	out <- prometheus.MustNewConstMetric(descConnected, prometheus.GaugeValue, connected)
	out <- prometheus.MustNewConstMetric(descSessions, prometheus.CounterValue, float64(state.Session))
}
