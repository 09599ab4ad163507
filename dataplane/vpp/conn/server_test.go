package conn

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vpe"
	"go.uber.org/goleak"

	"contiv.dev/vswitch/internal/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a fake VPP that answers each request with success, unless the test sets another answer.
type server struct {
	t      *testing.T
	path   string
	types  registry
	ids    map[string]uint16
	byID   map[uint16]*msgType
	listen *net.UnixListener
	done   sync.WaitGroup

	mu       sync.Mutex
	cond     *sync.Cond
	conns    map[*net.UnixConn]bool
	received map[string]int
	followed map[string]int // requests that were read, 4 kB at a time as VPP does, together with all of the next request
	frozen   bool
	// answer, if set, returns the replies to a request; ok false: the default.
	answer func(req api.Message) (replies []api.Message, ok bool)
	pid    uint32
}

func newServer(t *testing.T) *server {
	s := &server{
		t: t, path: filepath.Join(t.TempDir(), "api.sock"), types: newRegistry(), ids: map[string]uint16{},
		byID: map[uint16]*msgType{}, conns: map[*net.UnixConn]bool{}, received: map[string]int{}, pid: 42,
		followed: map[string]int{},
	}
	s.cond = sync.NewCond(&s.mu)
	next := uint16(100)
	for key, typ := range s.types {
		s.ids[key], s.byID[next] = next, typ
		next++
	}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *server) start() {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.path, Net: "unix"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.listen = l
	s.done.Go(func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			s.done.Go(func() { s.serve(c) })
		}
	})
}

// drop closes the connections, as a network failure would; stop also closes the socket.
func (s *server) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
	clear(s.conns)
}

func (s *server) stop() {
	s.listen.Close()
	s.freeze(false)
	s.drop()
	s.done.Wait()
}

func (s *server) freeze(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = on
	s.cond.Broadcast()
}

func (s *server) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received[name]
}

func (s *server) reply(f func(req api.Message) ([]api.Message, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

func (s *server) serve(c *net.UnixConn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, outboxBytes)
	for {
		var head [frameHeader]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		data := make([]byte, binary.BigEndian.Uint32(head[8:]))
		if _, err := io.ReadFull(r, data); err != nil {
			return
		}
		if id := binary.BigEndian.Uint16(data); id == registerID {
			s.write(c, s.table(), 0)
			continue
		}
		typ := s.byID[binary.BigEndian.Uint16(data)]
		req, err := typ.decode(data)
		if err != nil {
			s.t.Error(err)
			return
		}
		s.follow(r, req.GetMessageName())
		s.handle(c, req, binary.BigEndian.Uint32(data[6:]))
	}
}

func (s *server) follow(r *bufio.Reader, name string) {
	if r.Buffered() < frameHeader {
		return
	}
	next, err := r.Peek(frameHeader)
	if err != nil || r.Buffered() < frameHeader+int(binary.BigEndian.Uint32(next[8:])) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed[name]++
}

func (s *server) table() api.Message {
	reply := &memclnt.SockclntCreateReply{Index: 7}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, id := range s.ids {
		reply.MessageTable = append(reply.MessageTable, memclnt.MessageTableEntry{Index: id, Name: key + "\x13"})
	}
	return reply
}

func (s *server) handle(c *net.UnixConn, req api.Message, context uint32) {
	name := req.GetMessageName()
	s.mu.Lock()
	s.received[name]++
	for s.frozen {
		s.cond.Wait()
	}
	answer := s.answer
	s.mu.Unlock()
	if answer != nil {
		if replies, ok := answer(req); ok {
			for _, m := range replies {
				s.write(c, m, context)
			}
			return
		}
	}
	switch req.(type) {
	case *memclnt.ControlPing:
		s.write(c, &memclnt.ControlPingReply{VpePID: s.pid}, context)
	case *vpe.ShowVersion:
		s.write(c, &vpe.ShowVersionReply{Program: "vpe", Version: "25.10-test"}, context)
	default:
		if m := s.zero(name + "_reply"); m != nil {
			s.write(c, m, context)
		}
	}
}

func (s *server) zero(name string) api.Message {
	for _, typ := range s.types {
		if typ.name == name {
			return reflect.New(typ.typ).Interface().(api.Message)
		}
	}
	return nil
}

// event sends m to all clients.
func (s *server) event(m api.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		s.write(c, m, 0)
	}
}

func (s *server) write(c *net.UnixConn, m api.Message, context uint32) {
	body := m.(coder)
	kind := m.GetMessageType()
	msg := make([]byte, header(kind)+body.Size())
	binary.BigEndian.PutUint16(msg, s.ids[messageKey(m)])
	switch kind {
	case api.RequestMessage:
		binary.BigEndian.PutUint32(msg[6:], context)
	case api.ReplyMessage:
		binary.BigEndian.PutUint32(msg[2:], context)
	}
	if _, err := body.Marshal(msg[header(kind):]); err != nil {
		s.t.Error(err)
	}
	s.raw(c, msg)
}

func (s *server) raw(c *net.UnixConn, msg []byte) {
	frame := make([]byte, frameHeader, frameHeader+len(msg))
	binary.BigEndian.PutUint32(frame[8:], uint32(len(msg)))
	c.Write(append(frame, msg...)) // the client may have disconnected
}

// Timeouts of the tests. Waiting for an event that must happen has a timeout that is long on any machine. A timeout that must
// expire is long enough that a process that is not scheduled for a moment does not exceed it.
const (
	longTimeout = 20 * time.Second
	soon        = time.Second
)

// client is a Conn with its recorded states.
type client struct {
	*Conn
	t      *testing.T
	states chan State
	jobs   *lifecycle.Group
}

func newClient(t *testing.T, cfg Config) *client {
	log := slog.New(slog.DiscardHandler)
	c := &client{Conn: New(cfg, log), t: t, states: make(chan State, 1000), jobs: lifecycle.NewGroup(t.Context(), log)}
	c.OnChange(func(s State) { c.states <- s })
	c.Start(c.jobs)
	t.Cleanup(func() {
		c.Close()
		if err := c.jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	return c
}

// connect returns a client in its first session.
func connect(t *testing.T, s *server, cfg Config) *client {
	t.Helper()
	cfg.Socket = s.path
	if cfg.Reconnect == 0 {
		cfg.Reconnect = 5 * time.Millisecond
	}
	c := newClient(t, cfg)
	c.expect(Connected)
	return c
}

// expect waits for a status and skips others.
func (c *client) expect(status Status) State {
	c.t.Helper()
	timeout := time.After(longTimeout)
	for {
		select {
		case s := <-c.states:
			if s.Status == status {
				return s
			}
		case <-timeout:
			c.t.Fatalf("not %v; now %+v", status, c.State())
		}
	}
}

// outcome counts the results of requests.
type outcome struct {
	answered int
	errs     []error
}

func (o *outcome) done(_ api.Message, err error) {
	if err != nil {
		o.errs = append(o.errs, err)
		return
	}
	o.answered++
}

func flush(l *Lane) { l.Flush(context.Background()) }
