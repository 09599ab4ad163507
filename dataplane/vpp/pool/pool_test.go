package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/test/testbed/poll"
)

// agent is an agent with the VPP descriptors and a pool.
type agent struct {
	t    *testing.T
	conn *conn.Conn
	pool *Pool
	s    *scheduler.Scheduler
	idx  *iface.Index
	stop func()
}

func start(t *testing.T, v *vpptest.VPP, cfg Config) *agent {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(context.Background(), log)
	// On a busy machine VPP may take seconds to create an af_packet interface.
	c := conn.New(conn.Config{Socket: v.Socket(), Require: vpp.Messages(), RequestTimeout: 20 * time.Second, HealthTimeout: 20 * time.Second}, log)
	c.Start(jobs)
	a := &agent{t: t, conn: c, idx: iface.NewIndex(), pool: New(c, cfg)}
	lane := c.Lane()
	a.s = scheduler.New(scheduler.Config{Backends: []scheduler.Backend{lane}, Jobs: jobs}, log)
	if err := vpp.Register(a.s, vpp.Deps{Lane: lane, Index: a.idx, Interfaces: iface.Deps{Pool: a.pool}}); err != nil {
		t.Fatal(err)
	}
	if err := a.s.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	jobs.Go("vpp pool", func(jobCtx context.Context) error {
		defer close(ended)
		defer context.AfterFunc(jobCtx, cancel)()
		return a.pool.Run(ctx)
	})
	var once sync.Once
	a.stop = func() {
		once.Do(func() {
			cancel()
			<-ended
		})
	}
	t.Cleanup(func() {
		a.stop()
		a.s.Close()
		c.Close()
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	a.await("a connection to VPP", func() bool { return c.State().Connected() })
	return a
}

func (a *agent) await(what string, ok func() bool) {
	a.t.Helper()
	poll.Await(a.t, what, 20*time.Second, ok)
}

func (a *agent) commit(kind txn.Kind, values ...proto.Message) time.Duration {
	a.t.Helper()
	var all []txn.KV
	for _, v := range values {
		key, err := nb.Key(v)
		if err != nil {
			a.t.Fatal(err)
		}
		all = append(all, txn.KV{Key: key, Value: v})
	}
	begin := time.Now()
	rec, err := a.s.Commit(a.t.Context(), &txn.Txn{Kind: kind, Values: all, NoRetry: true})
	if err != nil || len(rec.Pending) > 0 {
		a.t.Fatalf("%v, pending %s\n%s", err, rec.Pending, rec)
	}
	return time.Since(begin)
}

func (a *agent) sent(message string) uint64 { return a.conn.Stats().Sent[message] }

func devices(t *testing.T, prefix string) (names []string) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if strings.HasPrefix(d.Name, prefix) {
			names = append(names, d.Name)
		}
	}
	return names
}

func cleanDevices(t *testing.T, prefix string) {
	for _, d := range devices(t, prefix) {
		_ = exec.Command("ip", "link", "del", d).Run()
	}
}

// pairs makes veth pairs with the ip command.
type pairs struct {
	mu    sync.Mutex
	tried []time.Time // calls of Make
	err   error       // of Make
	ready []Veth
}

func (p *pairs) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *pairs) attempts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.tried)
}

func (p *pairs) List() ([]Veth, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Veth(nil), p.ready...), nil
}

func (p *pairs) Make() (Veth, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := Veth{Pod: fmt.Sprintf("cvpp%d", len(p.tried)), Host: fmt.Sprintf("cvph%d", len(p.tried))}
	p.tried = append(p.tried, time.Now())
	if p.err != nil {
		return Veth{}, p.err
	}
	out, err := exec.Command("sh", "-c", fmt.Sprintf("ip link add %s type veth peer name %s && ip link set %s up",
		v.Host, v.Pod, v.Host)).CombinedOutput()
	if err != nil {
		return Veth{}, fmt.Errorf("%w: %s", err, out)
	}
	p.ready = append(p.ready, v)
	return v, nil
}

func (p *pairs) Delete(v Veth) error {
	p.mark(v.Host)
	_ = exec.Command("ip", "link", "del", v.Host).Run()
	return nil
}

// mark records that a pair was taken.
func (p *pairs) mark(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, v := range p.ready {
		if v.Host == host {
			p.ready = append(p.ready[:i], p.ready[i+1:]...)
			return
		}
	}
}

