package problem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// api receives Events.
type api struct {
	fail error
	got  []string
}

func (a *api) write(_ context.Context, o Object, p Problem) error {
	if a.fail != nil {
		return a.fail
	}
	a.got = append(a.got, fmt.Sprintf("%s %s/%s %s", o.Kind, o.Namespace, o.Name, p.Reason))
	return nil
}

func service(name string) Object { return Object{"v1", "Service", "ns", name, "uid"} }

// counted returns the problems of services by reason, as in the metrics.
func counted(t *testing.T, r *Reporter) string {
	registry := prometheus.NewRegistry()
	registry.MustRegister(r)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "contiv_object_problems" {
				out = append(out, fmt.Sprint(m.Label[1].GetValue(), " ", m.Gauge.GetValue()))
			}
		}
	}
	return strings.Join(out, " ")
}

// TestReporter checks that each problem is one Event, written when the API server accepts it and if the problem still exists;
// metrics count the current problems.
func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{fail: errors.New("away")}
		r := NewReporter(a.write, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = r.Run(ctx) }()
		conflict, refused := Problem{"FrontendConflict", "x"}, Problem{"ServiceRefused", "y"}
		r.Set(service("a"), []Problem{conflict}, true)
		r.Set(service("a"), []Problem{conflict}, true)
		r.Set(service("b"), []Problem{conflict, refused}, true)
		r.Set(service("c"), []Problem{conflict}, true)
		r.Set(service("d"), []Problem{conflict}, false)
		time.Sleep(time.Minute)
		r.Set(service("c"), nil, true)
		if len(a.got) > 0 {
			t.Errorf("written: %v", a.got)
		}
		if got := counted(t, r); got != "FrontendConflict 3 ServiceRefused 1" {
			t.Errorf("metrics: %s", got)
		}
		a.fail = nil
		time.Sleep(2 * longestRetry)
		synctest.Wait()
		if got := fmt.Sprint(a.got); got != "[Service ns/a FrontendConflict Service ns/b FrontendConflict Service ns/b ServiceRefused]" {
			t.Errorf("written: %s", got)
		}
		a.got = nil
		r.Set(service("a"), nil, true)
		r.Set(service("a"), []Problem{conflict}, true)
		time.Sleep(2 * longestRetry)
		synctest.Wait()
		if len(a.got) != 1 {
			t.Errorf("a problem that is back: %v", a.got)
		}
		for i := range 3 * mostDue {
			r.Set(service(fmt.Sprint("many", i)), []Problem{conflict}, true)
		}
		if r.mu.Lock(); len(r.due) > mostDue || r.lost == 0 {
			t.Errorf("%d Events wait, %d lost", len(r.due), r.lost)
		}
		r.mu.Unlock()
		cancel()
		synctest.Wait()
	})
}

// TestFewNodesWrite checks that, of any number of nodes, a few write, and not always the same ones.
func TestFewNodesWrite(t *testing.T) {
	var nodes []string
	for i := range 50 {
		nodes = append(nodes, fmt.Sprint("node", i))
	}
	wrote := map[string]int{}
	for i := range 200 {
		n := 0
		for _, node := range nodes {
			if WritesEvents(node, nodes, service(fmt.Sprint(i))) {
				n++
				wrote[node]++
			}
		}
		if n != eventWriters {
			t.Errorf("%d nodes write", n)
		}
	}
	if len(wrote) < 40 {
		t.Errorf("only %d nodes ever write", len(wrote))
	}
	if !WritesEvents("new", nil, service("a")) {
		t.Error("a node that knows no nodes does not write")
	}
}
