package driver

import (
	"context"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
)

type counter int

func (c *counter) OnUpdate(any)                { *c++ }
func (c *counter) CompleteDeferredWork() error { return nil }

func benchDriver(b *testing.B) *Driver {
	b.Helper()
	d := New(Config{Name: "bench", Apply: func(context.Context) ApplyResult { return ApplyResult{} }})
	for range 6 {
		d.RegisterManager(new(counter))
	}
	d.AddSource("iface", make(chan any))
	d.Start()
	b.Cleanup(func() {
		if err := d.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return d
}

// BenchmarkMessage passes one message through the loop to six managers, without an apply.
func BenchmarkMessage(b *testing.B) {
	d := benchDriver(b)
	msg := &proto.HostMetadataUpdate{Hostname: "node"}
	b.ReportAllocs()
	for b.Loop() {
		if err := d.SendMessage(msg); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkInspect measures a round trip to the loop: the part of a single change's latency that is not in managers or Apply.
func BenchmarkInspect(b *testing.B) {
	d := benchDriver(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Inspect(func() {}); err != nil {
			b.Fatal(err)
		}
	}
}
