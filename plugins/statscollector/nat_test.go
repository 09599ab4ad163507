package statscollector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// natWorld is a node with the pods x/a (10.1.1.2 and fd00::2) and x/b (10.1.1.3).
type natWorld struct {
	total    int
	counted  int
	sessions map[netip.Addr]int
	err      error
	now      time.Time
}

func (w *natWorld) source() NATSource {
	a, b := PodName{"x", "a"}, PodName{"x", "b"}
	pods := map[netip.Addr]PodName{
		netip.MustParseAddr("10.1.1.2"): a, netip.MustParseAddr("fd00::2"): a, netip.MustParseAddr("10.1.1.3"): b,
	}
	return NATSource{
		Total:     func() (int, error) { return w.total, nil },
		ByAddress: func(context.Context) (map[netip.Addr]int, error) { w.counted++; return w.sessions, w.err },
		Pods:      func() map[netip.Addr]PodName { return pods },
	}
}

func (w *natWorld) nat(every time.Duration) (*NAT, handlers) {
	h := handlers{}
	packets := func() ([]Counters, error) {
		return []Counters{{Namespace: "x", Pod: "a", Interface: "t", NATOut2In: 7}, {Interface: "idle"}}, nil
	}
	n := NewNAT(w.source(), packets, every, h, quiet())
	n.now = func() time.Time { return w.now }
	return n, h
}

type handlers map[string]http.HandlerFunc

func (h handlers) RegisterHTTPHandler(path string, handler http.HandlerFunc, _ ...string) {
	h[path] = handler
}

func TestSessionsAreCountedByPodAndNotTooOften(t *testing.T) {
	w := &natWorld{total: 10, now: time.Unix(1e9, 0), sessions: map[netip.Addr]int{
		netip.MustParseAddr("10.1.1.2"): 1, netip.MustParseAddr("fd00::2"): 2, netip.MustParseAddr("10.1.1.3"): 3,
		netip.MustParseAddr("10.1.2.2"): 4, netip.MustParseAddr("10.1.2.3"): 5,
	}}
	n, h := w.nat(30 * time.Second)
	reg := prometheus.NewRegistry()
	reg.MustRegister(n)
	want := func(counted int, lines ...string) {
		t.Helper()
		if got := gathered(t, reg, "contiv_nat_sessions"); !slices.Equal(got, lines) || w.counted != counted {
			t.Errorf("got %q after counting %d times, want %q after %d", got, w.counted, lines, counted)
		}
	}
	first := []string{`namespace="" pod="" 9`, `namespace="x" pod="a" 3`, `namespace="x" pod="b" 3`}
	want(1, first...)
	w.now = w.now.Add(29 * time.Second)
	want(1, first...)
	rec := httptest.NewRecorder()
	h[NATPath](rec, httptest.NewRequest(http.MethodGet, NATPath, nil))
	var report NATReport
	if err := json.Unmarshal(rec.Body.Bytes(), &report); err != nil || len(report.Sessions) != 3 || w.counted != 1 ||
		!slices.Equal(report.Packets, []NATPackets{{"x", "a", "t", 7, 0, 0}}) {
		t.Errorf("%+v, %v", report, err)
	}
	w.now, w.err = w.now.Add(2*time.Second), errors.New("VPP is away")
	want(2) // no value rather than an old one
	w.now, w.err, w.total = w.now.Add(31*time.Second), nil, maxSessions+1
	want(2)
	if r := n.sample(t.Context()); !strings.Contains(r.Error, "200001 NAT sessions") {
		t.Errorf("too many: %+v", r)
	}
	w.now, w.total = w.now.Add(31*time.Second), 1
	want(3, first...)
	w.now, w.sessions = w.now.Add(31*time.Second), nil
	want(4, `namespace="" pod="" 0`)
}

func TestSessionsOfManyPodsAreBounded(t *testing.T) {
	w := &natWorld{total: 10, now: time.Unix(1e9, 0), sessions: map[netip.Addr]int{}}
	n, _ := w.nat(0)
	pods := map[netip.Addr]PodName{}
	n.source.Pods = func() map[netip.Addr]PodName { return pods }
	for i := range 1000 {
		addr := netip.MustParseAddr(fmt.Sprintf("10.1.%d.%d", i/250, i%250))
		w.sessions[addr], pods[addr] = 1, PodName{"x", fmt.Sprint(i)}
	}
	r := n.sample(t.Context())
	if last := r.Sessions[len(r.Sessions)-1]; len(r.Sessions) != DefaultMaxPods+1 || last.Pod != otherPods ||
		last.Sessions != 1000-DefaultMaxPods {
		t.Errorf("%d series, the last %+v", len(r.Sessions), last)
	}
}
