package pool

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"sync"
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
	c := conn.New(conn.Config{Socket: v.Socket(), Require: vpp.Messages()}, log)
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
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			a.t.Fatalf("no %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
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

func tap(name string) *vpp_interfaces.Interface {
	return &vpp_interfaces.Interface{
		Name: name, Type: vpp_interfaces.Interface_TAP, Enabled: true, PhysAddress: "02:fe:00:00:00:01",
		Link: &vpp_interfaces.Interface_Tap{Tap: &vpp_interfaces.TapLink{}},
	}
}

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

func TestTaps(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{Vhostshim: true})
	cfg := Config{Size: 3, Quiet: 20 * time.Millisecond, Pace: time.Millisecond}
	a := start(t, v, cfg)
	full := func() bool { return a.pool.Ready() == 3 }
	a.await("full pool", full)
	t.Cleanup(func() { cleanDevices(t, tapPrefix) })

	made := a.sent("tap_create_v3")
	took := a.commit(txn.Update, tap("pod-1"))
	t.Logf("an interface from the pool: %v", took)
	dev, ok := a.idx.TapDevice("pod-1")
	if !ok || !strings.HasPrefix(dev, tapPrefix) {
		t.Errorf("device %q is not from the pool", dev)
	}
	a.await("full pool again", full)
	if n := a.sent("tap_create_v3") - made; n != 1 {
		t.Errorf("%d TAPs were made for one that was taken", n)
	}
	// an interface that differs from those of the pool is made
	special := tap("pod-2")
	special.GetTap().RxRingSize = 1024
	took = a.commit(txn.Update, special)
	t.Logf("an interface not from the pool: %v", took)
	if dev, ok := a.idx.TapDevice("pod-2"); ok { // it outlives the VPP that is killed below
		t.Cleanup(func() { cleanDevices(t, dev) })
	}
	if a.pool.Ready() != 3 {
		t.Error("a TAP of another size came from the pool")
	}

	// a restarted agent finds them
	a.stop()
	b := start(t, v, cfg)
	b.await("pool found", func() bool { return b.pool.Ready() == 3 })
	if n := b.sent("tap_create_v3"); n != 0 {
		t.Errorf("the restarted agent made %d TAPs", n)
	}
	b.commit(txn.FullResync, tap("pod-1"), special)
	if n := b.conn.Writes(); n != 0 {
		t.Errorf("the restarted agent wrote %d times", n)
	}

	// a restarted VPP gets them again, on the remaining devices
	before := len(devices(t, tapPrefix))
	if err := v.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.await("new session", func() bool { s := b.conn.State(); return s.Connected() && s.Session > 1 })
	if _, _, ok := b.pool.ClaimTap(iface.TapSpec{}); ok && b.pool.Ready() == 3 {
		t.Error("the pool hands out what a VPP had that is gone")
	}
	b.await("pool filled again", func() bool { return b.pool.Ready() == 3 })
	if after := len(devices(t, tapPrefix)); after > before+1 {
		t.Errorf("%d devices became %d", before, after)
	}
	b.commit(txn.FullResync)
	b.stop()
	if err := b.pool.Clean(t.Context()); err != nil {
		t.Error(err)
	}
	if out, _ := v.CLI("show interface"); strings.Contains(out, "tap") {
		t.Errorf("VPP still has TAPs:\n%s", out)
	}
}

func cleanDevices(t *testing.T, prefix string) {
	for _, d := range devices(t, prefix) {
		_ = exec.Command("ip", "link", "del", d).Run()
	}
}

// pairs makes veth pairs with the ip command.
type pairs struct {
	mu    sync.Mutex
	n     int
	ready []Veth
}

func (p *pairs) List() ([]Veth, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Veth(nil), p.ready...), nil
}

func (p *pairs) Make() (Veth, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := Veth{Pod: fmt.Sprintf("cvpp%d", p.n), Host: fmt.Sprintf("cvph%d", p.n)}
	p.n++
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
	pairsBefore := veths.n
	if err := v.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.await("new session", func() bool { s := b.conn.State(); return s.Connected() && s.Session > 1 })
	b.await("pool filled again", func() bool { return b.pool.Ready() == 2 })
	if veths.n != pairsBefore {
		t.Errorf("%d new pairs were made", veths.n-pairsBefore)
	}
	b.commit(txn.FullResync)
	b.stop()
	if err := b.pool.Clean(t.Context()); err != nil {
		t.Error(err)
	}
	if left, _ := veths.List(); len(left) > 0 {
		t.Errorf("pairs are left: %v", left)
	}
}

func TestTapsWithoutVhost(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{})
	a := start(t, v, Config{Size: 1, Quiet: time.Millisecond})
	a.await("attempt", func() bool { return a.sent("tap_create_v3") > 0 })
	time.Sleep(300 * time.Millisecond)
	if n := a.sent("tap_create_v3"); n > 2 && a.pool.Ready() == 0 {
		t.Errorf("%d attempts within a third of a second", n)
	}
}

func TestBusy(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{Vhostshim: true})
	var mu sync.Mutex
	busy := true
	a := start(t, v, Config{Size: 1, Quiet: time.Millisecond, Pace: time.Millisecond, Busy: func() bool {
		mu.Lock()
		defer mu.Unlock()
		return busy
	}})
	time.Sleep(200 * time.Millisecond)
	if a.pool.Ready() != 0 {
		t.Error("the pool is filled while a transaction runs")
	}
	mu.Lock()
	busy = false
	mu.Unlock()
	a.await("full pool", func() bool { return a.pool.Ready() == 1 })
	a.stop()
	if err := a.pool.Clean(t.Context()); err != nil {
		t.Error(err)
	}
}
