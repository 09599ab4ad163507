package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/rest"
)

// maxBody bounds the body of the dry run's request.
const maxBody = 16 << 20

// RegisterREST publishes the scheduler's REST handlers.
func (s *Scheduler) RegisterREST(h rest.HTTPHandlers) {
	h.RegisterHTTPHandler("/scheduler/dump", s.restDump)
	h.RegisterHTTPHandler("/scheduler/txn-history", s.restHistory)
	h.RegisterHTTPHandler("/scheduler/status", s.restStatus)
	h.RegisterHTTPHandler("/scheduler/graph", s.restGraph)
	h.RegisterHTTPHandler("/scheduler/downstream-resync", s.restResync, http.MethodPost)
	h.RegisterHTTPHandler("/scheduler/plan", s.restPlan, http.MethodPost)
}

// restError is the reply to a request that failed.
type restError struct {
	Error     string   `json:"error"`
	Parameter string   `json:"parameter,omitempty"`
	Failed    []string `json:"failed,omitempty"`
}

// paramError is an error in one parameter, or at one place in the body.
type paramError struct {
	param string
	err   error
}

func (e *paramError) Error() string { return e.param + ": " + e.err.Error() }
func (e *paramError) Unwrap() error { return e.err }

func (s *Scheduler) answerError(w http.ResponseWriter, err error) {
	code, body := http.StatusInternalServerError, restError{Error: err.Error()}
	var pe *paramError
	var te *txn.Error
	switch {
	case errors.As(err, &pe):
		code, body.Parameter = http.StatusBadRequest, pe.param
	case errors.As(err, &te):
		for _, f := range te.Failed {
			body.Failed = append(body.Failed, f.Error())
		}
	case errors.Is(err, txn.ErrClosed):
		code = http.StatusServiceUnavailable
	}
	rest.WriteJSON(w, code, body)
}

// write sends the body. It returns false if the client has disconnected, in which case no reply can be sent.
func (s *Scheduler) write(w http.ResponseWriter, text []byte) bool {
	_, err := w.Write(text)
	if err != nil {
		s.log.Debug("REST client went away", "error", err)
	}
	return err == nil
}

// params reads the query; all its names must be in known.
func params(r *http.Request, known ...string) (map[string]string, error) {
	if err := r.ParseForm(); err != nil {
		return nil, &paramError{param: "query", err: err}
	}
	out := map[string]string{}
next:
	for name, values := range r.Form {
		for _, k := range known {
			if name == k {
				out[name] = values[0]
				continue next
			}
		}
		return nil, &paramError{param: name, err: fmt.Errorf("unknown parameter, known are %s", strings.Join(known, ", "))}
	}
	return out, nil
}

// filter reads the parameters that select values.
func (s *Scheduler) filter(p map[string]string) (Filter, error) {
	f := Filter{Kind: p["kind"], Key: p["key"], KeyPrefix: p["key-prefix"]}
	if f.Kind != "" && s.reg.byName[f.Kind] == nil {
		return f, &paramError{param: "kind", err: fmt.Errorf("no such kind: %q; the kinds are %s", f.Kind,
			strings.Join(slices.Sorted(maps.Keys(s.reg.byName)), ", "))}
	}
	if text := p["state"]; text != "" {
		for _, one := range strings.Split(text, ",") {
			var st State
			if err := st.UnmarshalText([]byte(strings.ToUpper(one))); err != nil {
				return f, &paramError{param: "state", err: err}
			}
			f.States = append(f.States, st)
		}
	}
	return f, nil
}

// restValue is one value of a dump.
type restValue struct {
	Key     string          `json:"key"`
	Kind    string          `json:"kind"`
	Parent  string          `json:"parent,omitempty"`
	State   State           `json:"state"`
	Desired json.RawMessage `json:"desired,omitempty"`
	Applied json.RawMessage `json:"applied,omitempty"`
}

// restDump serves GET /scheduler/dump?kind=&key-prefix=&state=&view=desired|applied|both&after=&limit=
func (s *Scheduler) restDump(w http.ResponseWriter, r *http.Request) {
	p, err := params(r, "kind", "key", "key-prefix", "state", "view", "after", "limit")
	if err != nil {
		s.answerError(w, err)
		return
	}
	f, err := s.filter(p)
	var pg page
	if err == nil {
		pg, err = pageOf(p)
	}
	if err != nil {
		s.answerError(w, err)
		return
	}
	view := p["view"]
	switch view {
	case "":
		view = "both"
	case "desired", "applied", "both":
	default:
		s.answerError(w, &paramError{param: "view", err: fmt.Errorf("%q is not one of desired, applied, both", view)})
		return
	}
	s.stream(w, pg.cut(s.Dump(f)), view)
}

// stream sends the values one by one.
func (s *Scheduler) stream(w http.ResponseWriter, values []Value, view string) {
	err := rest.WriteArray(w, func(yield func(restValue) bool) {
		for _, v := range values {
			rv := restValue{Key: v.Key, Kind: v.Kind, Parent: v.Parent, State: v.State}
			if view != "applied" {
				rv.Desired = valueJSON(v.Desired)
			}
			if view != "desired" {
				rv.Applied = valueJSON(v.Applied)
			}
			if (rv.Desired != nil || rv.Applied != nil) && !yield(rv) {
				return
			}
		}
	})
	if err != nil {
		s.log.Debug("the reply to a REST client was not sent completely", "error", err)
	}
}

