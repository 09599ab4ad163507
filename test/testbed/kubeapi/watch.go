package kubeapi

import (
	"bufio"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bookmarkEvery is the interval of bookmarks with the revision. The interval of a real server is about a
// minute.
const bookmarkEvery = time.Second

// watcher is one watch.
type watcher struct {
	server *Server
	table  *table
	sel    selection
	codec  codec
	out    *bufio.Writer
	flush  func()
	rv     int64 // revision of the client's state
	marks  bool  // the client has requested bookmarks
	marked int64 // revision of the last bookmark
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, req request, t *table, sel selection) {
	initial := req.query.Get("sendInitialEvents") == "true"
	s.mu.Lock()
	t.Watches++
	lists, breaker := s.lists, s.breaker
	s.mu.Unlock()
	if initial && lists {
		s.fail(w, req, http.StatusUnprocessableEntity, "sendInitialEvents is not supported")
		return
	}
	w.Header().Set("Content-Type", req.codec.contentType(true))
	wt := &watcher{
		server: s, table: t, sel: sel, codec: req.codec, out: bufio.NewWriterSize(w, 1<<16),
		marks: req.query.Get("allowWatchBookmarks") == "true",
	}
	wt.rv, _ = strconv.ParseInt(req.query.Get("resourceVersion"), 10, 64) // if missing, it is 0: from now
	if flusher, ok := w.(http.Flusher); ok {
		wt.flush = flusher.Flush
	}
	if err := wt.begin(initial); err != nil {
		return // the client has disconnected
	}
	wt.follow(r, breaker, timeout(req))
}

// timeout returns a channel for the end of the watch that the client has requested; nil: no end.
func timeout(req request) <-chan time.Time {
	if seconds, err := strconv.Atoi(req.query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		return time.After(time.Duration(seconds) * time.Second)
	}
	return nil
}

// begin sends the existing objects, to clients that have requested them.
func (wt *watcher) begin(initial bool) error {
	wt.server.mu.Lock()
	var items []*item
	if initial || wt.rv == 0 {
		items, _ = wt.table.after("", 0, wt.sel)
		wt.rv = wt.server.rv
	}
	wt.server.mu.Unlock()
	for _, it := range items {
		if err := wt.codec.event(wt.out, "ADDED", it); err != nil {
			return err
		}
	}
	if initial {
		return wt.bookmark(wt.rv, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return nil
}

// bookmark sends the revision, in an object without other contents.
func (wt *watcher) bookmark(rv int64, annotations map[string]string) error {
	obj := wt.table.kind.example.DeepCopyObject().(Object)
	obj.SetResourceVersion(strconv.FormatInt(rv, 10))
	obj.SetAnnotations(annotations)
	it, err := encode(wt.table.kind, obj)
	if err != nil {
		return err
	}
	wt.marked = rv
	return wt.codec.event(wt.out, "BOOKMARK", it)
}

// follow sends changes until something ends the watch.
func (wt *watcher) follow(r *http.Request, breaker <-chan struct{}, timeout <-chan time.Time) {
	marks := time.NewTicker(bookmarkEvery)
	defer marks.Stop()
	for {
		changed, err := wt.send()
		if err != nil || changed == nil {
			return
		}
		select {
		case <-changed:
		case <-marks.C:
			if wt.marks && wt.marked < wt.rv && wt.bookmark(wt.rv, nil) != nil {
				return
			}
		case <-breaker:
			return
		case <-timeout:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// send sends the changes that the client has not received yet. It returns a channel that is closed at the next
// change; nil if the watch has to end.
func (wt *watcher) send() (<-chan struct{}, error) {
	wt.server.mu.Lock()
	changes, ok := wt.table.since(wt.rv)
	changed, rv := wt.table.changed, wt.server.rv
	wt.server.mu.Unlock()
	if !ok {
		err := wt.codec.statusEvent(wt.out, statusOf(http.StatusGone, "too old resource version"))
		return nil, wt.flushed(err)
	}
	for _, c := range changes {
		if event, it := wt.sel.event(c); event != "" {
			if err := wt.codec.event(wt.out, event, it); err != nil {
				return nil, err
			}
		}
	}
	wt.rv = rv
	return changed, wt.flushed(nil)
}

func (wt *watcher) flushed(err error) error {
	if err == nil {
		err = wt.out.Flush()
	}
	if err == nil && wt.flush != nil {
		wt.flush()
	}
	return err
}
