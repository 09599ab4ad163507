package intdataplane

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/proto"
)

// manyEndpoints returns the message of service i with n endpoints; the last endpoint is different in each version.
func manyEndpoints(i, n, version int) *proto.BalancedServiceUpdate {
	g := &proto.BalancedGroup{Ports: []uint32{8080}}
	for j := range n {
		at := uint32(0x0a000000 + i*n + j)
		if j == n-1 {
			at += uint32(version) << 23
		}
		g.Addresses = binary.BigEndian.AppendUint32(g.Addresses, at)
	}
	vip := binary.BigEndian.AppendUint32(nil, uint32(0x0b600000+i))
	return &proto.BalancedServiceUpdate{Namespace: "default", Name: fmt.Sprintf("service-%d", i),
		Ports: []*proto.BalancedPort{{Name: "http", Protocol: 6, Everywhere: g,
			Frontends: []*proto.BalancedFrontend{{Address: vip, Port: 80}}}}}
}

// BenchmarkServiceStart is a node that receives 5,000 services with 250,000 endpoints: from the messages to the kernel, with the whole
// driver; ms/restart is the same if the kernel already has everything. nft.BenchmarkServicesStart measures the kernel's part.
func BenchmarkServiceStart(b *testing.B) {
	var restart time.Duration
	for i := range b.N {
		b.StopTimer()
		var msgs []any
		for k := range 5000 {
			msgs = append(msgs, manyEndpoints(k, 50, 0))
		}
		config, ns := Config{RulesConfig: rules.Config{Backend: rules.BackendNFT}}, netns(b, fmt.Sprintf("b%d-%d", b.N, i))
		s := newStepper(b, config, ns)
		b.StartTimer()
		s.step(msgs...)
		b.StopTimer()
		s.stop()
		again := newStepper(b, config, ns)
		begin := time.Now()
		again.step(msgs...)
		restart += time.Since(begin)
		if again.d.progress.writes > 0 {
			b.Fatalf("a restart wrote %d objects", again.d.progress.writes)
		}
		again.stop()
	}
	b.ReportMetric(float64(restart.Milliseconds())/float64(b.N), "ms/restart")
}

// BenchmarkServiceChange replaces one endpoint among 10,000 services (with iptables 200).
func BenchmarkServiceChange(b *testing.B) {
	for _, c := range []struct {
		backend  string
		services int
	}{{rules.BackendNFT, 10000}, {rules.BackendIptables, 200}} {
		b.Run(fmt.Sprintf("%s/%d", c.backend, c.services), func(b *testing.B) {
			s := newStepper(b, Config{RulesConfig: rules.Config{Backend: c.backend}}, netns(b, fmt.Sprint("b", b.N)))
			defer s.stop()
			var msgs []any
			for k := range c.services {
				msgs = append(msgs, manyEndpoints(k, 10, 0))
			}
			s.step(msgs...)
			s.step()
			b.ResetTimer()
			for i := range b.N {
				s.step(manyEndpoints(7, 10, 1+i%2))
			}
		})
	}
}
