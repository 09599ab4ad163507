//go:build linux

package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/pool"
)

// vppCollector exports the counters of the VPP connection.
type vppCollector struct {
	conn    *conn.Conn
	buffers *vpp.Buffers
	pool    *pool.Pool // nil: none
	// sourcesChecked returns why pods can send with any source address.
	sourcesChecked func() error
}

var (
	descWrites    = prometheus.NewDesc("contiv_vpp_writes_total", "Requests sent to VPP that change its state.", nil, nil)
	descRequests  = prometheus.NewDesc("contiv_vpp_requests_total", "Requests sent to VPP, by message.", []string{"message"}, nil)
	descPool      = prometheus.NewDesc("contiv_vpp_warm_pool", "VETH pairs kept ready for new pods.", []string{"state"}, nil)
	descBuffers   = prometheus.NewDesc("contiv_vpp_buffers", "Packet buffers of VPP's fullest pool.", []string{"state"}, nil)
	descConnected = prometheus.NewDesc("contiv_vpp_connected", "1 while VPP can be programmed.", nil, nil)
	descChecked   = prometheus.NewDesc("contiv_vpp_sources_checked", "1 while VPP checks the source addresses of packets from pods.", nil, nil)
	descSessions  = prometheus.NewDesc("contiv_vpp_sessions_total", "Times that VPP was connected.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c vppCollector) Describe(out chan<- *prometheus.Desc) {
	out <- descWrites
	out <- descRequests
	out <- descPool
	out <- descConnected
	out <- descSessions
	out <- descBuffers
	out <- descChecked
}

// Collect implements prometheus.Collector.
func (c vppCollector) Collect(out chan<- prometheus.Metric) {
	state := c.conn.State()
	connected := 0.0
	if state.Connected() {
		connected = 1
	}
	out <- prometheus.MustNewConstMetric(descWrites, prometheus.CounterValue, float64(c.conn.Writes()))
	for message, n := range c.conn.Stats().Sent {
		if n > 0 {
			out <- prometheus.MustNewConstMetric(descRequests, prometheus.CounterValue, float64(n), message)
		}
	}
	if c.pool != nil {
		out <- prometheus.MustNewConstMetric(descPool, prometheus.GaugeValue, float64(c.pool.Ready()), "ready")
		out <- prometheus.MustNewConstMetric(descPool, prometheus.GaugeValue, float64(c.pool.Size()), "wanted")
	}
	out <- prometheus.MustNewConstMetric(descConnected, prometheus.GaugeValue, connected)
	checked := 0.0
	if c.sourcesChecked() == nil {
		checked = 1
	}
	out <- prometheus.MustNewConstMetric(descChecked, prometheus.GaugeValue, checked)
	if total, free := c.buffers.Counts(); total > 0 {
		out <- prometheus.MustNewConstMetric(descBuffers, prometheus.GaugeValue, float64(free), "free")
		out <- prometheus.MustNewConstMetric(descBuffers, prometheus.GaugeValue, float64(total-free), "used")
	}
	out <- prometheus.MustNewConstMetric(descSessions, prometheus.CounterValue, float64(state.Session))
}
