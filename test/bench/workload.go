package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/core"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/test/testbed/poll"
)

const (
	workloadWindow = 128
	workloadRounds = 5
)

// workload describes objects that are programmed into VPP, by the scheduler and by raw requests.
type workload struct {
	what     string
	plugin   bool // VPP has our plugin
	objects  int
	messages int // to VPP, for all of them
	// request returns the i-th message that adds objects; to delete them, messages are sent in the opposite
	// order.
	request func(i int, add bool) api.Message
	value   func(i int) (key string, v proto.Message)
	base    []txn.KV // values that exist before
}

// run adds and deletes the same objects in three ways, in turns.
func (w *workload) run(ctx context.Context, e *env) error {
	socket, stop, err := w.target(ctx, e)
	if err != nil {
		return err
	}
	defer stop()
	raw, err := newRawClient(ctx, socket, w)
	if err != nil {
		return err
	}
	defer raw.close()
	sched, err := newWorkloadScheduler(ctx, socket, w)
	if err != nil {
		return err
	}
	defer sched.close()

	var scheduled, pipelined, single []time.Duration
	for range workloadRounds {
		for _, way := range []struct {
			run  func(ctx context.Context, add bool) error
			into *[]time.Duration
		}{{sched.apply, &scheduled}, {raw.pipelined, &pipelined}, {raw.oneByOne, &single}} {
			start := time.Now()
			if err := way.run(ctx, true); err != nil {
				return err
			}
			*way.into = append(*way.into, time.Since(start))
			if err := way.run(ctx, false); err != nil {
				return err
			}
		}
	}
	s, p, o := median(scheduled), median(pipelined), median(single)
	fmt.Printf("   adding %d %s: scheduler %s, raw pipelined %s, one at a time %s\n", w.objects, w.what, ms(s), ms(p), ms(o))
	scheduler := milliseconds("scheduler", s)
	e.ratio("scheduler to raw pipelined (aim <= 1.2)", scheduler, milliseconds("raw GoVPP, pipelined", p))
	e.ratio("one at a time to scheduler (aim >= 4)", milliseconds("raw GoVPP, one at a time", o), scheduler)
	return nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// target returns a real VPP or the fake.
func (w *workload) target(ctx context.Context, e *env) (socket string, stop func(), err error) {
	if e.vpp {
		v, err := vpptest.Launch(ctx, vpptest.Options{HeapMB: 1024, Buffers: 16384, Plugin: w.plugin})
		if err != nil {
			return "", nil, err
		}
		return v.Socket(), v.Stop, nil
	}
	dir, err := os.MkdirTemp("", "contiv-bench-")
	if err != nil {
		return "", nil, err
	}
	fake := vppfake.New(vppfake.Config{Plugin: w.plugin})
	socket = filepath.Join(dir, "api.sock")
	stop = func() { _ = fake.Close(); _ = os.RemoveAll(dir) }
	return socket, stop, fake.Listen(socket)
}

// rawClient uses govpp without the scheduler.
type rawClient struct {
	w      *workload
	conn   *core.Connection
	stream api.Stream
}

func newRawClient(ctx context.Context, socket string, w *workload) (*rawClient, error) {
	c, err := core.Connect(socketclient.NewVppClient(socket))
	if err != nil {
		return nil, err
	}
	stream, err := c.NewStream(ctx, core.WithRequestSize(workloadWindow), core.WithReplySize(workloadWindow))
	if err != nil {
		c.Disconnect()
		return nil, err
	}
	r := &rawClient{w: w, conn: c, stream: stream}
	// The first message of a stream determines the package of its messages.
	return r, errors.Join(r.exchange(w.request(0, true)), r.exchange(w.request(0, false)))
}

func (r *rawClient) close() {
	_ = r.stream.Close()
	r.conn.Disconnect()
}

// message returns the i-th message.
func (r *rawClient) message(i int, add bool) api.Message {
	if !add {
		i = r.w.messages - 1 - i
	}
	return r.w.request(i, add)
}

func (r *rawClient) exchange(req api.Message) error {
	if err := r.stream.SendMsg(req); err != nil {
		return err
	}
	return r.receive()
}

func (r *rawClient) receive() error {
	m, err := r.stream.RecvMsg()
	if err != nil {
		return err
	}
	if rv, ok := retval(m); !ok || rv != 0 {
		return fmt.Errorf("VPP replied with %s %v", m.GetMessageName(), m)
	}
	return nil
}

func (r *rawClient) oneByOne(_ context.Context, add bool) error {
	for i := range r.w.messages {
		if err := r.exchange(r.message(i, add)); err != nil {
			return err
		}
	}
	return nil
}

// pipelined keeps a window of requests in flight: one goroutine sends, one receives.
func (r *rawClient) pipelined(_ context.Context, add bool) error {
	room, received := make(chan struct{}, workloadWindow), make(chan error, 1)
	go func() {
		for range r.w.messages {
			if err := r.receive(); err != nil {
				received <- err
				return
			}
			<-room
		}
		received <- nil
	}()
	for i := range r.w.messages {
		select {
		case room <- struct{}{}:
		case err := <-received:
			return err
		}
		if err := r.stream.SendMsg(r.message(i, add)); err != nil {
			return err
		}
	}
	return <-received
}

// workloadScheduler is the real scheduler with the real VPP kinds.
type workloadScheduler struct {
	w    *workload
	s    *scheduler.Scheduler
	conn *conn.Conn
	jobs *lifecycle.Group
}

func newWorkloadScheduler(ctx context.Context, socket string, w *workload) (*workloadScheduler, error) {
	log := slog.New(slog.DiscardHandler)
	r := &workloadScheduler{w: w, jobs: lifecycle.NewGroup(ctx, log), conn: conn.New(conn.Config{Socket: socket, Window: workloadWindow}, log)}
	r.conn.Start(r.jobs)
	lane := r.conn.Lane()
	r.s = scheduler.New(scheduler.Config{Backends: []scheduler.Backend{lane}, Jobs: r.jobs}, log)
	if err := vpp.Register(r.s, vpp.Deps{Lane: lane, Index: iface.NewIndex()}); err != nil {
		return nil, err
	}
	if err := r.s.Start(); err != nil {
		return nil, err
	}
	if err := r.connected(ctx); err != nil {
		return nil, err
	}
	_, err := r.s.Commit(ctx, &txn.Txn{Kind: txn.FullResync, Values: w.base})
	return r, err
}

// connected waits until VPP answers.
func (r *workloadScheduler) connected(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return poll.Until(ctx, 5*time.Millisecond, func() error {
		if !r.conn.State().Connected() {
			return errors.New("VPP did not respond")
		}
		return nil
	})
}

func (r *workloadScheduler) close() {
	r.s.Close()
	r.conn.Close()
	_ = r.jobs.Stop(5 * time.Second)
}

// apply does the work of an event: the values and their keys are made, and committed.
func (r *workloadScheduler) apply(ctx context.Context, add bool) error {
	t := &txn.Txn{Values: make([]txn.KV, r.w.objects)}
	for i := range t.Values {
		var v proto.Message
		if t.Values[i].Key, v = r.w.value(i); add {
			t.Values[i].Value = v
		}
	}
	_, err := r.s.Commit(ctx, t)
	return err
}
