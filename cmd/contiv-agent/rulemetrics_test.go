//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/vpp/traffic"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
	vpppolicy "contiv.dev/vswitch/plugins/policy/renderer/vpp"
)

// TestRuleCollector: there is a series for each rule as the user wrote it; a policy that VPP does not have, or has in another form, has none;
// the number of series is bounded.
func TestRuleCollector(t *testing.T) {
	id := func(name string) model.PolicyID {
		return model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: "ns", Name: name}
	}
	rule := func(n int) model.Rule { return model.Rule{Action: model.Allow, Origin: fmt.Sprintf("ingress[%d]", n)} }
	list := []model.Policy{{ID: id("a"), Ingress: []model.Rule{rule(0), rule(0), rule(1)}, Egress: []model.Rule{{Origin: "egress[0]"}}},
		{ID: id("absent"), Ingress: []model.Rule{rule(0)}}}
	counts := map[uint64]traffic.PolicyCounts{vpppolicy.ID(id("a")): {Ingress: []uint64{1, 2, 4}, Egress: []uint64{8}}}
	c := newRuleCollector(func() []model.Policy { return list }, vppRules(func(context.Context) (map[uint64]traffic.PolicyCounts, error) { return counts, nil }))
	c.now = time.Time{}.Local // the clock stands still
	want := `action=allow direction=ingress policy=NetworkPolicy ns/a rule=ingress[0]: 3
action=allow direction=ingress policy=NetworkPolicy ns/a rule=ingress[1]: 4
action=deny direction=egress policy=NetworkPolicy ns/a rule=egress[0]: 8
`
	if text, _, _ := gathered(t, c); text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	for i := range ruleSeries {
		list[1].Ingress = append(list[1].Ingress, rule(i+1))
	}
	counts[vpppolicy.ID(id("absent"))] = traffic.PolicyCounts{Ingress: make([]uint64, ruleSeries+1)}
	if _, series, uncounted := gathered(t, c); series != ruleSeries || uncounted != 4 {
		t.Errorf("%d series, %v rules are not counted", series, uncounted)
	}
	list = append(list, model.Policy{ID: id("behind"), Ingress: []model.Rule{rule(0), rule(1)}})
	if _, series, uncounted := gathered(t, c); series != ruleSeries || uncounted != 4+2 {
		t.Errorf("%d series, %v rules are not counted with one policy more", series, uncounted)
	}
	c.read = vppRules(func(context.Context) (map[uint64]traffic.PolicyCounts, error) { return nil, errors.New("VPP is away") })
	if text, _, _ := gathered(t, c); text != "" {
		t.Errorf("without VPP: %s", text)
	}
}

// TestRuleCollectorPace: a query that takes 100 ms is sent once in 2 seconds, however often a scrape comes.
func TestRuleCollectorPace(t *testing.T) {
	queried, now := 0, time.Unix(1e9, 0)
	c := newRuleCollector(func() []model.Policy { return nil }, func(context.Context, []model.Policy) ([]renderer.Counts, error) {
		queried++
		now = now.Add(100 * time.Millisecond)
		return []renderer.Counts{}, nil
	})
	c.now = func() time.Time { return now }
	for range 100 {
		if _, _, uncounted := gathered(t, c); uncounted != 0 {
			t.Errorf("%v rules are not counted", uncounted)
		}
		now = now.Add(100 * time.Millisecond)
	}
	if queried != 6 {
		t.Errorf("asked %d times in 10.6 seconds, want 6", queried)
	}
}

// gathered returns what a registry gathers from the collector.
func gathered(t *testing.T, c prometheus.Collector) (text string, series int, uncounted float64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != "contiv_policy_rule_decisions_total" {
				uncounted = m.GetGauge().GetValue()
				continue
			}
			series++
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			text += fmt.Sprintf("%s: %v\n", strings.Join(labels, " "), m.GetCounter().GetValue())
		}
	}
	return text, series, uncounted
}
