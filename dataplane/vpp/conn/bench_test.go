package conn_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/core"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

const benchRoutes = 10000

func routeReq(i int, add bool) *ip.IPRouteAddDelV2 {
	req := &ip.IPRouteAddDelV2{IsAdd: add, Route: ip.IPRouteV2{
		Prefix: ip_types.Prefix{
			Address: ip_types.Address{Af: ip_types.ADDRESS_IP4,
				Un: ip_types.AddressUnionIP4(ip_types.IP4Address{10, byte(i >> 16), byte(i >> 8), byte(i)})},
			Len: 32,
		},
		NPaths: 1,
		Paths:  []fib_types.FibPath{{SwIfIndex: ^uint32(0), Type: fib_types.FIB_API_PATH_TYPE_DROP}},
	}}
	return req
}

// BenchmarkRoutes compares ways to add, and then delete, 10,000 routes. ns/op is per route.
func BenchmarkRoutes(b *testing.B) {
	v := vpptest.Start(b, vpptest.Options{FewPlugins: []string{}})
	for _, window := range []int{16, 32, 64, 128, 256} {
		b.Run(fmt.Sprintf("raw/%d", window), func(b *testing.B) { benchRaw(b, v, window) })
		b.Run(fmt.Sprintf("lane/%d", window), func(b *testing.B) { benchLane(b, v, window) })
	}
	b.Run("invoke", func(b *testing.B) { benchInvoke(b, v) })
}

func report(b *testing.B, ops int, took time.Duration) {
	b.ReportMetric(float64(took.Nanoseconds())/float64(ops), "ns/route")
	b.ReportMetric(float64(ops)/took.Seconds(), "routes/s")
}

func benchLane(b *testing.B, v *vpptest.VPP, window int) {
	c := startConn(b, conn.Config{Socket: v.Socket(), Window: window})
	l := c.Lane()
	b.ReportAllocs()
	ops := 0
	start := time.Now()
	for b.Loop() {
		for _, add := range []bool{true, false} {
			for i := range benchRoutes {
				conn.Call(l, routeReq(i, add), func(_ *ip.IPRouteAddDelV2Reply, err error) {
					if err != nil {
						b.Fatal(err)
					}
					ops++
				})
			}
			l.Flush(b.Context())
		}
	}
	report(b, ops, time.Since(start))
}

func benchRaw(b *testing.B, v *vpptest.VPP, window int) {
	connection, err := core.Connect(socketclient.NewVppClient(v.Socket()))
	if err != nil {
		b.Fatal(err)
	}
	defer connection.Disconnect()
	stream, err := connection.NewStream(b.Context(), core.WithReplySize(window), core.WithRequestSize(window))
	if err != nil {
		b.Fatal(err)
	}
	defer stream.Close()
	// a Stream has the package of its messages only after the first SendMsg, so a faster answer fails
	if err := stream.SendMsg(routeReq(0, false)); err != nil {
		b.Fatal(err)
	}
	if _, err := stream.RecvMsg(); err != nil {
		b.Log(err)
	}
	b.ReportAllocs()
	ops := 0
	start := time.Now()
	for b.Loop() {
		for _, add := range []bool{true, false} {
			rawRound(b, stream, window, add)
			ops += benchRoutes
		}
	}
	report(b, ops, time.Since(start))
}

func rawRound(b *testing.B, stream api.Stream, window int, add bool) {
	room := make(chan struct{}, window)
	done := make(chan error, 1)
	go func() {
		for range benchRoutes {
			m, err := stream.RecvMsg()
			if err == nil && m.(*ip.IPRouteAddDelV2Reply).Retval != 0 {
				err = errors.New("refused")
			}
			if err != nil {
				done <- err
				return
			}
			<-room
		}
		done <- nil
	}()
	for i := range benchRoutes {
		select {
		case room <- struct{}{}:
		case err := <-done:
			b.Fatal(err)
		}
		if err := stream.SendMsg(routeReq(i, add)); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

func benchInvoke(b *testing.B, v *vpptest.VPP) {
	c := startConn(b, conn.Config{Socket: v.Socket()})
	ops := 0
	start := time.Now()
	for b.Loop() {
		for _, add := range []bool{true, false} {
			for i := range benchRoutes / 10 {
				if err := c.Invoke(context.Background(), routeReq(i, add), nil); err != nil {
					b.Fatal(err)
				}
				ops++
			}
		}
	}
	report(b, ops, time.Since(start))
}

// BenchmarkDump reads 10,000 routes.
func BenchmarkDump(b *testing.B) {
	v := vpptest.Start(b, vpptest.Options{FewPlugins: []string{}})
	c := startConn(b, conn.Config{Socket: v.Socket()})
	l := c.Lane()
	for i := range benchRoutes {
		l.Request(routeReq(i, true), func(_ api.Message, err error) {
			if err != nil {
				b.Fatal(err)
			}
		})
	}
	l.Flush(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		conn.Dump(l, new(ip.IPRouteV2Dump), func(*ip.IPRouteV2Details) { n++ }, func(err error) {
			if err != nil {
				b.Fatal(err)
			}
		})
		l.Flush(b.Context())
		if n < benchRoutes {
			b.Fatal(n)
		}
	}
}
