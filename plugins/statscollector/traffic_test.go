package statscollector

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTraffic checks the counters by pod and interface, the reason if there are none, and an error if they cannot be read.
func TestTraffic(t *testing.T) {
	get := func(read Source, missing string) (int, string, TrafficReport) {
		h := handlers{}
		ServeTraffic(read, missing, 2, h, quiet())
		rec := httptest.NewRecorder()
		h[TrafficPath](rec, httptest.NewRequest(http.MethodGet, TrafficPath, nil))
		var rep TrafficReport
		if err := json.Unmarshal(rec.Body.Bytes(), &rep); err != nil {
			t.Fatal(err)
		}
		return rec.Code, rec.Body.String(), rep
	}
	_, text, rep := get(func() ([]Counters, error) {
		return []Counters{{Namespace: "x", Pod: "a", Interface: "tap1", RxPackets: 1, TxBytes: 9}, {Interface: "eth1", Drops: 3},
			{Namespace: "x", Pod: "b", RxPackets: 2}, {Namespace: "x", Pod: "c", RxPackets: 4}}, nil
	}, "")
	if len(rep.Interfaces) != 4 || rep.Sampled.IsZero() {
		t.Errorf("two pods, the others added up, and eth1: %s", text)
	}
	for _, i := range rep.Interfaces {
		if i.Pod == "a" && (i.RxPackets != 1 || i.TxBytes != 9 || i.Interface != "") || i.Interface == "eth1" && i.Drops != 3 {
			t.Errorf("%+v", i)
		}
	}
	if _, text, rep := get(nil, "no packet moves"); rep.Missing != "no packet moves" || len(rep.Interfaces) != 0 {
		t.Error(text)
	}
	if code, text, _ := get(func() ([]Counters, error) { return nil, errors.New("VPP is away") }, ""); code != http.StatusBadGateway ||
		!strings.Contains(text, "VPP is away") {
		t.Error(code, text)
	}
}
