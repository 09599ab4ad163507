//go:build linux

package main

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	intdataplane "contiv.dev/vswitch/dataplane/linux"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/vpp/traffic"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
	linuxpolicy "contiv.dev/vswitch/plugins/policy/renderer/linux"
	vpppolicy "contiv.dev/vswitch/plugins/policy/renderer/vpp"
)

const (
	// ruleSeries is how many rules have a series of their own. The rules of policies beyond that have none; their number is exported.
	ruleSeries = 2000
	// ruleTimeout bounds the query to the dataplane.
	ruleTimeout = 5 * time.Second
	// ruleShare limits the queries to 1/ruleShare of the time: earlier scrapes get the values that were read last.
	ruleShare = 20
)

// readRules queries how often the rules of policies have decided, in the order of the policies; nil: the dataplane cannot count now.
type readRules func(ctx context.Context, policies []model.Policy) ([]renderer.Counts, error)

// ruleCollector exports how often the rules of network policy have decided. The number of series is bounded: a node has only the policies that
// select its pods, and a rule is one that users have written, however many pods it matches.
type ruleCollector struct {
	policies func() []model.Policy // sorted by ID
	read     readRules
	now      func() time.Time

	mu   sync.Mutex          // one query at a time
	last []prometheus.Metric // guarded by mu
	next time.Time           // guarded by mu; until then last is exported again
}

func newRuleCollector(policies func() []model.Policy, read readRules) *ruleCollector {
	return &ruleCollector{policies: policies, read: read, now: time.Now}
}

// nodePolicies returns the policies that this node enforces.
func (a *agent) nodePolicies() []model.Policy { return a.policies.Policies() }

var (
	descDecided = prometheus.NewDesc("contiv_policy_rule_decisions_total",
		"How often a rule of network policy has decided: about connections, and about packets that belong to none.",
		[]string{"policy", "direction", "rule", "action"}, nil)
	descUncounted = prometheus.NewDesc("contiv_policy_rules_uncounted", "Rules of network policy without a series of their own, because there are too many.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *ruleCollector) Describe(out chan<- *prometheus.Desc) {
	out <- descDecided
	out <- descUncounted
}

// Collect implements prometheus.Collector.
func (c *ruleCollector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if begin := c.now(); !begin.Before(c.next) {
		c.last = c.query()
		end := c.now()
		c.next = end.Add((ruleShare - 1) * end.Sub(begin))
	}
	for _, m := range c.last {
		out <- m
	}
}

// query reads the counts of the policies that have series.
func (c *ruleCollector) query() (out []prometheus.Metric) {
	counted, uncounted := c.policies(), 0
	for i, series := 0, 0; i < len(counted); i++ {
		n := origins(counted[i])
		if series += n; series >= ruleSeries {
			for _, p := range counted[i+1:] {
				uncounted += origins(p)
			}
			counted = counted[:i+1]
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), ruleTimeout)
	defer cancel()
	counts, err := c.read(ctx, counted)
	if err != nil || counts == nil { // not connected, or VPP has no plugin: the metrics of the connection show it
		return nil
	}
	for i, p := range counted {
		for _, d := range []struct {
			direction string
			list      []renderer.Count
		}{{"ingress", counts[i].Ingress}, {"egress", counts[i].Egress}} {
			for _, one := range d.list {
				if len(out) == ruleSeries {
					uncounted++
					continue
				}
				out = append(out, prometheus.MustNewConstMetric(descDecided, prometheus.CounterValue, float64(one.Decided), p.ID.String(), d.direction, one.Rule, one.Action.String()))
			}
		}
	}
	return append(out, prometheus.MustNewConstMetric(descUncounted, prometheus.GaugeValue, float64(uncounted)))
}

// origins returns the number of series that a policy has.
func origins(p model.Policy) int {
	in, _ := renderer.Origins(p.Ingress)
	out, _ := renderer.Origins(p.Egress)
	return len(in) + len(out)
}

// vppRules reads the counters of our plugin. VPP lists all policies at once.
func vppRules(read func(ctx context.Context) (map[uint64]traffic.PolicyCounts, error)) readRules {
	return func(ctx context.Context, policies []model.Policy) ([]renderer.Counts, error) {
		counts, err := read(ctx)
		if err != nil || len(counts) == 0 {
			return nil, err
		}
		out := make([]renderer.Counts, len(policies))
		for i, p := range policies {
			decided := counts[vpppolicy.ID(p.ID)]
			out[i] = renderer.Counts{Ingress: vpppolicy.Counts(p.Ingress, decided.Ingress), Egress: vpppolicy.Counts(p.Egress, decided.Egress)}
		}
		return out, nil
	}
}

// kernelRules reads the counters of the host's packet filter.
func kernelRules(read func(ctx context.Context, policies []*proto.PolicyID) ([]intdataplane.PolicyCounts, error)) readRules {
	return func(ctx context.Context, policies []model.Policy) ([]renderer.Counts, error) {
		ids := make([]*proto.PolicyID, len(policies))
		for i, p := range policies {
			ids[i] = linuxpolicy.ID(p.ID)
		}
		counts, err := read(ctx, ids)
		if err != nil {
			return nil, err
		}
		out := make([]renderer.Counts, len(policies))
		for i, p := range policies {
			out[i] = renderer.Counts{Ingress: linuxpolicy.Counts(p.ID, p.Ingress, counts[i].Inbound), Egress: linuxpolicy.Counts(p.ID, p.Egress, counts[i].Outbound)}
		}
		return out, nil
	}
}
