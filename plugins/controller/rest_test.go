package controller

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/plugins/controller/api"
)

// mux is the smallest server that can register handlers.
type mux map[string]http.HandlerFunc

func (m mux) RegisterHTTPHandler(path string, handler http.HandlerFunc, methods ...string) {
	for _, method := range methods {
		m[method+" "+path] = handler
	}
}

func (m mux) call(method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	path, _, _ := strings.Cut(target, "?")
	m[method+" "+path](w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w
}

func TestRESTHistory(t *testing.T) {
	s := newSim(t, func(c *Config) { c.EnableVerification = false }, "alpha")
	m := mux{}
	s.c.registerREST(m)
	s.push(dbResync(map[string]string{"a": "1"}))
	start := s.clock.Unix()
	for i := range 9 {
		s.advance(time.Second)
		s.push(kubeChange("a", fmt.Sprint(i)))
	}
	for query, want := range map[string]string{
		"":                     "[1 2 3 4 5 6 7 8 9 10]",
		"first=2":              "[1 2]",
		"last=2":               "[9 10]",
		"last=200":             "[1 2 3 4 5 6 7 8 9 10]",
		"from=8":               "[8 9 10]",
		"to=2":                 "[1 2]",
		"from=3&to=4":          "[3 4]",
		"from=3&to=7&last=2":   "[6 7]",
		"from=11":              "[]",
		"format=json&from=10":  "[10]",
		"since=" + unix(start): "[1 2 3 4 5 6 7 8 9 10]",
		"since=" + unix(start+7) + "&until=" + unix(start+8):                         "[8 9]",
		"until=" + url.QueryEscape(time.Unix(start+1, 0).UTC().Format(time.RFC3339)): "[1 2]",
	} {
		w := m.call("GET", historyPath+"?"+query, "")
		var records []EventRecord
		if err := json.Unmarshal(w.Body.Bytes(), &records); err != nil || w.Code != 200 {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
			continue
		}
		got := []uint64{}
		for _, r := range records {
			got = append(got, r.SeqNum)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	w := m.call("GET", historyPath+"?seq-num=1", "")
	var r EventRecord
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || r.SeqNum != 1 || r.Method != "Full Resync" ||
		r.Txn == nil || r.Handlers[0].Handler != "alpha" {
		t.Errorf("seq-num=1: %v\n%s", err, w.Body)
	}
	w = m.call("GET", historyPath+"?format=text&last=1", "")
	if !strings.HasPrefix(w.Body.String(), "#10 2026-01-02T03:04:14.000Z +0s [Update] ") {
		t.Errorf("text: %s", w.Body)
	}
}

func unix(n int64) string { return fmt.Sprint(n) }

func TestRESTBadParameters(t *testing.T) {
	s := newSim(t, nil, "alpha")
	m := mux{}
	s.c.registerREST(m)
	s.push(dbResync(nil))
	for target, wants := range map[string][]string{
		"GET " + historyPath + "?seq-num=x":               {"seq-num", `"x"`, "whole number"},
		"GET " + historyPath + "?seq-num=0":               {"seq-num", "at least 1"},
		"GET " + historyPath + "?seq-num=1&from=1":        {"from", "seq-num"},
		"GET " + historyPath + "?from=-1":                 {"from", "-1"},
		"GET " + historyPath + "?from=5&to=4":             {`"to"`, `"4"`, "5"},
		"GET " + historyPath + "?first=1&last=1":          {"first", "last"},
		"GET " + historyPath + "?first=0":                 {"first", "at least 1"},
		"GET " + historyPath + "?last=1&last=2":           {"last", "once"},
		"GET " + historyPath + "?since=yesterday":         {"since", "yesterday", "RFC 3339"},
		"GET " + historyPath + "?since=10&until=9":        {"until", "9", "since"},
		"GET " + historyPath + "?format=xml":              {"format", "xml", "json, text"},
		"GET " + historyPath + "?color=red":               {"color", "seq-num, since"},
		"GET " + historyPath + "?a=%zz":                   {"query"},
		"POST " + resyncPath + "?method=hard":             {"method", "hard", "full, upstream, downstream"},
		"POST " + resyncPath + "?methods=full":            {"methods", "method, format"},
		"POST " + resyncPath + " {":                       {"body", "JSON"},
		"POST " + resyncPath + " {\"method\":\"x\"}":      {"method", `"x"`},
		"POST " + resyncPath + "?method=full method=full": {"method", "once"},
	} {
		parts := strings.SplitN(target, " ", 3)
		w := m.call(parts[0], parts[1], strings.Join(parts[2:], ""))
		var reply struct{ Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
		for _, want := range wants {
			if !strings.Contains(reply.Error, want) {
				t.Errorf("%s: %q lacks %q", target, reply.Error, want)
			}
		}
	}
	if w := m.call("GET", historyPath+"?seq-num=999", ""); w.Code != http.StatusNotFound {
		t.Errorf("absent event: %d %s", w.Code, w.Body)
	}
	if w := m.call("POST", resyncPath, strings.Repeat("x", maxBody+1)); w.Code != http.StatusBadRequest {
		t.Errorf("long body: %d", w.Code)
	}
	s.c.cfg.RecordEventHistory = false
	if w := m.call("GET", historyPath, ""); w.Code != http.StatusNotFound {
		t.Errorf("history off: %d", w.Code)
	}
}

func TestRESTResyncWaitsForTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mux{}
		r := newRig(t, func(_ *Config, d *Deps) { d.HTTP = m })
		h := &hook{name: "h"}
		h.resync = func(api.Event, api.KubeStateData, int, api.ResyncOperations) error {
			<-time.After(time.Second) // virtual
			return nil
		}
		r.start(t, h)
		push(t, r.c, dbResync(nil))
		for _, test := range []struct{ target, body, method string }{
			{"", "", "Full Resync"},
			{"?method=upstream", "", "Upstream Resync"},
			{"", `{"method": "downstream"}`, "Downstream Resync"},
			{"", "method=upstream", "Upstream Resync"},
		} {
			w := m.call("POST", resyncPath+test.target, test.body)
			var record EventRecord
			if err := json.Unmarshal(w.Body.Bytes(), &record); err != nil || w.Code != 200 || record.Method != test.method {
				t.Errorf("%+v: %d %s", test, w.Code, w.Body)
			}
		}
		if w := m.call("POST", resyncPath+"?format=text", ""); !strings.HasPrefix(w.Body.String(), "#6 ") {
			t.Errorf("text: %s", w.Body)
		}
		r.applier.fault = func(*txn.Txn) fault { return fault{refuse: txn.ErrClosed} }
		w := m.call("POST", resyncPath, "")
		var reply struct {
			Error  string
			Record *EventRecord
		}
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || w.Code != 500 || reply.Record == nil ||
			!strings.Contains(reply.Error, txn.ErrClosed.Error()) {
			t.Errorf("failed resync: %d %s", w.Code, w.Body)
		}
		if _, err := r.c.Resync(t.Context(), api.Update); err == nil {
			t.Error("an update is not a resync")
		}
		r.close(t)
		if w := m.call("POST", resyncPath, ""); w.Code != http.StatusServiceUnavailable {
			t.Errorf("closed: %d %s", w.Code, w.Body)
		}
	})
}

func FuzzHistoryQuery(f *testing.F) {
	for _, seed := range []string{"", "seq-num=1", "since=1&until=2", "from=1&to=2&last=3", "first=1", "format=text",
		"since=2026-01-31T12:00:00Z", "seq-num=18446744073709551615", "to=-1", "a=%zz"} {
		f.Add(seed)
	}
	var records []*EventRecord
	for i := range uint64(20) {
		records = append(records, &EventRecord{SeqNum: i + 1, ProcessingStart: time.Unix(int64(i), 0)})
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		q, err := parseHistoryQuery(values)
		if err != nil {
			return
		}
		got := q.filter(records)
		for i, r := range got {
			if r.SeqNum < q.from || r.SeqNum > q.to || (i > 0 && got[i-1].SeqNum >= r.SeqNum) {
				t.Errorf("%s selects #%d", query, r.SeqNum)
			}
		}
		if limit := max(q.first, q.last); limit != 0 && uint64(len(got)) > limit {
			t.Errorf("%s selects %d records", query, len(got))
		}
	})
}

func FuzzResyncRequest(f *testing.F) {
	f.Add("method=full", "", "")
	f.Add("", "application/json", `{"method": "upstream"}`)
	f.Add("", "application/x-www-form-urlencoded", "method=downstream&format=text")
	f.Fuzz(func(t *testing.T, query, contentType, body string) {
		method, _, err := parseResyncRequest(query, contentType, []byte(body))
		if err == nil && !method.IsResync() {
			t.Errorf("%q %q gives %s", query, body, method)
		}
	})
}
