package services

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
	"contiv.dev/vswitch/dataplane/proto"
)

// benchService returns service i with n backends; with other the last of them is a different one.
func benchService(b *testing.B, i, n int, other bool) *lb.Service {
	g := &proto.BalancedGroup{Ports: []uint32{8080}}
	for j := range n {
		at := uint32(0x0a000000 + i*n + j)
		if other && j == n-1 {
			at += 0x00800000
		}
		g.Addresses = binary.BigEndian.AppendUint32(g.Addresses, at)
	}
	vip := binary.BigEndian.AppendUint32(nil, uint32(0x0a600000+i))
	s, err := lb.Parse(&proto.BalancedServiceUpdate{Namespace: "default", Name: fmt.Sprintf("service-%d", i),
		Ports: []*proto.BalancedPort{{Name: "http", Protocol: 6, Everywhere: g,
			Frontends: []*proto.BalancedFrontend{{Address: vip, Port: 80}}}}})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func openBench(b *testing.B) (*Services, *nettest.NS) {
	ns := nettest.New(b)
	s, err := Open(Options{NS: ns.Namespace})
	if err != nil {
		b.Fatal(err)
	}
	s.SetPods(table.IPv4, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/9")})
	return s, ns
}

func applyBench(b *testing.B, s *Services, writes bool) {
	if res := s.Apply(context.Background()); res.Err != nil || len(res.Broken) > 0 || (res.Writes > 0) != writes {
		b.Fatalf("%+v", res)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// slab returns the size of the kernel's memory for objects.
func slab() (kB int64) {
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "SUnreclaim: %d kB", &kB)
	}
	return kB
}

// BenchmarkServicesStart is a start with 5,000 services of 50 endpoints; ms/restart is a start that finds everything in place. ms/kernel is
// the kernel's part of the start: the minimum for a writer of these elements.
func BenchmarkServicesStart(b *testing.B) {
	const services, endpoints = 5000, 50
	var kernel, restart time.Duration
	for range b.N {
		b.StopTimer()
		list := make([]*lb.Service, services)
		for i := range list {
			list[i] = benchService(b, i, endpoints, false)
		}
		s, ns := openBench(b)
		before, kernelBefore := heap(), slab()
		b.StartTimer()
		for _, svc := range list {
			s.Set(svc)
		}
		applyBench(b, s, true)
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/(services*endpoints), "agent-B/endpoint")
		b.ReportMetric(float64(slab()-kernelBefore)*1024/(services*endpoints), "kernel-B/endpoint")
		next, err := Open(Options{NS: ns.Namespace})
		if err != nil {
			b.Fatal(err)
		}
		next.SetPods(table.IPv4, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/9")})
		for _, svc := range list {
			next.Set(svc)
		}
		begin := time.Now()
		applyBench(b, next, false)
		restart += time.Since(begin)
		kernel += floor(b, next)
		s.Close()
		next.Close()
	}
	b.ReportMetric(float64(restart.Milliseconds())/float64(b.N), "ms/restart")
	b.ReportMetric(float64(kernel.Milliseconds())/float64(b.N), "ms/kernel")
}

// floor returns how long the kernel takes for the transaction of a start.
func floor(b *testing.B, s *Services) time.Duration {
	t := s.view.NewBatch()
	for _, f := range s.families {
		f.rebuild = true
		f.write(t, 0)
	}
	begin := time.Now()
	if err := s.view.Commit(t); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

// BenchmarkServicesChange replaces one endpoint of one of 10,000 services with 10 endpoints each.
func BenchmarkServicesChange(b *testing.B) {
	for _, services := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(services), func(b *testing.B) {
			s, _ := openBench(b)
			defer s.Close()
			for i := range services {
				s.Set(benchService(b, i, 10, false))
			}
			applyBench(b, s, true)
			b.ResetTimer()
			for i := range b.N {
				s.Set(benchService(b, 7, 10, i%2 == 0))
				applyBench(b, s, true)
			}
		})
	}
}

// BenchmarkServicesScale adds an endpoint to a service of 50, and removes it.
func BenchmarkServicesScale(b *testing.B) {
	s, _ := openBench(b)
	defer s.Close()
	for i := range 10000 {
		s.Set(benchService(b, i, 10, false))
	}
	applyBench(b, s, true)
	b.ResetTimer()
	for i := range b.N {
		s.Set(benchService(b, 7, 10+i%2*41, false))
		s.Set(benchService(b, 7, 50+i%2, false))
		applyBench(b, s, true)
	}
}
