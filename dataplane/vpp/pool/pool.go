package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
)

// Config configures a pool.
type Config struct {
	// Size is the number of pairs to keep ready. 0: none.
	Size int
	// Veths makes the pairs.
	Veths Veths
	// Busy reports whether a transaction is running. Optional.
	Busy func() bool
	// Quiet is the time without a claim before the pool is refilled; default 300 ms. Pods are often added in bursts.
	Quiet time.Duration
	// Pace is the minimum time between making two interfaces; default 50 ms.
	Pace time.Duration
	// Unclaimed is how long a pair may be taken without its af_packet interface being claimed; default 1 min.
	Unclaimed time.Duration
	Log       *slog.Logger
}

// Veth is a pair of devices in VPP's network namespace.
type Veth struct{ Pod, Host string }

// Veths lists, makes and deletes pairs.
type Veths interface {
	// List returns the pairs that were made and not taken yet.
	List() ([]Veth, error)
	// Make makes a pair: host end up, offloads set as for a pod.
	Make() (Veth, error)
	// Delete removes a pair; it succeeds if the pair is already gone.
	Delete(Veth) error
}

// Pool hands out pairs. It implements iface.Pool and links.VethPool; its methods may be called from any goroutine.
type Pool struct {
	cfg  Config
	conn *conn.Conn
	lane *conn.Lane // of the goroutine that runs Run
	wake chan struct{}
	log  *slog.Logger

	failures int // consecutive; used only by the goroutine that runs Run

	mu      sync.Mutex
	session uint64 // session for which ready and taken are valid
	ready   []item
	taken   map[string]takenItem // af_packet interfaces by host device
	surplus []item               // to be deleted
	claimed time.Time            // time of the last claim
}

type item struct {
	index uint32
	host  string // the host end of the pair
	pod   string // its pod end; unknown if another agent took the pair
}

type takenItem struct {
	item
	since time.Time
}

var _ iface.Pool = (*Pool)(nil)

// New returns an empty pool. Run fills it.
func New(c *conn.Conn, cfg Config) *Pool {
	def := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	def(&cfg.Quiet, 300*time.Millisecond)
	def(&cfg.Pace, 50*time.Millisecond)
	def(&cfg.Unclaimed, time.Minute)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	p := &Pool{
		cfg: cfg, conn: c, lane: c.Lane(), wake: make(chan struct{}, 1), taken: map[string]takenItem{},
		log: cfg.Log.With("component", "vpp-pool"),
	}
	c.OnChange(func(conn.State) { p.signal() })
	return p
}

func (p *Pool) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Ready returns the number of interfaces that are ready.
func (p *Pool) Ready() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ready)
}

// Size returns how many interfaces are kept ready.
func (p *Pool) Size() int { return p.cfg.Size }

// TakeVeth hands out a pair whose host end already has an af_packet interface. The af_packet descriptor then gets that interface from
// ClaimAfPacket.
func (p *Pool) TakeVeth() (podEnd, hostEnd string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claimed = time.Now()
	if len(p.ready) == 0 || !p.currentLocked() {
		return "", "", false
	}
	i := p.ready[0]
	p.ready = p.ready[1:]
	p.taken[i.host] = takenItem{i, p.claimed}
	p.signal()
	return i.pod, i.host, true
}

// ClaimAfPacket hands out the interface on the host end of a pair that was taken.
func (p *Pool) ClaimAfPacket(hostDev string) (swIfIndex uint32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.taken[hostDev]
	if !ok || !p.currentLocked() {
		return 0, false
	}
	delete(p.taken, hostDev)
	p.claimed = time.Now()
	return t.index, true
}

// currentLocked reports whether the pool's data is still valid: VPP may just have been restarted. The caller holds mu.
func (p *Pool) currentLocked() bool {
	s := p.conn.State()
	return s.Connected() && s.Session == p.session
}

// Run fills the pool until ctx ends.
func (p *Pool) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		wait, err := p.step(ctx)
		if err != nil {
			p.sleep(ctx, p.backOff(ctx, err), nil)
			continue
		}
		// A claim must not shorten wait.
		var wake <-chan struct{}
		if wait == idle {
			wake = p.wake
		}
		p.sleep(ctx, wait, wake)
	}
	return ctx.Err()
}

const (
	idle       = 10 * time.Second
	maxBackOff = time.Minute
)

// step does one piece of work, if there is any, and returns when to check again.
func (p *Pool) step(ctx context.Context) (time.Duration, error) {
	s := p.conn.State()
	if !s.Connected() {
		return idle, nil
	}
	p.mu.Lock()
	known := p.session == s.Session
	p.mu.Unlock()
	if !known {
		if err := p.adopt(ctx, s.Session); err != nil {
			return 0, fmt.Errorf("find the pool's interfaces in VPP: %w", err)
		}
	}
	if wait := p.quiet(); wait > 0 {
		return wait, nil
	}
	if i, ok := p.nextSurplus(); ok {
		if err := p.delete(ctx, i); err != nil {
			return 0, err
		}
		p.deleted(s.Session)
		return p.cfg.Pace, nil
	}
	if p.Ready() < p.cfg.Size {
		took, err := p.add(ctx, s.Session)
		p.failuresEnd(err)
		return max(p.cfg.Pace, 4*took), err
	}
	return idle, nil
}

func (p *Pool) failuresEnd(err error) {
	if err == nil {
		p.failures = 0
	}
}

// quiet returns how long the pool must leave VPP to other work.
func (p *Pool) quiet() time.Duration {
	if p.cfg.Busy != nil && p.cfg.Busy() {
		return p.cfg.Pace
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cfg.Quiet - time.Since(p.claimed)
}

// nextSurplus returns an interface to delete: its pair was taken and it was not claimed in time, or more are ready than configured. It stays the next
// one until it is deleted.
func (p *Pool) nextSurplus() (item, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.surplus) > 0 {
		return p.surplus[0], true
	}
	for dev, t := range p.taken {
		if time.Since(t.since) > p.cfg.Unclaimed {
			delete(p.taken, dev)
			t.pod = "" // a pod has the pair
			p.surplus = append(p.surplus, t.item)
		}
	}
	for len(p.ready) > p.cfg.Size {
		p.surplus = append(p.surplus, p.ready[len(p.ready)-1])
		p.ready = p.ready[:len(p.ready)-1]
	}
	if len(p.surplus) == 0 {
		return item{}, false
	}
	return p.surplus[0], true
}

// deleted records that the interface that nextSurplus returned is gone.
func (p *Pool) deleted(session uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == session {
		p.surplus = p.surplus[1:]
	}
}

func (p *Pool) put(session uint64, i item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == session {
		p.ready = append(p.ready, i)
	}
}

// backOff logs the first of consecutive failures and returns how long to wait.
func (p *Pool) backOff(ctx context.Context, err error) time.Duration {
	if ctx.Err() != nil || errors.Is(err, conn.ErrDisconnected) {
		return p.cfg.Pace
	}
	if p.failures == 0 {
		p.log.Warn("cannot keep interfaces ready; pods will get new ones", "error", err)
	}
	p.failures++
	return min(time.Second<<min(p.failures-1, 6), maxBackOff)
}

func (p *Pool) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}
