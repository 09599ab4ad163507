package kubeapi

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// request is a parsed request.
type request struct {
	resource, namespace, name string
	query                     url.Values
	codec                     codec
}

// parse parses /api/v1/… and /apis/<group>/<version>/…, with or without a namespace.
func parse(r *http.Request) request {
	req := request{query: r.URL.Query(), codec: jsonCodec{}}
	if strings.Contains(r.Header.Get("Accept"), protobufType) {
		req.codec = protobufCodec{}
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	skip := 2
	if parts[0] == "apis" {
		skip = 3
	}
	if len(parts) <= skip {
		return req
	}
	parts = parts[skip:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		req.namespace, parts = parts[1], parts[2:]
	}
	req.resource = parts[0]
	if len(parts) > 1 {
		req.name = parts[1]
	}
	return req
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := parse(r)
	s.mu.Lock()
	status, t := s.status, s.tables[req.resource]
	if t != nil && t.absent {
		t = nil
	}
	if t != nil && !t.kind.protobuf() {
		req.codec = jsonCodec{}
	}
	if t != nil && r.Method == http.MethodGet {
		t.Query = r.URL.RawQuery
	}
	s.mu.Unlock()
	switch {
	case status != 0:
		s.fail(w, req, status, "the test says so")
	case r.URL.Path == "/healthz" || r.URL.Path == "/readyz" || r.URL.Path == "/livez":
		_, _ = io.WriteString(w, "ok") // the client may have disconnected, here and below
	case r.URL.Path == "/version":
		_ = json.NewEncoder(w).Encode(map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
	case r.Method != http.MethodGet:
		s.accept(w, r)
	case t == nil:
		s.fail(w, req, http.StatusNotFound, "no resource "+req.resource)
	case req.name != "":
		s.get(w, req, t)
	default:
		s.listOrWatch(w, r, req, t)
	}
}

// writtenMax is the number of writes that are kept.
const writtenMax = 1000

// Write is a write request of a client.
type Write struct{ Method, Path, Body string }

// Written returns the last writes of clients. These writes change no object.
func (s *Server) Written() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.written)
}

// accept accepts the writes of clients (events, leases, status), and returns the object unchanged.
func (s *Server) accept(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	s.mu.Lock()
	s.written = append(s.written, Write{r.Method, r.URL.Path, string(body)})
	s.written = s.written[max(0, len(s.written)-writtenMax):]
	s.mu.Unlock()
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = w.Write(body)
}

func statusOf(code int, message string) *metav1.Status {
	reasons := map[int]metav1.StatusReason{
		http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden,
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusGone: metav1.StatusReasonExpired,
		http.StatusBadRequest:         metav1.StatusReasonBadRequest,
		http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reasons[code],
		Code: int32(code), Message: message,
	}
}

func (s *Server) fail(w http.ResponseWriter, req request, code int, message string) {
	w.Header().Set("Content-Type", req.codec.contentType(false))
	w.WriteHeader(code)
	_ = req.codec.status(w, statusOf(code, message))
}

func (s *Server) get(w http.ResponseWriter, req request, t *table) {
	s.mu.Lock()
	it := t.objects[req.namespace+"/"+req.name]
	s.mu.Unlock()
	if it == nil {
		s.fail(w, req, http.StatusNotFound, req.resource+" "+req.name+" not found")
		return
	}
	w.Header().Set("Content-Type", req.codec.contentType(false))
	_ = req.codec.object(w, it)
}

func (s *Server) listOrWatch(w http.ResponseWriter, r *http.Request, req request, t *table) {
	sel, err := newSelection(req.namespace, req.query)
	if err != nil {
		s.fail(w, req, http.StatusBadRequest, err.Error())
		return
	}
	if watch, _ := strconv.ParseBool(req.query.Get("watch")); watch {
		s.watch(w, r, req, t, sel)
		return
	}
	s.list(w, req, t, sel)
}

// list answers with all objects, or with a part of them and a continue token. Later parts have the state at the time of their request;
// the client's watch starts at the time of the first part and reports the changes since then.
func (s *Server) list(w http.ResponseWriter, req request, t *table, sel selection) {
	rv, behind, err := position(req.query.Get("continue"))
	if err != nil {
		s.fail(w, req, http.StatusBadRequest, err.Error())
		return
	}
	limit, _ := strconv.Atoi(req.query.Get("limit")) // if missing, it is 0: all
	s.mu.Lock()
	if behind == "" {
		rv = s.rv
	}
	t.Lists++
	forgotten := rv < t.compact
	items, more := t.after(behind, limit, sel)
	s.mu.Unlock()
	if forgotten {
		s.fail(w, req, http.StatusGone, "the list has expired")
		return
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(rv, 10)}
	if more {
		meta.Continue = token(rv, items[len(items)-1].key)
	}
	w.Header().Set("Content-Type", req.codec.contentType(false))
	buf := bufio.NewWriterSize(w, 1<<16)
	if req.codec.list(buf, t.kind, meta, items) == nil {
		_ = buf.Flush()
	}
}

// token returns the token with which a list continues: its revision and the last key.
func token(rv int64, key string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", rv, key))
}

func position(token string) (rv int64, key string, err error) {
	if token == "" {
		return 0, "", nil
	}
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return 0, "", fmt.Errorf("continue: %w", err)
	}
	revision, key, _ := strings.Cut(string(data), " ")
	if rv, err = strconv.ParseInt(revision, 10, 64); err != nil || key == "" {
		return 0, "", fmt.Errorf("continue: %q is no token of this server", token)
	}
	return rv, key, nil
}
