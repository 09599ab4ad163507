package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/core"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/lifecycle"
)

const (
	routeCount  = 10000
	routeWindow = 128
	routeRounds = 5
)

func routeDst(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
}

// benchRoutes adds and deletes the same routes in three ways, in turns.
func benchRoutes(ctx context.Context, e *env) error {
	socket, stop, err := routeTarget(ctx, e)
	if err != nil {
		return err
	}
	defer stop()
	raw, err := newRawClient(ctx, socket)
	if err != nil {
		return err
	}
	defer raw.close()
	sched, err := newRouteScheduler(ctx, socket)
	if err != nil {
		return err
	}
	defer sched.close()

	var scheduled, pipelined, single []time.Duration
	for range routeRounds {
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
	fmt.Printf("   adding %d: scheduler %s, raw pipelined %s, one at a time %s\n", routeCount, ms(s), ms(p), ms(o))
	scheduler := milliseconds("scheduler", s)
	e.ratio("scheduler to raw pipelined (aim <= 1.2)", scheduler, milliseconds("raw GoVPP, pipelined", p))
	e.ratio("one at a time to scheduler (aim >= 4)", milliseconds("raw GoVPP, one at a time", o), scheduler)
	return nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// routeTarget is a real VPP or the fake.
func routeTarget(ctx context.Context, e *env) (socket string, stop func(), err error) {
	if e.vpp {
		v, err := vpptest.Launch(ctx, vpptest.Options{HeapMB: 512})
		if err != nil {
			return "", nil, err
		}
		return v.Socket(), v.Stop, nil
	}
	dir, err := os.MkdirTemp("", "contiv-bench-")
	if err != nil {
		return "", nil, err
	}
	fake := vppfake.New(vppfake.Config{})
	socket = filepath.Join(dir, "api.sock")
	stop = func() { _ = fake.Close(); _ = os.RemoveAll(dir) }
	return socket, stop, fake.Listen(socket)
}

// rawClient is govpp and nothing else.
type rawClient struct {
	conn   *core.Connection
	stream api.Stream
}

func newRawClient(ctx context.Context, socket string) (*rawClient, error) {
	c, err := core.Connect(socketclient.NewVppClient(socket))
	if err != nil {
		return nil, err
	}
	stream, err := c.NewStream(ctx, core.WithRequestSize(routeWindow), core.WithReplySize(routeWindow))
	if err != nil {
		c.Disconnect()
		return nil, err
	}
	r := &rawClient{conn: c, stream: stream}
	// The first message of a stream determines the package of its messages.
	return r, r.exchange(rawRoute(0, false))
}

func (r *rawClient) close() {
	_ = r.stream.Close()
	r.conn.Disconnect()
}

func rawRoute(i int, add bool) *ip.IPRouteAddDelV2 {
	dst := routeDst(i)
	return &ip.IPRouteAddDelV2{IsAdd: add, Route: ip.IPRouteV2{
		Prefix: ip_types.Prefix{
			Address: ip_types.Address{Af: ip_types.ADDRESS_IP4, Un: ip_types.AddressUnionIP4(dst.Addr().As4())}, Len: 32,
		},
		NPaths: 1,
		Paths:  []fib_types.FibPath{{SwIfIndex: ^uint32(0), Type: fib_types.FIB_API_PATH_TYPE_DROP}},
	}}
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
	if rep, ok := m.(*ip.IPRouteAddDelV2Reply); !ok || rep.Retval != 0 {
		return fmt.Errorf("VPP answered %v", m)
	}
	return nil
}

func (r *rawClient) oneByOne(_ context.Context, add bool) error {
	for i := range routeCount {
		if err := r.exchange(rawRoute(i, add)); err != nil {
			return err
		}
	}
	return nil
}

// pipelined keeps a window of requests under way: one goroutine sends, one receives.
func (r *rawClient) pipelined(_ context.Context, add bool) error {
	room, received := make(chan struct{}, routeWindow), make(chan error, 1)
	go func() {
		for range routeCount {
			if err := r.receive(); err != nil {
				received <- err
				return
			}
			<-room
		}
		received <- nil
	}()
	for i := range routeCount {
		select {
		case room <- struct{}{}:
		case err := <-received:
			return err
		}
		if err := r.stream.SendMsg(rawRoute(i, add)); err != nil {
			return err
		}
	}
	return <-received
}

// routeScheduler is the real scheduler with the real VPP kinds.
type routeScheduler struct {
	s    *scheduler.Scheduler
	conn *conn.Conn
	jobs *lifecycle.Group
}

func newRouteScheduler(ctx context.Context, socket string) (*routeScheduler, error) {
	log := slog.New(slog.DiscardHandler)
	r := &routeScheduler{jobs: lifecycle.NewGroup(ctx, log), conn: conn.New(conn.Config{Socket: socket, Window: routeWindow}, log)}
	r.conn.Start(r.jobs)
	lane := r.conn.Lane()
	r.s = scheduler.New(scheduler.Config{Backends: []scheduler.Backend{lane}, Jobs: r.jobs}, log)
	if err := vpp.Register(r.s, vpp.Deps{Lane: lane, Index: iface.NewIndex()}); err != nil {
		return nil, err
	}
	if err := r.s.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(5 * time.Second); !r.conn.State().Connected(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return nil, errors.New("VPP did not answer")
		}
	}
	table := &vpp_l3.VrfTable{Label: "bench"}
	_, err := r.s.Commit(ctx, &txn.Txn{Kind: txn.FullResync, Values: []txn.KV{{Key: nb.VrfTableKey(0, table.Protocol), Value: table}}})
	return r, err
}

func (r *routeScheduler) close() {
	r.s.Close()
	r.conn.Close()
	_ = r.jobs.Stop(5 * time.Second)
}

// apply is what an event costs: the values are made, keyed, committed.
func (r *routeScheduler) apply(ctx context.Context, add bool) error {
	t := &txn.Txn{Values: make([]txn.KV, routeCount)}
	for i := range t.Values {
		dst := routeDst(i)
		t.Values[i].Key = nb.RouteKeyFor("", 0, dst, netip.Addr{})
		if add {
			t.Values[i].Value = &vpp_l3.Route{Type: vpp_l3.Route_DROP, DstNetwork: dst.String()}
		}
	}
	_, err := r.s.Commit(ctx, t)
	return err
}
