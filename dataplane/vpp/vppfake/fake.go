package vppfake

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// Config configures a Fake. The zero value is a VPP 25.10 with vhost-net that answers all requests.
type Config struct {
	// Seed is the seed of all randomness: message ids, random MACs, faults with a probability.
	Seed uint64
	// Version is the version in the reply to show_version; default "25.10-fake".
	Version string
	// Plugin is true if our own plugin, dataplane/vpp/plugin, is loaded.
	Plugin bool
	// PluginVersion is the version that the plugin reports; default: that of contiv.api.
	PluginVersion string
	// Without lists messages that this VPP does not have, like a VPP of another version.
	Without []string
	// Connections is the maximum number of connections of the plugin per family; default 262144.
	Connections int
	// Host is called for TAP and af_packet interfaces; nil: there are no calls, and any host interface name is assumed to exist.
	Host Host
	// Resolve returns the result of ARP or ND for a next hop on an interface; nil: no next hop resolves. It must not call the fake.
	Resolve func(ifName string, nextHop netip.Addr) (MAC, bool)
	// NoVhost makes TAP creation fail with -11, as on a kernel without /dev/vhost-net.
	NoVhost bool
	// NICs lists the names of the NICs of VPP's start-up configuration. They receive no packets.
	NICs []string
	// Workers is the number of worker threads. Receive queues are assigned to them, without effect on packets.
	Workers int
	// ACLSessions is the number of sessions that startup.conf allows for ACLs; default 1024, as in vpptest.
	ACLSessions uint64
	// RestartAfter is the time for which a fake stays down after a crash (by Crash, a fault, or a request that aborts VPP): 0 restarts at once,
	// a negative value leaves it down until Boot.
	RestartAfter time.Duration
	// Now is the clock for everything that ages: connections, sessions, backends that are being removed. Default: time.Now.
	Now func() time.Time
	// Log receives refused messages and crashes; default: no logging.
	Log *slog.Logger
}

// Refusal is a message that the fake, like VPP, did not respond, with the reason.
type Refusal struct {
	Message string // name, or "id 4711" where there is none
	Reason  string
}

// errDown is the error of packet and state functions while the fake is not running.
var errDown = errors.New("vppfake: not running")

// Fake is one fake VPP. Its methods may be called from any goroutine.
type Fake struct {
	// Faults holds the faults to inject. They survive a crash.
	Faults *Faults

	cfg  Config
	log  *slog.Logger
	done chan struct{} // closed by Close
	wg   sync.WaitGroup

	mu     sync.Mutex // guards the rest; held while a request is handled, as VPP's main thread handles one request at a time
	idle   *sync.Cond // signalled when frozen, stalls, turns or st change
	st     *state     // nil while down
	rng    *rand.Rand
	server server
	life   life
	tally  tally
	wires  map[string]wireEnd // by interface name or tag
}

// life is the run state of a fake.
type life struct {
	boots  uint32
	frozen bool
	stalls int // Delay faults being served
	turns  int // sessions with pending requests
	closed bool
}

// server is the socket side of a fake.
type server struct {
	socket   string
	listener net.Listener
	sessions map[*session]struct{}
	accepted uint32
}

// tally holds the counters of a fake since its creation or since ResetCounts.
type tally struct {
	requests map[string]uint64
	writes   uint64
	refused  []Refusal
	crashes  []string
}

// New returns a fake VPP that is up but has no socket yet. The caller must close it.
func New(cfg Config) *Fake {
	if cfg.Version == "" {
		cfg.Version = "25.10-fake"
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := &Fake{
		cfg: cfg, log: log, done: make(chan struct{}),
		rng:    rand.New(rand.NewPCG(cfg.Seed, 0x7670_7066)),
		server: server{sessions: map[*session]struct{}{}},
		wires:  map[string]wireEnd{},
		tally:  tally{requests: map[string]uint64{}},
	}
	f.idle = sync.NewCond(&f.mu)
	f.Faults = &Faults{rng: rand.New(rand.NewPCG(cfg.Seed, 0x6661_756c))}
	f.bootLocked()
	return f
}

// Listen serves the API on a unix socket, in the background, until Close. A stale socket file is removed first.
func (f *Fake) Listen(socket string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server.socket != "" {
		return fmt.Errorf("vppfake: already listening on %s", f.server.socket)
	}
	f.server.socket = socket
	if f.st == nil {
		return nil // Boot will listen
	}
	return f.listenLocked()
}

// Serve calls Listen and, when ctx ends, Close.
func (f *Fake) Serve(ctx context.Context, socket string) error {
	if err := f.Listen(socket); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-f.done:
	}
	return f.Close()
}

// Close ends the fake and waits for its goroutines. It may be called twice.
func (f *Fake) Close() error {
	f.mu.Lock()
	if !f.life.closed {
		f.life.closed = true
		close(f.done)
	}
	f.killLocked()
	socket := f.server.socket
	f.mu.Unlock()
	f.wg.Wait()
	if socket != "" {
		os.Remove(socket) //nolint:errcheck // may never have been made
	}
	return nil
}

