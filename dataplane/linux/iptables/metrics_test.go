package iptables

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// values returns the registry's counters and gauges, by name and labels.
func values(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return out
}

// Metrics with Felix's names show the events, and a second backend (the next process, in tests) may share the registry.
func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	for range 2 {
		r := newRig(t, Config{Metrics: reg})
		r.basics()
		r.ReplaceSet(4, table.Set{ID: "s", Type: table.SetIP}, []table.Member{{Net: nets("10.0.0.1/32")[0]}})
		apply(t, r.Backend)
	}
	r := newRig(t, Config{Metrics: reg})
	r.basics()
	r.sys.failRestores, r.sys.restoreError = 1, &exitError{code: 4, stderr: "Resource temporarily unavailable"}
	r.sys.failSaves = 1
	if res := r.Apply(context.Background()); res.Err != nil {
		t.Fatal(res.Err)
	}
	got := values(t, reg)
	for name, want := range map[string]float64{
		"felix_iptables_restore_calls": 4, "felix_iptables_restore_errors": 1, "felix_iptables_save_errors": 1,
		"felix_iptables_chains 4 filter": 2, "felix_iptables_rules 4 filter": 6, "felix_iptables_chains 6 filter": 0,
		"felix_iptables_lines_executed 4 filter": 27, "felix_iptables_lock_retries": 0,
		"felix_ipset_lines_executed": 2*2 + 3, "felix_ipset_errors": 0, "felix_ipsets_calico": 0, "felix_ipsets_total": 0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (there: %v), want %v", name, v, ok, want)
		}
	}
	if t.Failed() {
		for name, v := range got {
			if strings.HasPrefix(name, "felix_") {
				t.Log(name, v)
			}
		}
	}
}
