package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

// connections counts short connections, and those for which TCP had to retransmit for a long time.
type connections struct{ made, failed, slow atomic.Int64 }

const (
	// Ports of the clients. Each client uses other ports for each server: VPP confuses connections of a client that uses a
	// port again for another service with the same backend (letter H in plugins/service/README.md), which the soak does not
	// test.
	firstClientPort = 10_300 // above 10256, where agents answer health probes of load balancers
	portsPerTarget  = 2_000
	connectEvery    = 100 * time.Millisecond
	// When many processes compete for few processors, packets are lost at full rings, and TCP doubles its timeout each time.
	answerLimit = 30 * time.Second
	slowFrom    = 3 * time.Second
)

// connect makes short connections from all pods, the hosts and the outside machine to pods and services.
func (s *soak) connect(ctx context.Context) {
	clients := []*netns.Namespace{s.Nodes[0].Namespace, s.Nodes[1].Namespace}
	for _, p := range s.pods {
		clients = append(clients, p.Namespace)
	}
	targets := append(steady.at(), busy.at()...)
	for _, p := range s.pods {
		targets = append(targets, at(p.IPs[0]), at(p.IPs[1]))
	}
	for i, ns := range clients {
		s.work.Go(func() { s.connectFrom(ctx, ns, targets, uint64(i)) })
	}
}

func (s *soak) connectFrom(ctx context.Context, ns *netns.Namespace, targets []netip.AddrPort, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	used := make([]int, len(targets))
	for s.sleep(ctx, connectEvery) {
		i := random.IntN(len(targets))
		used[i]++
		own := firstClientPort + i/2*portsPerTarget + used[i]%portsPerTarget // the families do not share ports
		size := 1 + random.IntN(20_000)
		begin := time.Now()
		if err := s.traffic.Once(ns, uint16(own), targets[i], size, answerLimit); err != nil {
			s.connections.failed.Add(1)
			s.fault("connection failed", "%s port %d to %s, %d bytes, after %s, begun at %s: %v", ns.Name, own, targets[i], size,
				time.Since(begin).Round(time.Millisecond), begin.Format("15:04:05.000"), err)
			for _, b := range s.traffic.Broken(uint16(own)) {
				fmt.Fprintf(s.out, "      a server gave up %s: %v\n", b.Client, b.Err)
			}
			continue
		}
		s.connections.made.Add(1)
		if time.Since(begin) > slowFrom {
			s.connections.slow.Add(1)
		}
	}
}

func (c *connections) String() string {
	return fmt.Sprintf("%d connections, %d failed, %d took more than %s", c.made.Load()+c.failed.Load(), c.failed.Load(),
		c.slow.Load(), slowFrom)
}
