package controller

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/controller/api"
)

// The REST paths.
const (
	historyPath = "/controller/event-history"
	resyncPath  = "/controller/resync"
)

// maxBody bounds the body of a request.
const maxBody = 4 << 10

func (c *Controller) registerREST(http rest.HTTPHandlers) {
	http.RegisterHTTPHandler(historyPath, c.serveHistory, "GET")
	http.RegisterHTTPHandler(resyncPath, c.serveResync, "POST")
}

// paramError is the error for an invalid query parameter.
type paramError struct {
	name, value, allowed string
}

func (e *paramError) Error() string {
	return fmt.Sprintf("parameter %q: %q is not allowed, must be %s", e.name, e.value, e.allowed)
}

// params is a query that has supported parameters only, each at most once.
type params struct{ values url.Values }

func parseParams(values url.Values, known ...string) (params, error) {
	for _, name := range sortedKeys(values) {
		if !slices.Contains(known, name) {
			return params{}, fmt.Errorf("unknown parameter %q: allowed are %s", name, strings.Join(known, ", "))
		}
		if len(values[name]) != 1 {
			return params{}, &paramError{name, strings.Join(values[name], ", "), "given once"}
		}
	}
	return params{values}, nil
}

// uint reads a number; ok is false when it is absent.
func (p params) uint(name string, minimum uint64) (n uint64, ok bool, err error) {
	if !p.values.Has(name) {
		return 0, false, nil
	}
	text := p.values.Get(name)
	n, err = strconv.ParseUint(text, 10, 64)
	if err != nil || n < minimum {
		return 0, false, &paramError{name, text, fmt.Sprintf("a whole number of at least %d", minimum)}
	}
	return n, true, nil
}

// time reads a point in time; it returns the zero time if the parameter is absent.
func (p params) time(name string) (time.Time, error) {
	if !p.values.Has(name) {
		return time.Time{}, nil
	}
	const lastSecond = 253402300799 // of the year 9999
	text := p.values.Get(name)
	if secs, err := strconv.ParseUint(text, 10, 64); err == nil && secs <= lastSecond {
		return time.Unix(int64(secs), 0), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, &paramError{name, text, "Unix seconds or a time as in RFC 3339, e.g. 2026-01-31T12:00:00Z"}
	}
	return at, nil
}

// oneOf reads a parameter that must be one of words; the first word is the default.
func (p params) oneOf(name string, words ...string) (string, error) {
	if !p.values.Has(name) {
		return words[0], nil
	}
	if text := p.values.Get(name); !slices.Contains(words, text) {
		return "", &paramError{name, text, "one of " + strings.Join(words, ", ")}
	}
	return p.values.Get(name), nil
}

// historyQuery selects records of the history.
type historyQuery struct {
	seqNum       uint64 // the only record selected; 0 = all
	since, until time.Time
	from, to     uint64
	first, last  uint64
	text         bool
}

// parseHistoryQuery reads the parameters of GET /controller/event-history.
func parseHistoryQuery(values url.Values) (q historyQuery, err error) {
	p, err := parseParams(values, "seq-num", "since", "until", "from", "to", "first", "last", "format")
	if err != nil {
		return q, err
	}
	format, err := p.oneOf("format", "json", "text")
	if err != nil {
		return q, err
	}
	q.text, q.to = format == "text", math.MaxUint64
	for _, number := range []struct {
		name string
		to   *uint64
		min  uint64
	}{{"seq-num", &q.seqNum, 1}, {"from", &q.from, 0}, {"to", &q.to, 0}, {"first", &q.first, 1}, {"last", &q.last, 1}} {
		n, given, err := p.uint(number.name, number.min)
		if err != nil {
			return q, err
		}
		if given {
			*number.to = n
		}
	}
	if q.since, err = p.time("since"); err != nil {
		return q, err
	}
	if q.until, err = p.time("until"); err != nil {
		return q, err
	}
	return q, q.validate(p)
}

// validate returns an error for combinations of parameters that make no sense.
func (q *historyQuery) validate(p params) error {
	if q.seqNum != 0 {
		for _, other := range []string{"since", "until", "from", "to", "first", "last"} {
			if p.values.Has(other) {
				return fmt.Errorf("parameter %q: not allowed together with \"seq-num\", which selects a single event", other)
			}
		}
	}
	switch {
	case q.first != 0 && q.last != 0:
		return errors.New(`parameter "last": not allowed together with "first", use one of them`)
	case q.from > q.to:
		return &paramError{"to", p.values.Get("to"), fmt.Sprintf("at least \"from\" (%d)", q.from)}
	case !q.since.IsZero() && !q.until.IsZero() && q.until.Before(q.since):
		return &paramError{"until", p.values.Get("until"), `not before "since"`}
	}
	return nil
}

