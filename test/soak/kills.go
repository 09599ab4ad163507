package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// kills records the kills of agents, and the time until a new agent was ready.
type kills struct {
	mu   sync.Mutex
	took []time.Duration // guarded by mu
}

const readyLimit = time.Minute

// killAgents kills both nodes' agents in turns during the first quarter, and the first node's after that: the second node's
// agent then lives long enough to determine whether its memory grows. The kills may cause no loss.
func (s *soak) killAgents(ctx context.Context) {
	for i := 0; s.sleep(ctx, s.opts.killEvery); i++ {
		node := 0
		if i%2 == 1 && time.Since(s.begin) < s.opts.duration/4 {
			node = 1
		}
		s.kill(context.WithoutCancel(ctx), node)
	}
}

func (s *soak) kill(ctx context.Context, node int) {
	n := s.Nodes[node]
	if !n.Agent.Running() {
		s.fault("agent has ended", "%s:\n%s", n.Name, n.LogTail(10))
	}
	if err := n.Agent.Kill(); err != nil {
		s.fault("agent", "%v", err)
	}
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := n.StartAgent(limited); err != nil {
		s.fault("agent not ready", "%v", err)
		return
	}
	s.memory.restarted(node)
	s.kills.mu.Lock()
	defer s.kills.mu.Unlock()
	s.kills.took = append(s.kills.took, time.Since(begin))
}

// figures returns the number of kills and the median and longest time to readiness.
func (k *kills) figures() (n int, median, longest time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n = len(k.took); n == 0 {
		return 0, 0, 0
	}
	sorted := slices.Sorted(slices.Values(k.took))
	return n, sorted[n/2], sorted[n-1]
}
