//go:build linux

package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/vpp/contiv"
	"contiv.dev/vswitch/plugins/policy/model"
	vpppolicy "contiv.dev/vswitch/plugins/policy/renderer/vpp"
)

const (
	// ruleSeries is how many rules have a series of their own; those of more policies than that are left out and counted.
	ruleSeries = 2000
	// ruleTimeout bounds the question to VPP.
	ruleTimeout = 5 * time.Second
)

// ruleCollector exports how often the rules of network policy have decided. Series are bounded: a node has the policies that select its pods,
// and rules are those that users have written, however many pods they mean.
type ruleCollector struct {
	policies func() []model.Policy // sorted by ID
	read     func(ctx context.Context) (map[uint64]contiv.PolicyCounts, error)
}

var (
	descDecided = prometheus.NewDesc("contiv_policy_rule_decisions_total",
		"Connections, and packets of protocols without connections, that a rule of network policy has decided (VPP with the contiv plugin).",
		[]string{"policy", "direction", "rule", "action"}, nil)
	descUncounted = prometheus.NewDesc("contiv_policy_rules_uncounted", "Rules of network policy without a series of their own, because there are too many.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c ruleCollector) Describe(out chan<- *prometheus.Desc) {
	out <- descDecided
	out <- descUncounted
}

// Collect implements prometheus.Collector.
func (c ruleCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), ruleTimeout)
	defer cancel()
	counts, err := c.read(ctx)
	if err != nil || len(counts) == 0 { // VPP is away, or has no plugin: the connection's own metrics say so
		return
	}
	series, uncounted := 0, 0
	for _, p := range c.policies() {
		decided := counts[vpppolicy.ID(p.ID)]
		for _, d := range []struct {
			direction string
			list      []vpppolicy.Count
		}{{"ingress", vpppolicy.Counts(p.Ingress, decided.Ingress)}, {"egress", vpppolicy.Counts(p.Egress, decided.Egress)}} {
			for _, one := range d.list {
				if series++; series > ruleSeries {
					uncounted++
					continue
				}
				out <- prometheus.MustNewConstMetric(descDecided, prometheus.CounterValue, float64(one.Decided), p.ID.String(), d.direction, one.Rule, one.Action.String())
			}
		}
	}
	out <- prometheus.MustNewConstMetric(descUncounted, prometheus.GaugeValue, float64(uncounted))
}
