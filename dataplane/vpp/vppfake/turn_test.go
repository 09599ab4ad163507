package vppfake_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/ip"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/internal/lifecycle"
)

// TestTurn tests that VPP without workers handles requests that arrive together before the next packet: no packet is processed between them.
func TestTurn(t *testing.T) {
	f, api := client(t, vppfake.Config{})
	s := newPacketScript(&script{t: t, conn: api})
	s.addr(1, "10.1.0.1/24")
	s.addr(2, "10.2.0.1/24")
	s.host(2, "10.2.0.2", 2)
	s.route(true, 0, "10.50.0.0/16", via("10.2.0.2", 2))
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(t.Context(), log)
	c := conn.New(conn.Config{Socket: f.Socket()}, log)
	c.Start(jobs)
	t.Cleanup(func() { c.Close(); _ = jobs.Stop(time.Minute) })
	for end := time.Now().Add(10 * time.Second); !c.State().Connected(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the fake at %s does not respond", filepath.Base(f.Socket()))
		}
	}
	const moments = 500
	done := make(chan struct{})
	go func() {
		defer close(done)
		lane := c.Lane()
		for range moments {
			lane.WriteAtOnce(256, func() {
				for _, add := range []bool{false, true} {
					req := s.routeMsg(add, false, 0, "10.50.0.0/16", []fibPath{via("10.2.0.2", 2)})
					conn.Call(lane, req, func(_ *ip.IPRouteAddDelV2Reply, err error) {
						if err != nil {
							t.Error(err)
						}
					})
				}
			})
			lane.Flush(context.Background())
		}
	}()
	lost, packets := 0, 0
	for ; ; packets++ {
		r, err := f.Send("pg0", udp(1, 0, "10.1.0.2", "10.50.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := r.Delivered(); !ok {
			lost++
		}
		select {
		case <-done:
			if lost > 0 {
				t.Errorf("%d of %d packets saw the route missing, which it was %d times", lost, packets, moments)
			}
			return
		default:
		}
	}
}
