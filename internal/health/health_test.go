package health

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func both(yes bool) HealthReport { return HealthReport{Live: yes, Ready: yes} }

func expect(t *testing.T, a *HealthAggregator, live, ready bool) {
	t.Helper()
	if got := a.Summary(); got.Live != live || got.Ready != ready {
		t.Errorf("live %v, ready %v; want %v, %v\n%s", got.Live, got.Ready, live, ready, got.Detail)
	}
}

func TestConjunction(t *testing.T) {
	a := NewHealthAggregator()
	expect(t, a, true, true)
	x := a.Register("x", both(true), time.Minute)
	expect(t, a, false, false) // registered, without a report
	y := a.Register("y", HealthReport{Ready: true}, time.Minute)
	x.Report(both(true))
	expect(t, a, true, false)
	y.Report(HealthReport{Ready: true})
	expect(t, a, true, true) // y did not declare liveness
	x.Report(HealthReport{Live: true, Detail: "still syncing"})
	expect(t, a, true, false)
	if d := a.Summary().Detail; d != "x: live, not ready (still syncing)\ny: ready" {
		t.Errorf("detail %q", d)
	}
	x.Close()
	expect(t, a, true, true)
}

func TestSilenceIsUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewHealthAggregator()
		x := a.Register("x", both(true), 20*time.Second)
		forever := a.Register("forever", both(true), 0)
		x.Report(both(true))
		forever.Report(both(true))
		time.Sleep(20 * time.Second)
		expect(t, a, true, true)
		time.Sleep(time.Millisecond)
		expect(t, a, false, false)
		if d := a.Summary().Detail; !strings.Contains(d, "x: not live, not ready (hangs: no report for 20s") {
			t.Errorf("detail %q", d)
		}
		x.Report(both(true))
		expect(t, a, true, true)
	})
}

func TestReplacedReporterIsIgnored(t *testing.T) {
	a := NewHealthAggregator()
	old := a.Register("x", both(true), 0)
	young := a.Register("x", both(true), 0)
	young.Report(both(true))
	old.Report(both(false))
	old.Close()
	expect(t, a, true, true)
	young.Report(both(false))
	expect(t, a, false, false)
}

func TestNilAggregator(t *testing.T) {
	var a *HealthAggregator
	r := a.Register("x", both(true), time.Second)
	r.Report(both(false))
	r.Close()
	expect(t, a, true, true)
}

func TestHandler(t *testing.T) {
	a := NewHealthAggregator()
	x := a.Register("x", both(true), time.Minute)
	x.Report(HealthReport{Live: true, Detail: "waiting for the datastore"})
	for _, tt := range []struct {
		method, path string
		code         int
		body         string
	}{
		{"GET", "/liveness", http.StatusOK, "waiting for the datastore"},
		{"GET", "/readiness", http.StatusServiceUnavailable, "waiting for the datastore"},
		{"HEAD", "/readiness", http.StatusServiceUnavailable, ""},
		{"POST", "/liveness", http.StatusMethodNotAllowed, ""},
		{"GET", "/", http.StatusNotFound, ""},
	} {
		rec := httptest.NewRecorder()
		a.Handler().ServeHTTP(rec, httptest.NewRequest(tt.method, tt.path, nil))
		if rec.Code != tt.code || !strings.Contains(rec.Body.String(), tt.body) {
			t.Errorf("%s %s: %d %q, want %d", tt.method, tt.path, rec.Code, rec.Body, tt.code)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	a := NewHealthAggregator()
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			for range 200 {
				r := a.Register(name, both(true), time.Minute)
				r.Report(both(true))
				a.Summary()
				r.Close()
			}
		})
	}
	wg.Wait()
	expect(t, a, true, true)
}