// filter returns the selected records; records are in ascending order.
func (q *historyQuery) filter(records []*EventRecord) []*EventRecord {
	out := []*EventRecord{}
	for _, r := range records {
		switch {
		case q.seqNum != 0 && r.SeqNum != q.seqNum:
		case r.SeqNum < q.from || r.SeqNum > q.to:
		case !q.since.IsZero() && r.ProcessingStart.Before(q.since):
		case !q.until.IsZero() && r.ProcessingStart.After(q.until):
		default:
			out = append(out, r)
		}
	}
	if n := uint64(len(out)); q.first != 0 && q.first < n {
		out = out[:q.first]
	} else if q.last != 0 && q.last < n {
		out = out[n-q.last:]
	}
	return out
}

func (c *Controller) serveHistory(w http.ResponseWriter, r *http.Request) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		rest.WriteError(w, http.StatusBadRequest, fmt.Errorf("query: %w", err))
		return
	}
	q, err := parseHistoryQuery(values)
	if err != nil {
		rest.WriteError(w, http.StatusBadRequest, err)
		return
	}
	if !c.cfg.RecordEventHistory {
		rest.WriteError(w, http.StatusNotFound, errors.New("the event history is off (recordEventHistory)"))
		return
	}
	records := q.filter(c.EventHistory())
	if q.seqNum != 0 && len(records) == 0 {
		rest.WriteError(w, http.StatusNotFound, fmt.Errorf("no event #%d in the history", q.seqNum))
		return
	}
	switch {
	case q.text:
		writeText(w, records)
	case q.seqNum != 0:
		rest.WriteJSON(w, http.StatusOK, records[0])
	default:
		if err := rest.WriteArray(w, slices.Values(records)); err != nil {
			c.deps.Log.Debug("event history: the reply was not sent completely", "error", err)
		}
	}
}

// parseResyncRequest reads the parameters of POST /controller/resync from the query and from the body, which may be a form
// or a JSON object.
func parseResyncRequest(query, contentType string, body []byte) (method api.EventMethodType, text bool, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return 0, false, fmt.Errorf("query: %w", err)
	}
	fromBody, err := parseBody(contentType, body)
	if err != nil {
		return 0, false, fmt.Errorf("body: %w", err)
	}
	for name, vs := range fromBody {
		values[name] = append(values[name], vs...)
	}
	p, err := parseParams(values, "method", "format")
	if err != nil {
		return 0, false, err
	}
	format, err := p.oneOf("format", "json", "text")
	if err != nil {
		return 0, false, err
	}
	name, err := p.oneOf("method", "full", "upstream", "downstream")
	methods := map[string]api.EventMethodType{
		"full": api.FullResync, "upstream": api.UpstreamResync, "downstream": api.DownstreamResync,
	}
	return methods[name], format == "text", err
}

func parseBody(contentType string, body []byte) (url.Values, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil, nil
	}
	mediaType, _, _ := mime.ParseMediaType(contentType)
	if mediaType != "application/json" && body[0] != '{' {
		return url.ParseQuery(string(body))
	}
	var fields map[string]string
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf(`not a JSON object such as {"method": "full"}: %w`, err)
	}
	values := url.Values{}
	for name, value := range fields {
		values.Set(name, value)
	}
	return values, nil
}

func (c *Controller) serveResync(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		rest.WriteError(w, http.StatusBadRequest, fmt.Errorf("body: %w", err))
		return
	}
	method, text, err := parseResyncRequest(r.URL.RawQuery, r.Header.Get("Content-Type"), body)
	if err != nil {
		rest.WriteError(w, http.StatusBadRequest, err)
		return
	}
	record, err := c.Resync(r.Context(), method)
	switch {
	case err == nil && text:
		writeText(w, []*EventRecord{record})
	case err == nil:
		rest.WriteJSON(w, http.StatusOK, record)
	case record != nil:
		rest.WriteJSON(w, http.StatusInternalServerError, failedResync{Error: err.Error(), Record: record})
	case r.Context().Err() != nil:
		rest.WriteError(w, http.StatusGatewayTimeout, err)
	default:
		rest.WriteError(w, http.StatusServiceUnavailable, err)
	}
}

// failedResync is the answer to a resync that was carried out with an error.
type failedResync struct {
	Error  string       `json:"error"`
	Record *EventRecord `json:"record"`
}

func writeText(w http.ResponseWriter, records []*EventRecord) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, r := range records {
		if _, err := io.WriteString(w, r.String()); err != nil {
			return
		}
	}
}