func TestAfPackets(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{})
	veths := &pairs{}
	t.Cleanup(func() { cleanDevices(t, "cvph") })
	cfg := Config{Size: 2, Veths: veths, Quiet: 20 * time.Millisecond, Pace: time.Millisecond, Unclaimed: 300 * time.Millisecond}
	a := start(t, v, cfg)
	full := func() bool { return a.pool.Ready() == 2 }
	a.await("full pool", full)

	_, host, ok := a.pool.TakeVeth()
	if !ok {
		t.Fatal("no pair")
	}
	veths.mark(host)
	pod := &vpp_interfaces.Interface{
		Name: "pod-1", Type: vpp_interfaces.Interface_AF_PACKET, Enabled: true, PhysAddress: "02:fe:00:00:00:01",
		Link: &vpp_interfaces.Interface_Afpacket{Afpacket: &vpp_interfaces.AfpacketLink{HostIfName: host}},
	}
	made := a.sent("af_packet_create_v3")
	t.Logf("an interface from the pool: %v", a.commit(txn.Update, pod))
	if a.sent("af_packet_create_v3") != made && a.pool.Ready() < 2 {
		t.Error("the interface did not come from the pool")
	}
	a.await("full pool again", full)

	// a pair that is taken and never used
	_, host, _ = a.pool.TakeVeth()
	veths.mark(host)
	a.await("end of the unclaimed interface", func() bool {
		out, _ := v.CLI("show interface")
		return !strings.Contains(out, host)
	})
	if _, ok := a.pool.ClaimAfPacket(host); ok {
		t.Error("an interface that is gone was handed out")
	}

	a.await("full pool", full)
	a.stop()
	b := start(t, v, cfg)
	b.await("pool found", func() bool { return b.pool.Ready() == 2 })
	b.commit(txn.FullResync, pod)
	if n := b.conn.Writes(); n != 0 {
		t.Errorf("the restarted agent wrote %d times", n)
	}
	pairsBefore := veths.attempts()
	if err := v.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.await("new session", func() bool { s := b.conn.State(); return s.Connected() && s.Session > 1 })
	b.await("pool filled again", func() bool { return b.pool.Ready() == 2 })
	if veths.attempts() != pairsBefore {
		t.Errorf("%d new pairs were made", veths.attempts()-pairsBefore)
	}
	b.stop()

	// an agent with a smaller pool removes pairs
	c := start(t, v, Config{Size: 1, Veths: veths, Quiet: time.Millisecond, Pace: time.Millisecond})
	c.await("removal of a pair", func() bool { left, _ := veths.List(); return len(left) == 1 })
	c.commit(txn.FullResync)
}

// TestFailingPairs checks that the pool waits between attempts, and is filled once pairs can be made.
func TestFailingPairs(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{})
	veths := &pairs{}
	t.Cleanup(func() { cleanDevices(t, "cvph") })
	veths.fail(errors.New("no room"))
	a := start(t, v, Config{Size: 1, Veths: veths, Quiet: time.Millisecond, Pace: time.Millisecond})
	a.await("two attempts", func() bool { return veths.attempts() >= 2 })
	veths.mu.Lock()
	if wait := veths.tried[1].Sub(veths.tried[0]); wait < time.Second {
		t.Errorf("the second attempt came %s after the first", wait)
	}
	veths.mu.Unlock()
	veths.fail(nil)
	a.await("full pool", func() bool { return a.pool.Ready() == 1 })
}

// TestBusy checks that the pool makes nothing while a transaction runs.
func TestBusy(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{})
	veths := &pairs{}
	t.Cleanup(func() { cleanDevices(t, "cvph") })
	var asked atomic.Int64
	var idle atomic.Bool
	a := start(t, v, Config{Size: 1, Veths: veths, Quiet: time.Millisecond, Pace: time.Millisecond, Busy: func() bool {
		asked.Add(1)
		return !idle.Load()
	}})
	a.await("pool that has checked for transactions", func() bool { return asked.Load() > 20 })
	if veths.attempts() != 0 {
		t.Error("the pool is filled while a transaction runs")
	}
	idle.Store(true)
	a.await("full pool", func() bool { return a.pool.Ready() == 1 })
}

// racingVeths is a source of pairs whose List a pod overtakes.
type racingVeths struct {
	Veths
	list func() []Veth
}

func (v racingVeths) List() ([]Veth, error) { return v.list(), nil }

func (racingVeths) Make() (Veth, error) { return Veth{Pod: "new", Host: "new-host"}, nil }

// TestPairTakenDuringList: a pair that a pod takes and claims after the list was read is not used again.
func TestPairTakenDuringList(t *testing.T) {
	var p *Pool
	veths := racingVeths{list: func() []Veth {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ready = nil // a pod has taken and claimed it
		return []Veth{{Pod: "ready", Host: "ready-host"}}
	}}
	p = New(conn.New(conn.Config{Socket: filepath.Join(t.TempDir(), "none")}, slog.New(slog.DiscardHandler)), Config{Size: 1, Veths: veths})
	p.ready = []item{{index: 1, host: "ready-host", pod: "ready"}}
	if v, err := p.freePair(); err != nil || v.Host != "new-host" {
		t.Errorf("pair %v, %v; want the new one", v, err)
	}
	if v, err := p.freePair(); err != nil || v.Host != "ready-host" {
		t.Errorf("pair %v, %v; want the one without an interface", v, err)
	}
}

// TestSurplusIsKept: an interface that could not be deleted is deleted later, and is not handed out meanwhile.
func TestSurplusIsKept(t *testing.T) {
	p := New(conn.New(conn.Config{Socket: filepath.Join(t.TempDir(), "none")}, slog.New(slog.DiscardHandler)), Config{Size: 1})
	p.session = 3
	p.ready = []item{{index: 1, host: "h1", pod: "p1"}, {index: 2, host: "h2", pod: "p2"}}
	p.taken["h3"] = takenItem{item: item{index: 3, host: "h3", pod: "p3"}, since: time.Now().Add(-time.Hour)}
	var deleted []item
	for range 2 {
		i, ok := p.nextSurplus()
		again, _ := p.nextSurplus() // the deletion of the first one has failed
		if !ok || again != i {
			t.Fatalf("%v, then %v", i, again)
		}
		deleted = append(deleted, i)
		p.deleted(2) // of an earlier session
		p.deleted(3)
	}
	if want := []item{{index: 3, host: "h3"}, {index: 2, host: "h2", pod: "p2"}}; !slices.Equal(deleted, want) {
		t.Errorf("deleted %v, want %v", deleted, want)
	}
	if i, ok := p.nextSurplus(); ok || p.Ready() != 1 || len(p.taken) != 0 {
		t.Errorf("%v is left; %d ready, %d taken", i, p.Ready(), len(p.taken))
	}
}
