package vppfake_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/codec"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// rawClient implements the socket protocol without govpp, whose client is the bottleneck of any comparison.
type rawClient struct {
	conn  net.Conn
	r     *bufio.Reader
	index uint32
	ids   map[string]uint16
}

func dialRaw(tb testing.TB, socket string) *rawClient {
	tb.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	c := &rawClient{conn: conn, r: bufio.NewReaderSize(conn, 64<<10), ids: map[string]uint16{}}
	msg, err := codec.EncodeMsg(&memclnt.SockclntCreate{Name: "raw"}, 15)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := conn.Write(frame(msg)); err != nil {
		tb.Fatal(err)
	}
	reply := &memclnt.SockclntCreateReply{}
	if err := codec.DecodeMsg(c.read(tb), reply); err != nil {
		tb.Fatal(err)
	}
	c.index = reply.Index
	for _, e := range reply.MessageTable {
		c.ids[e.Name] = e.Index
	}
	return c
}

// frame puts the msgbuf_t header before a message.
func frame(msg []byte) []byte {
	b := make([]byte, 16, 16+len(msg))
	binary.BigEndian.PutUint32(b[8:], uint32(len(msg)))
	return append(b, msg...)
}

// encode returns the request as a frame.
func (c *rawClient) encode(tb testing.TB, m api.Message, context uint32) []byte {
	tb.Helper()
	msg, err := codec.EncodeMsg(m, c.ids[m.GetMessageName()+"_"+m.GetCrcString()])
	if err != nil {
		tb.Fatal(err)
	}
	binary.BigEndian.PutUint32(msg[2:], c.index)
	binary.BigEndian.PutUint32(msg[6:], context)
	return frame(msg)
}

func (c *rawClient) read(tb testing.TB) []byte {
	tb.Helper()
	var header [16]byte
	if _, err := io.ReadFull(c.r, header[:]); err != nil {
		tb.Fatal(err)
	}
	msg := make([]byte, binary.BigEndian.Uint32(header[8:]))
	if _, err := io.ReadFull(c.r, msg); err != nil {
		tb.Fatal(err)
	}
	return msg
}

func benchRoute(n int) *ip.IPRouteAddDelV2 {
	q := &ip.IPRouteAddDelV2{IsAdd: true, Route: ip.IPRouteV2{NPaths: 1, Paths: []fib_types.FibPath{{SwIfIndex: 0, Weight: 1}}}}
	q.Route.Prefix = ip_types.Prefix{Len: 32}
	q.Route.Prefix.Address.Un.SetIP4(ip_types.IP4Address{10, byte(n >> 16), byte(n >> 8), byte(n)})
	return q
}

// BenchmarkRouteAdd measures the speed of the fake alone: routes added over the socket, pipelined.
func BenchmarkRouteAdd(b *testing.B) {
	f := startFake(b, vppfake.Config{})
	c := dialRaw(b, f.Socket())
	const batch, batches = 256, 400
	var requests [batches][]byte
	for n := range batches * batch {
		requests[n/batch] = append(requests[n/batch], c.encode(b, benchRoute(n), uint32(n))...)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += batch {
		if _, err := c.conn.Write(requests[n/batch%batches]); err != nil {
			b.Fatal(err)
		}
		for range batch {
			c.read(b)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "routes/s")
}

// BenchmarkRouteAddStream measures the same through a govpp stream.
func BenchmarkRouteAddStream(b *testing.B) {
	f := startFake(b, vppfake.Config{})
	conn := dial(b, f.Socket())
	stream, err := conn.NewStream(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	defer stream.Close()
	b.ResetTimer()
	inFlight := 0
	receive := func() {
		if _, err := stream.RecvMsg(); err != nil {
			b.Fatal(err)
		}
		inFlight--
	}
	for n := range b.N {
		if err := stream.SendMsg(benchRoute(n)); err != nil {
			b.Fatal(err)
		}
		if inFlight++; inFlight >= 64 {
			receive()
		}
	}
	for inFlight > 0 {
		receive()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "routes/s")
}
