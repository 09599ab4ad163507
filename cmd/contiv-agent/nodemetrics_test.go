package main

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"contiv.dev/vswitch/internal/daemon"
	"contiv.dev/vswitch/plugins/ipam"
)

// lint reports violations of Prometheus' conventions.
func lint(t *testing.T, r *prometheus.Registry) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
}

// TestNodeMetrics: the metrics have addresses by state and subnet, whether etcd answers, and the version.
func TestNodeMetrics(t *testing.T) {
	r := daemon.NewRegistry()
	r.MustRegister(nodeCollector{
		usage: func() []ipam.Usage {
			return []ipam.Usage{{Subnet: netip.MustParsePrefix("10.1.1.0/24"), Used: 3, Free: 250}}
		},
		connected: func() bool { return true },
	})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, m := range f.Metric {
			line := f.GetName()
			for _, l := range m.Label {
				line += fmt.Sprintf(" %s=%s", l.GetName(), l.GetValue())
			}
			got = append(got, fmt.Sprintf("%s %g", line, m.GetGauge().GetValue()))
		}
	}
	for _, want := range []string{
		"contiv_etcd_connected 1", "contiv_ipam_addresses state=free subnet=10.1.1.0/24 250",
		"contiv_ipam_addresses state=used subnet=10.1.1.0/24 3",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q among %q", want, got)
		}
	}
	lint(t, r)
}