// valueJSON returns a value in the JSON form that it has in etcd; values without a JSON form are printed in Go syntax.
func valueJSON(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	var text []byte
	var err error
	if m, ok := v.(proto.Message); ok {
		text, err = protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	} else {
		text, err = json.Marshal(v)
	}
	if err != nil {
		text = []byte(strconv.QuoteToASCII(fmt.Sprintf("%+v", v)))
		if !json.Valid(text) {
			text = []byte(`"?"`)
		}
	}
	return text
}

// restHistory serves GET /scheduler/txn-history?seq-num=&since=&until=&first=&last=&format=text|json
func (s *Scheduler) restHistory(w http.ResponseWriter, r *http.Request) {
	p, err := params(r, "seq-num", "since", "until", "first", "last", "format")
	var f HistoryFilter
	if err == nil {
		f, err = historyFilter(p)
	}
	if err != nil {
		s.answerError(w, err)
		return
	}
	records := s.History(f)
	switch p["format"] {
	case "", "text":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		for _, rec := range records {
			var b strings.Builder
			writeRecord(&b, rec)
			if !s.write(w, []byte(b.String())) {
				return
			}
		}
	case "json":
		if err := rest.WriteArray(w, slices.Values(records)); err != nil {
			s.log.Debug("the reply to a REST client was not sent completely", "error", err)
		}
	default:
		s.answerError(w, &paramError{param: "format", err: fmt.Errorf("%q is not one of text, json", p["format"])})
	}
}

// writeRecord prints a record: the executed operations, and the planned ones if they differ.
func writeRecord(b *strings.Builder, rec *txn.Record) {
	fmt.Fprintf(b, "%s event %d, plan %s, exec %s\n", rec.Start.Format(time.RFC3339Nano), rec.EventSeqNum, rec.PlanTime, rec.ExecTime)
	b.WriteString(rec.String())
	for _, f := range rec.Failed {
		fmt.Fprintf(b, "  failed  %s (retry: %t)\n", f.Error(), f.Retriable)
	}
	for _, key := range rec.Pending {
		fmt.Fprintf(b, "  pending %s\n", key)
	}
	done := map[string]int{}
	for _, op := range rec.Executed {
		done[string(op.Action)+op.Key]++
	}
	for _, op := range rec.Planned {
		id := string(op.Action) + op.Key
		if done[id]--; done[id] < 0 {
			fmt.Fprintf(b, "  not done %s\n", op.String())
		}
	}
	b.WriteByte('\n')
}

func historyFilter(p map[string]string) (f HistoryFilter, err error) {
	if text := p["seq-num"]; text != "" {
		if f.SeqNum, err = strconv.ParseUint(text, 10, 64); err != nil {
			return f, &paramError{param: "seq-num", err: err}
		}
	}
	if f.First, err = count(p, "first"); err != nil {
		return f, err
	}
	if f.Last, err = count(p, "last"); err != nil {
		return f, err
	}
	if f.First > 0 && f.Last > 0 {
		return f, &paramError{param: "last", err: errors.New("not allowed together with first: use one of them")}
	}
	if f.Since, err = instant(p, "since"); err != nil {
		return f, err
	}
	f.Until, err = instant(p, "until")
	return f, err
}

// instant reads a time: RFC 3339, or seconds since 1970.
func instant(p map[string]string, name string) (time.Time, error) {
	text := p[name]
	if text == "" {
		return time.Time{}, nil
	}
	if sec, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(sec, 0), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, &paramError{param: name, err: err}
	}
	return t, nil
}

// restStatus serves GET /scheduler/status?key=&key-prefix=&kind=&state=
func (s *Scheduler) restStatus(w http.ResponseWriter, r *http.Request) {
	p, err := params(r, "key", "key-prefix", "kind", "state")
	var f Filter
	if err == nil {
		f, err = s.filter(p)
	}
	if err != nil {
		s.answerError(w, err)
		return
	}
	values := s.Status(f)
	if values == nil {
		values = []ValueStatus{}
	}
	rest.WriteJSON(w, http.StatusOK, struct {
		Counts map[State]int
		Stats  Stats
		Values []ValueStatus
	}{s.Counts(), s.Stats(), values})
}

// restGraph serves GET /scheduler/graph?kind=&key-prefix=&state=
func (s *Scheduler) restGraph(w http.ResponseWriter, r *http.Request) {
	p, err := params(r, "kind", "key", "key-prefix", "state")
	var f Filter
	if err == nil {
		f, err = s.filter(p)
	}
	if err != nil {
		s.answerError(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/vnd.graphviz; charset=utf-8")
	if err := writeDot(w, s.Graph(f)); err != nil {
		s.log.Debug("REST client went away", "error", err)
	}
}

// restResync serves POST /scheduler/downstream-resync
func (s *Scheduler) restResync(w http.ResponseWriter, r *http.Request) {
	if _, err := params(r); err != nil {
		s.answerError(w, err)
		return
	}
	rec, err := s.Commit(r.Context(), &txn.Txn{Kind: txn.DownstreamResync, Description: "REST request"})
	if err != nil {
		s.answerError(w, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, rec)
}

// restPlan serves POST /scheduler/plan with {"values": [{"key": …, "value": {…} or null}]}
func (s *Scheduler) restPlan(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Decode == nil {
		rest.WriteJSON(w, http.StatusNotImplemented, restError{Error: "values cannot be decoded here"})
		return
	}
	t, err := s.decodePlan(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		s.answerError(w, err)
		return
	}
	ops, err := s.Plan(r.Context(), t)
	if err != nil {
		s.answerError(w, err)
		return
	}
	if ops == nil {
		ops = []txn.Op{}
	}
	rest.WriteJSON(w, http.StatusOK, ops)
}
