//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/poll"
)

// dashboardMetrics returns the names of all metrics that the Grafana dashboard queries.
func (w *world) dashboardMetrics() []string {
	w.t.Helper()
	data, err := os.ReadFile("../../docs/observability/contiv-dashboard.json")
	if err != nil {
		w.t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		w.t.Fatal(err)
	}
	name := regexp.MustCompile(`\b(contiv|kubeproxy)_[a-z0-9_]+`)
	var out []string
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			found := name.FindAllString(t.Expr, -1)
			if len(found) == 0 {
				w.t.Errorf("panel %q: %s asks for none of our metrics", p.Title, t.Expr)
			}
			out = append(out, found...)
		}
	}
	return out
}

// metrics checks that the agent has the metrics that the dashboard queries, and that a pod's packets are counted as its own.
func (w *world) metrics(other string) {
	n := w.Nodes[0]
	var missing []error
	err := poll.Until(w.ctx, 100*time.Millisecond, func() error {
		text, err := n.Get(w.ctx, "/metrics")
		if err != nil {
			return err
		}
		missing = nil
		for _, name := range w.dashboardMetrics() {
			if strings.HasPrefix(name, "contiv_ksr_") {
				continue // the test of cmd/contiv-ksr checks these
			}
			if !strings.HasPrefix(name, "contiv_"+other+"_") && !regexp.MustCompile(`(?m)^`+name+`[ {]`).MatchString(text) {
				missing = append(missing, fmt.Errorf("the dashboard asks for %s, which the agent does not have", name))
			}
		}
		for _, metric := range []string{"receive_packets_total", "transmit_bytes_total"} {
			if !regexp.MustCompile(`contiv_interface_` + metric + `{interface="",namespace="default",pod="a"} [1-9]`).MatchString(text) {
				missing = append(missing, fmt.Errorf("pod a has sent and received, and contiv_interface_%s does not say so", metric))
			}
		}
		return errors.Join(missing...)
	})
	if err != nil {
		w.t.Error(errors.Join(missing...))
	}
	w.lintMetrics(n)
}

// lintMetrics checks that the names and help texts of all metrics follow Prometheus' conventions.
func (w *world) lintMetrics(n *testbed.Node) {
	w.t.Helper()
	text, err := n.Get(w.ctx, "/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		w.t.Errorf("promlint: %v %v", problems, err)
	}
}
