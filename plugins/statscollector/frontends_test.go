package statscollector

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestFrontends checks the connections by service, which are counted at most once in 5 s, and the reason if they are not counted.
func TestFrontends(t *testing.T) {
	w := &natWorld{total: 10, now: time.Unix(1e9, 0)}
	n, h := w.nat(0)
	counted := 0
	dns, web := Frontend{netip.MustParseAddrPort("10.96.0.10:53"), 17}, Frontend{netip.MustParseAddrPort("[fd10::1]:80"), 6}
	n.source.ByFrontend = func(context.Context) (map[Frontend]Flows, bool, error) {
		counted++
		return map[Frontend]Flows{dns: {Connections: 3}, web: {Connections: 7, Packets: 70, Bytes: 7000}}, true, w.err
	}
	get := func() (rep FrontendsReport) {
		rec := httptest.NewRecorder()
		h[FrontendsPath](rec, httptest.NewRequest(http.MethodGet, FrontendsPath, nil))
		if err := json.Unmarshal(rec.Body.Bytes(), &rep); err != nil {
			t.Fatal(err)
		}
		return rep
	}
	rep := get()
	if len(rep.Frontends) != 2 || !rep.CountsPackets || rep.Frontends[0] != (FrontendTraffic{web.Addr(), 80, "TCP", 7, 70, 7000}) ||
		rep.Frontends[1].Protocol != "UDP" {
		t.Errorf("%+v", rep)
	}
	if get(); counted != 1 {
		t.Errorf("counted %d times at once", counted)
	}
	w.now, w.err = w.now.Add(6*time.Second), errors.New("VPP is away")
	if rep := get(); rep.Missing != "VPP is away" || len(rep.Frontends) != 0 {
		t.Errorf("%+v", rep)
	}
	w.now, w.err, w.total = w.now.Add(6*time.Second), nil, maxSessions+1
	if rep := get(); !strings.Contains(rep.Missing, "200001 connections") || counted != 2 {
		t.Errorf("%+v", rep)
	}
	w.now, n.source.ByFrontend = w.now.Add(6*time.Second), nil
	if rep := get(); rep.Missing == "" {
		t.Error("a dataplane that does not count gives no reason")
	}
}
