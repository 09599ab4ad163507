package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/plugins/ipam"
)

// nodeCollector exports how many addresses a node has left, and whether it reaches etcd.
type nodeCollector struct {
	usage     func() []ipam.Usage
	connected func() bool
}

var (
	descAddresses = prometheus.NewDesc("contiv_ipam_addresses", "Addresses of the node's pod subnets.", []string{"subnet", "state"}, nil)
	descEtcd      = prometheus.NewDesc("contiv_etcd_connected", "1 while etcd responds.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c nodeCollector) Describe(out chan<- *prometheus.Desc) {
	out <- descAddresses
	out <- descEtcd
}

// Collect implements prometheus.Collector.
func (c nodeCollector) Collect(out chan<- prometheus.Metric) {
	for _, u := range c.usage() {
		for state, n := range map[string]int{"used": u.Used, "free": u.Free} {
			out <- prometheus.MustNewConstMetric(descAddresses, prometheus.GaugeValue, float64(n), u.Subnet.String(), state)
		}
	}
	connected := 0.0
	if c.connected() {
		connected = 1
	}
	out <- prometheus.MustNewConstMetric(descEtcd, prometheus.GaugeValue, connected)
}
