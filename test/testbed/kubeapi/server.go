package kubeapi

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Server is the API server.
type Server struct {
	mu      sync.Mutex
	rv      int64             // guarded by mu, like the fields below
	tables  map[string]*table // by resource
	breaker chan struct{}     // closed and replaced to end all watches
	lists   bool              // watch lists are not supported: clients have to list
	status  int               // answer every request with this instead
	cut     bool
	conns   map[net.Conn]struct{}
	written []Write

	http *http.Server
	work sync.WaitGroup
}

// New returns a server without listeners. As on a real one, the namespace "default" exists.
func New() *Server {
	s := &Server{rv: 100, tables: map[string]*table{}, breaker: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	for _, k := range kinds() {
		s.tables[k.resource] = &table{kind: k, objects: map[string]*item{}, changed: make(chan struct{})}
	}
	standard := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault, Labels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceDefault}}}
	if err := s.Put(standard); err != nil {
		panic(err) // not reached: namespaces are one of the kinds
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ConnState: s.connState}
	return s
}

// Serve answers requests of a listener until Close.
func (s *Server) Serve(l net.Listener) {
	s.work.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			_ = l.Close() // clients detect that the server does not respond
		}
	})
}

// Close stops the server and closes all connections.
func (s *Server) Close() {
	s.BreakWatches()
	_ = s.http.Close() // errors of listeners that are already closed
	s.work.Wait()
}

// connState records the connections, and closes new ones while the server is cut off.
func (s *Server) connState(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		if s.cut {
			_ = conn.Close() // the client detects this
			return
		}
		s.conns[conn] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(s.conns, conn)
	}
}

// Cut makes the server unreachable: it closes all connections, and new ones too. Restore undoes it.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = true
	for conn := range s.conns {
		_ = conn.Close()
	}
	clear(s.conns)
}

// Restore undoes Cut.
func (s *Server) Restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = false
}

// Fail makes the server answer every request with a status code; 0 restores normal answers.
func (s *Server) Fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// BreakWatches ends all watches; clients may start new ones at once.
func (s *Server) BreakWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.breaker)
	s.breaker = make(chan struct{})
}

// Compact compacts the history: watches from an earlier revision receive 410 Gone.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		t.history, t.compact = nil, s.rv
	}
}

// StreamLists sets whether a watch can deliver lists (sendInitialEvents). The default is true.
func (s *Server) StreamLists(can bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = !can
}

// SetAbsent makes a resource unknown to the server, or known again.
func (s *Server) SetAbsent(resource string, absent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tables[resource]; t != nil {
		t.absent = absent
	}
}

// Queried returns the number of lists and watches that clients have requested for a resource, and the
// last query.
func (s *Server) Queried(resource string) (lists, watches int, query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[resource]
	if t == nil {
		return 0, 0, ""
	}
	return t.Lists, t.Watches, t.Query
}

// ResetRequests resets the counters of Queried.
func (s *Server) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		t.requests = requests{}
	}
}
