package statscollector

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestCountersAreNamedByPodAndBounded(t *testing.T) {
	var list []Counters
	read := func() ([]Counters, error) { return list, nil }
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewInterfaces(read, 2, true, quiet()))
	want := func(lines ...string) {
		t.Helper()
		if got := gathered(t, reg, "contiv_interface_receive_bytes_total"); !slices.Equal(got, lines) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
		}
	}
	series := func(namespace, pod, ifName string, n int) string {
		return fmt.Sprintf("interface=%q namespace=%q pod=%q %d", ifName, namespace, pod, n)
	}
	list = []Counters{
		{Interface: "host-eth1", RxBytes: 7}, {Namespace: "x", Pod: "a", Interface: "t1", RxBytes: 1},
		{Namespace: "x", Pod: "a", Interface: "t2", RxBytes: 2}, {Namespace: "x", Pod: "b", Interface: "t3", RxBytes: 4},
	}
	want(series("x", "a", "", 3), series("x", "b", "", 4), series("", "", "host-eth1", 7))
	for i := range 1000 { // the pods beyond the limit are one series
		list = append(list, Counters{Namespace: "y", Pod: fmt.Sprint(i), Interface: fmt.Sprint(i), RxBytes: 1})
	}
	want(series("", otherPods, "", 1000), series("x", "a", "", 3), series("x", "b", "", 4), series("", "", "host-eth1", 7))
	list = append(list, Counters{Namespace: "x", Pod: "a", NATOut2In: 3, NATIn2Out: 4, NATDrops: 5},
		Counters{Namespace: "x", Pod: "a", NATOut2In: 30})
	for metric, n := range map[string]int{"to_services_packets": 33, "as_backend_packets": 4, "drops": 5} {
		if got := gathered(t, reg, "contiv_vpp_nat_"+metric+"_total"); !slices.Contains(got, series("x", "a", "", n)) {
			t.Errorf("%s: %q", metric, got)
		}
	}
	list = append(list, Counters{Interface: "host-eth1", Drops: 1, RxErrors: 2, TxErrors: 3, Missed: 4, NoBuffer: 5})
	for metric, n := range map[string]int{"drops": 1, "receive_errors": 2, "transmit_errors": 3, "missed": 4, "no_buffer": 5} {
		if got := gathered(t, reg, "contiv_interface_"+metric+"_total"); !slices.Contains(got, series("", "", "host-eth1", n)) {
			t.Errorf("%s: %q", metric, got)
		}
	}
	list = list[:1] // deleted interfaces are missing in the next response
	want(series("", "", "host-eth1", 7))
}

func TestUnreadableCountersAreReported(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewInterfaces(func() ([]Counters, error) { return nil, errors.New("no socket") }, 1, false,
		quiet()))
	if got := gathered(t, reg, "contiv_interface_counters_up"); !slices.Equal(got, []string{"0"}) {
		t.Errorf("counters up: %q", got)
	}
}

// gathered returns the samples of a metric: labels and value.
func gathered(t *testing.T, reg *prometheus.Registry, name string) (out []string) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			text := ""
			for _, l := range m.GetLabel() {
				text += fmt.Sprintf("%s=%q ", l.GetName(), l.GetValue())
			}
			out = append(out, text+fmt.Sprint(m.GetCounter().GetValue()+m.GetGauge().GetValue()))
		}
	}
	slices.Sort(out)
	return out
}

// observed returns the number and the sum of the observations of the histogram called name.
func observed(t *testing.T, reg *prometheus.Registry, name string) (count uint64, sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			h := f.GetMetric()[0].GetHistogram()
			return h.GetSampleCount(), h.GetSampleSum()
		}
	}
	t.Fatalf("no histogram %s", name)
	return 0, 0
}

func TestProgrammingLatencyIsThatOfTheChange(t *testing.T) {
	start := time.UnixMilli(1_800_000_000_000)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	slice := func(trigger time.Time) *model.EndpointSlice {
		return &model.EndpointSlice{TriggerMs: trigger.UnixMilli()}
	}
	const name = "kubeproxy_network_programming_duration_seconds"
	for _, tc := range []struct {
		what string
		ev   *api.KubeStateChange
		err  error
		want uint64
	}{
		{"a pod changed 3 s before", &api.KubeStateChange{Resource: "endpointslice", NewValue: slice(at(7))}, nil, 1},
		{"the slice changed for another reason", &api.KubeStateChange{
			Resource: "endpointslice", PrevValue: slice(at(7)), NewValue: slice(at(7))}, nil, 0},
		{"a new trigger", &api.KubeStateChange{Resource: "endpointslice", PrevValue: slice(at(2)), NewValue: slice(at(7))}, nil, 1},
		{"before the agent's start", &api.KubeStateChange{Resource: "endpointslice", NewValue: slice(at(-50))}, nil, 0},
		{"in the future", &api.KubeStateChange{Resource: "endpointslice", NewValue: slice(at(99))}, nil, 0},
		{"no trigger", &api.KubeStateChange{Resource: "endpointslice", NewValue: &model.EndpointSlice{}}, nil, 0},
		{"deleted", &api.KubeStateChange{Resource: "endpointslice", PrevValue: slice(at(7))}, nil, 0},
		{"not programmed", &api.KubeStateChange{Resource: "endpointslice", NewValue: slice(at(7))}, errors.New("refused"), 0},
		{"a pod", &api.KubeStateChange{Resource: "pod", NewValue: &model.Pod{}}, nil, 0},
	} {
		reg := prometheus.NewRegistry()
		p, err := NewProgramming(reg, start)
		if err != nil {
			t.Fatal(err)
		}
		p.EventHandled(tc.ev, at(9), at(10), tc.err)
		n, sum := observed(t, reg, name)
		if n != tc.want || n == 1 && sum != 3 {
			t.Errorf("%s: %d observations, sum %g; want %d of 3 s", tc.what, n, sum, tc.want)
		}
		syncs, _ := observed(t, reg, "kubeproxy_sync_proxy_rules_duration_seconds")
		if service := tc.ev.Resource != "pod"; service != (syncs == 1) {
			t.Errorf("%s: %d syncs", tc.what, syncs)
		}
	}
}

func TestResyncIsAFullSync(t *testing.T) {
	reg := prometheus.NewRegistry()
	p, err := NewProgramming(reg, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	p.EventHandled(api.NewDBResync(), now, now.Add(time.Second), nil)
	if n, sum := observed(t, reg, "kubeproxy_sync_full_proxy_rules_duration_seconds"); n != 1 || sum != 1 {
		t.Errorf("%d full syncs, %g s", n, sum)
	}
}
