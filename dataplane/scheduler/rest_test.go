package scheduler

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"contiv.dev/vswitch/dataplane/txn"
)

// mux collects the handlers.
type mux map[string]http.HandlerFunc

func (m mux) RegisterHTTPHandler(path string, handler http.HandlerFunc, methods ...string) {
	method := http.MethodGet
	if len(methods) > 0 {
		method = methods[0]
	}
	m[method+" "+path] = handler
}

func (m mux) call(t testing.TB, method, url, body string) (int, string) {
	path, _, _ := strings.Cut(url, "?")
	h := m[method+" "+path]
	if h == nil {
		t.Fatalf("no handler for %s %s", method, path)
	}
	w := httptest.NewRecorder()
	h(w, httptest.NewRequest(method, url, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func restRig(t testing.TB) (*rig, mux) {
	r := newRig(t, newMock(t), func(c *Config) {
		c.Decode = func(key string, data []byte) (proto.Message, error) {
			v := &obj{}
			d := json.NewDecoder(strings.NewReader(string(data)))
			d.DisallowUnknownFields()
			if err := d.Decode(v); err != nil {
				return nil, err
			}
			v.Empty = nil
			return v, nil
		}
	})
	h := mux{}
	r.RegisterREST(h)
	return r, h
}

func TestREST(t *testing.T) {
	r, h := restRig(t)
	empty := &emptypb.Empty{}
	r.must(update(kv("p/1", &obj{Empty: empty, Items: []item{{Name: "x"}}}), kv("c/1", &obj{Empty: empty, Deps: []string{"b/1"}})))
	r.m.fault = func(action, key string) *fault { return &fault{err: errors.New("refused")} }
	if _, err := r.commit(update(kv("a/1", &obj{Empty: empty}))); err == nil {
		t.Fatal("no error")
	}
	r.m.fault = nil
	for _, c := range []struct {
		url, body string
		code      int
		has, not  string
	}{
		{"GET /scheduler/dump", "", 200, `"key": "item:p/1:x"`, ""},
		{"GET /scheduler/dump?kind=p", "", 200, `"applied": {}`, "c/1"},
		{"GET /scheduler/dump?key-prefix=c/&view=desired", "", 200, `"state": "PENDING"`, "applied"},
		{"GET /scheduler/dump?key-prefix=c/&view=applied", "", 200, `[]`, "c/1"},
		{"GET /scheduler/dump?view=x", "", 400, `"parameter": "view"`, ""},
		{"GET /scheduler/dump?kind=x", "", 400, `"parameter": "kind"`, ""},
		{"GET /scheduler/dump?descriptor=x", "", 400, `"parameter": "descriptor"`, ""},
		{"GET /scheduler/dump?a=%zz", "", 400, `"parameter": "query"`, ""},
		{"GET /scheduler/txn-history", "", 200, "create   p/1", `{`},
		{"GET /scheduler/txn-history?seq-num=2", "", 200, "failed  a/1: refused", "p/1"},
		{"GET /scheduler/txn-history?format=json&since=0", "", 200, `"a/1: refused"`, ""},
		{"GET /scheduler/txn-history?format=json&until=1", "", 200, `[]`, ""},
		{"GET /scheduler/txn-history?format=xml", "", 400, `"parameter": "format"`, ""},
		{"GET /scheduler/txn-history?seq-num=-1", "", 400, `"parameter": "seq-num"`, ""},
		{"GET /scheduler/txn-history?since=now", "", 400, `"parameter": "since"`, ""},
		{"GET /scheduler/txn-history?until=2020-13-01T00:00:00Z", "", 400, `"parameter": "until"`, ""},
		{"GET /scheduler/status", "", 200, `"PENDING": 1`, ""},
		{"GET /scheduler/status?state=failed,pending", "", 200, `"Error": "refused"`, `"item:`},
		{"GET /scheduler/status?key=c/1", "", 200, `"b/1"`, `"a/1"`},
		{"GET /scheduler/status?state=bad", "", 400, `"parameter": "state"`, ""},
		{"GET /scheduler/graph", "", 200, `"c/1" -> "b/1";`, ""},
		{"GET /scheduler/graph?kind=item", "", 200, `"item:p/1:x" -> "p/1" [style=dashed];`, "c/1"},
		{"GET /scheduler/graph?x=1", "", 400, `"parameter": "x"`, ""},
		{"POST /scheduler/downstream-resync?x=1", "", 400, `"parameter": "x"`, ""},
		{"POST /scheduler/downstream-resync", "", 200, `"create"`, ""},
		{"POST /scheduler/plan", `{"values":[{"key":"b/1","value":{}},{"key":"p/1","value":null}]}`, 200, `"Key": "c/1"`, ""},
		{"POST /scheduler/plan", `{"values":[]}`, 200, `[]`, ""},
		{"POST /scheduler/plan", `{"values":[{"key":"b/1","value":{"X":1}}]}`, 400, `"parameter": "values[0].value"`, ""},
		{"POST /scheduler/plan", `{"values":[{"key":"b/1"}]}`, 400, `"parameter": "values[0].value"`, ""},
		{"POST /scheduler/plan", `{"values":[{"value":null}]}`, 400, `"parameter": "values[0].key"`, ""},
		{"POST /scheduler/plan", `{"value":1}`, 400, `"parameter": "body"`, ""},
		{"POST /scheduler/plan", `{} {}`, 400, `"parameter": "body"`, ""},
		{"POST /scheduler/plan", `{"values":[{"key":"b/1","value":{"Bad":true}}]}`, 500, `b/1: bad`, ""},
	} {
		method, url, _ := strings.Cut(c.url, " ")
		code, body := h.call(t, method, url, c.body)
		if code != c.code || !strings.Contains(body, c.has) || c.not != "" && strings.Contains(body, c.not) {
			t.Errorf("%s %s: %d\n%s", c.url, c.body, code, body)
		}
		if strings.HasPrefix(strings.TrimSpace(body), "{") && !json.Valid([]byte(body)) {
			t.Errorf("%s: not JSON:\n%s", c.url, body)
		}
	}
	r.Close()
	if code, _ := h.call(t, "POST", "/scheduler/downstream-resync", ""); code != http.StatusServiceUnavailable {
		t.Errorf("after close: %d", code)
	}
	r.cfg.Decode = nil
	if code, _ := h.call(t, "POST", "/scheduler/plan", "{}"); code != http.StatusNotImplemented {
		t.Errorf("without a decoder: %d", code)
	}
}

func TestValueJSON(t *testing.T) {
	s, err := structpb.NewStruct(map[string]any{"a": 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		v    any
		want string
	}{
		{s, `{"a":1}`},
		{struct{ X int }{1}, `{"X":1}`},
		{func() {}, `"`},
		{struct{ C chan int }{nil}, `"{C:\u003cnil\u003e}"`},
	} {
		got := string(valueJSON(c.v))
		var a, b any
		if json.Unmarshal([]byte(got), &a) != nil {
			t.Errorf("not JSON: %s", got)
		}
		if json.Unmarshal([]byte(c.want), &b) == nil && !strings.EqualFold(toJSON(a), toJSON(b)) {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func toJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func FuzzRESTPlan(f *testing.F) {
	r, h := restRig(f)
	r.must(update(kv("p/1", &obj{Empty: &emptypb.Empty{}, Items: []item{{Name: "x"}}})))
	before := r.snapshot()
	f.Add(`{"values":[{"key":"b/1","value":{}},{"key":"p/1","value":null}]}`)
	f.Add(`{"values":[{"key":"p/1","value":{"Items":[{"Name":"y","Deps":["p/1"]}]}},{"key":"item:p/1:x","value":{}}]}`)
	f.Add(`{"values":[{"key":"a/1","value":{"Deps":["a/2"]}},{"key":"a/2","value":{"Deps":["a/1"]}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		code, text := h.call(t, "POST", "/scheduler/plan", body)
		if !json.Valid([]byte(text)) || code != 200 && code != 400 && code != 500 {
			t.Errorf("%d %s", code, text)
		}
		if d := diff(r.snapshot(), before); d != "" {
			t.Errorf("a dry run changed the graph:\n%s", d)
		}
		if err := r.graph.check(); err != nil {
			t.Error(err)
		}
	})
}

func FuzzRESTQuery(f *testing.F) {
	_, h := restRig(f)
	f.Add("kind=p&key-prefix=a&view=both")
	f.Add("seq-num=1&since=2020-01-01T00:00:00Z&until=9&format=json")
	f.Add("state=pending,failed&key=x")
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/scheduler/dump", "/scheduler/txn-history", "/scheduler/status", "/scheduler/graph"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			h["GET "+path](w, r)
			if w.Code != 200 && w.Code != 400 {
				t.Errorf("%s?%s: %d %s", path, query, w.Code, w.Body.String())
			}
		}
	})
}

// TestPages tests that the pages of a dump and of the history together contain each entry exactly once.
func TestPages(t *testing.T) {
	values := make([]Value, 0, 10)
	for _, key := range []string{"a", "a/b", "b", "c", "d", "e", "f"} {
		values = append(values, Value{Key: key})
	}
	for limit := 1; limit <= 8; limit++ {
		var got []string
		for after := ""; ; {
			part := page{after: after, limit: limit}.cut(values)
			if len(part) > limit {
				t.Fatalf("limit %d: %d values", limit, len(part))
			}
			for _, v := range part {
				got = append(got, v.Key)
			}
			if len(part) < limit {
				break
			}
			after = part[len(part)-1].Key
		}
		if text := strings.Join(got, " "); text != "a a/b b c d e f" {
			t.Errorf("limit %d: %s", limit, text)
		}
	}
	if got := (page{after: "bb"}).cut(values); len(got) != 4 || got[0].Key != "c" {
		t.Errorf("after a key that is gone: %v", got)
	}
	h := newHistory(HistoryLimits{})
	for range 5 {
		h.add(&txn.Record{Start: time.Now()})
	}
	first, last := h.list(HistoryFilter{First: 2}), h.list(HistoryFilter{Last: 2})
	if len(first) != 2 || first[0].SeqNum != 1 || len(last) != 2 || last[1].SeqNum != 5 || len(h.list(HistoryFilter{Last: 9})) != 5 {
		t.Errorf("first %v, last %v", first, last)
	}
	for _, text := range []string{"0", "-1", "x", "99999999999"} {
		if _, err := count(map[string]string{"limit": text}, "limit"); err == nil {
			t.Errorf("limit %q was taken", text)
		}
	}
}