// Socket returns the path on which the fake listens.
func (f *Fake) Socket() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.server.socket
}

func (f *Fake) listenLocked() error {
	os.Remove(f.server.socket) //nolint:errcheck // a predecessor's, if any
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: f.server.socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("vppfake: %w", err)
	}
	l.SetUnlinkOnClose(false) // VPP's socket file stays after VPP has ended
	f.server.listener = l
	f.wg.Go(func() { f.accept(l) })
	return nil
}

func (f *Fake) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		if f.server.listener != l {
			f.mu.Unlock()
			conn.Close()
			return
		}
		f.server.accepted++
		s := newSession(f, conn, 1<<31|f.server.accepted)
		f.server.sessions[s] = struct{}{}
		f.wg.Go(s.read)
		f.wg.Go(s.write)
		f.mu.Unlock()
	}
}

// drop removes a session whose connection is closed.
func (f *Fake) drop(s *session) {
	f.mu.Lock()
	delete(f.server.sessions, s)
	f.turnLocked(s, false)
	if f.st != nil {
		f.st.removeSession(s)
	}
	f.mu.Unlock()
	if !s.isFinishing() {
		s.close()
	}
}

// Kill ends the fake VPP like kill -9: all state and connections are lost, and new connections are rejected.
func (f *Fake) Kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.killLocked()
}

// Boot starts a killed fake VPP with empty state.
func (f *Fake) Boot() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.st != nil || f.life.closed {
		return nil
	}
	f.bootLocked()
	if f.server.socket == "" {
		return nil
	}
	return f.listenLocked()
}

// Crash calls Kill, and Boot after Config.RestartAfter.
func (f *Fake) Crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashLocked("Crash called")
}

func (f *Fake) crashLocked(reason string) {
	if f.st == nil {
		return
	}
	f.log.Warn("fake VPP crashed", "reason", reason)
	f.tally.crashes = append(f.tally.crashes, reason)
	sessions := f.downLocked()
	defer hangUp(sessions) // after an immediate restart, so that a client that detects the closed connection can reconnect
	switch after := f.cfg.RestartAfter; {
	case after < 0 || f.life.closed:
	case after == 0:
		f.bootLocked()
		if f.server.socket != "" {
			f.reportLocked(f.listenLocked())
		}
	default:
		f.wg.Go(func() { f.bootAfter(after) })
	}
}

func (f *Fake) bootAfter(after time.Duration) {
	select {
	case <-time.After(after):
		err := f.Boot()
		f.mu.Lock()
		f.reportLocked(err)
		f.mu.Unlock()
	case <-f.done:
	}
}

func (f *Fake) reportLocked(err error) {
	if err != nil {
		f.log.Error("fake VPP does not come back", "error", err)
		f.tally.crashes = append(f.tally.crashes, err.Error())
	}
}

func (f *Fake) killLocked() { hangUp(f.downLocked()) }

// downLocked stops the fake and returns its connections, which are still open.
func (f *Fake) downLocked() map[*session]struct{} {
	if f.server.listener != nil {
		f.server.listener.Close()
		f.server.listener = nil
	}
	sessions := f.server.sessions
	f.server.sessions = map[*session]struct{}{}
	f.collectLocked()
	f.st = nil
	f.idle.Broadcast()
	return sessions
}

func hangUp(sessions map[*session]struct{}) {
	for s := range sessions {
		s.close()
	}
}

func (f *Fake) bootLocked() {
	f.life.boots++
	f.life.frozen = false
	f.st = newState(f.cfg, f.rng, f.life.boots)
}

// Freeze stops the fake as SIGSTOP stops VPP: connections stay open, new connections succeed, and no request is answered.
func (f *Fake) Freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.life.frozen = true
}

// Unfreeze makes a frozen fake continue with the requests that it received meanwhile.
func (f *Fake) Unfreeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.life.frozen = false
	f.idle.Broadcast()
}

// stallLocked makes the main thread busy for d.
func (f *Fake) stallLocked(d time.Duration) {
	f.life.stalls++
	f.wg.Go(func() {
		select {
		case <-time.After(d):
		case <-f.done:
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.life.stalls--
		f.idle.Broadcast()
	})
}

// waitLocked waits until the main thread is free; it returns false if the session or the fake is gone.
func (f *Fake) waitLocked(s *session) bool {
	for (f.life.frozen || f.life.stalls > 0) && f.st != nil && !f.life.closed {
		f.idle.Wait()
	}
	_, open := f.server.sessions[s]
	return open && f.st != nil
}

// Boots returns the number of times that this fake has started; the PID of VPP is different after each.
func (f *Fake) Boots() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int(f.life.boots)
}

func (f *Fake) refuse(r Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuseLocked(r)
}

func (f *Fake) refuseLocked(r Refusal) {
	f.log.Warn("request rejected", "message", r.Message, "reason", r.Reason)
	f.tally.refused = append(f.tally.refused, r)
}

// peerIndex returns the client index of a request.
func peerIndex(msg []byte) uint32 { return binary.BigEndian.Uint32(msg[2:]) }
