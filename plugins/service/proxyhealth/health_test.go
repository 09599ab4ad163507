package proxyhealth

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var errAway = errors.New("away")

// TestHealth checks that, as with kube-proxy, a node is healthy while it starts and while changes wait for less than a minute.
func TestHealth(t *testing.T) {
	start := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	h := &health{timeout: DefaultTimeout, families: []string{"IPv4", "IPv6"}}
	expect := func(when time.Time, healthz, livez bool, updated time.Time) {
		t.Helper()
		z, ok := h.answer(when, true)
		if ok != healthz || z.NodeEligible == nil || *z.NodeEligible == h.leaving {
			t.Errorf("at %s: healthz %t, want %t: %+v", when, ok, healthz, z)
		}
		l, ok := h.answer(when, false)
		if ok != livez || l.NodeEligible != nil || l.Healthy != livez || !l.LastUpdated.Equal(updated) || !l.CurrentTime.Equal(when) {
			t.Errorf("at %s: livez %t, want %t: %+v", when, ok, livez, l)
		}
		if len(l.Status) > 0 && (l.Status["IPv4"].Healthy != livez || l.Status["IPv6"] != l.Status["IPv4"]) {
			t.Errorf("at %s: %+v", when, l.Status)
		}
	}
	expect(at(0), true, true, at(0))
	h.note(at(0), nil, errAway) // the agent starts
	if a, _ := h.answer(at(1), true); a.Status != nil {
		t.Errorf("a status of what has not been programmed: %+v", a)
	}
	expect(at(59), true, true, at(59))
	expect(at(60), false, false, time.Time{})
	h.note(at(70), nil, nil)
	expect(at(71), true, true, at(71))
	h.note(at(80), nil, errAway)
	h.note(at(120), nil, errAway) // the start of the waiting does not change
	expect(at(139), true, true, at(139))
	expect(at(140), false, false, at(70))
	h.note(at(141), nil, nil)
	expect(at(141), true, true, at(141))
	h.setLeaving(true)
	expect(at(142), false, true, at(142))
	h.setLeaving(false)
	expect(at(143), true, true, at(143))
	h.note(at(150), errAway, nil) // nothing is served
	expect(at(150), false, false, at(141))
	h.note(at(151), nil, nil)
	expect(at(151), true, true, at(151))
}

// TestBody checks that names and order are those of kube-proxy.
func TestBody(t *testing.T) {
	h := &health{timeout: DefaultTimeout, families: []string{"IPv4"}}
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	h.note(now, nil, nil)
	a, _ := h.answer(now, true)
	text, err := json.Marshal(a)
	want := `{"lastUpdated":"2026-11-22T08:00:00Z","currentTime":"2026-11-22T08:00:00Z","nodeEligible":true,"healthy":true,` +
		`"status":{"IPv4":{"lastUpdated":"2026-11-22T08:00:00Z","healthy":true}}}`
	if err != nil || string(text) != want {
		t.Errorf("%s, want %s (%v)", text, want, err)
	}
}

func TestAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"": true, DefaultAddress: true, "0.0.0.0:10256": true, "[::]:1": true, "127.0.0.1:65535": true,
		"10256": false, "127.0.0.1": false, ":0": false, ":65536": false, ":http": false, "node:10256": false,
	} {
		_, err := New(Config{Address: address, Metrics: prometheus.NewRegistry(), Flag: "--healthz-bind-address"})
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "--healthz-bind-address") {
			t.Errorf("%q: %v, want ok %t", address, err, ok)
		}
	}
}
