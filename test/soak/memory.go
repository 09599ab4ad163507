package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// memory holds, by name, the time series of the memory of processes and of the number of NAT sessions.
type memory struct {
	mu     sync.Mutex
	names  []string
	series map[string][]float64 // guarded by mu, as names
}

const (
	sampleEvery = 2 * time.Second
	// A series is flat if the median of its last third is at most this share, or this amount, above that of its first third. The first third of
	// the run does not count: until then pools and heaps grow to the size that they need.
	flatShare   = 0.05
	flatBytes   = 10e6
	flatEntries = 1000 // NAT sessions
	// Shorter runs print memory, but do not fail because of it.
	judgedFrom = 5 * time.Minute
)

func (m *memory) add(name string, value float64) {
	if value == 0 && !strings.HasPrefix(name, "NAT") {
		return // the process does not run
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.series == nil {
		m.series = map[string][]float64{}
	}
	if _, ok := m.series[name]; !ok {
		m.names = append(m.names, name)
	}
	m.series[name] = append(m.series[name], value)
}

// restarted discards an agent's series.
func (m *memory) restarted(node int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.series, agentSeries(node))
	m.names = slices.DeleteFunc(m.names, func(n string) bool { return n == agentSeries(node) })
}

func agentSeries(node int) string { return fmt.Sprintf("agent %d", node+1) }
func vppSeries(node int) string   { return fmt.Sprintf("VPP %d", node+1) }
func natSeries(node int) string   { return fmt.Sprintf("NAT sessions %d", node+1) }

func (s *soak) sampleMemory(ctx context.Context) {
	for s.sleep(ctx, sampleEvery) {
		for i, n := range s.Nodes {
			s.memory.add(agentSeries(i), memoryOf(n.Agent.PID(), "VmRSS"))
			if n.VPP == nil {
				continue
			}
			s.memory.add(vppSeries(i), memoryOf(n.VPP.PID(), vppOwn...))
			if sessions, err := n.Metric(ctx, "contiv_vpp_nat_sessions"); err == nil { // the agent may be restarting
				s.memory.add(natSeries(i), sessions)
			}
		}
	}
}

// vppOwn are the fields of the resident memory that VPP itself allocated: heaps, stacks and packet buffers. RssFile does not count: it includes
// the rings of AF_PACKET sockets, 19 MB for each VETH pod, so that it follows the current number of pods. The inventory checks that rings are
// released with their pods.
var vppOwn = []string{"RssAnon", "RssShmem"}

// memoryOf returns the sum of these fields of /proc/PID/status in bytes; 0 if the process does not run.
func memoryOf(pid int, fields ...string) (bytes float64) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		var kb float64
		if _, err := fmt.Sscanf(value, "%f kB", &kb); err == nil && slices.Contains(fields, name) {
			bytes += kb * 1024
		}
	}
	return bytes
}

// checkMemory records series that grow as faults. The first agent's series are too short, because it is killed all the time.
func (s *soak) checkMemory() {
	if s.opts.duration < judgedFrom {
		return
	}
	for _, name := range s.memory.names {
		if name == agentSeries(0) {
			continue
		}
		most := flatBytes
		if strings.HasPrefix(name, "NAT") {
			most = flatEntries
		}
		values := s.memory.series[name]
		if first, last, flat := evaluate(values[len(values)/3:], most); !flat {
			s.fault("memory", "%s grows: %.0f, then %.0f", name, first, last)
		}
	}
}

// evaluate compares the medians of the first and the last third.
func evaluate(values []float64, most float64) (first, last float64, flat bool) {
	third := len(values) / 3
	if third == 0 {
		return 0, 0, true
	}
	first, last = median(values[:third]), median(values[len(values)-third:])
	return first, last, last-first <= max(flatShare*first, most)
}

func median(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// String returns the newest value of each series.
func (m *memory) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var parts []string
	for _, name := range slices.Sorted(slices.Values(m.names)) {
		values := m.series[name]
		if strings.HasPrefix(name, "NAT") {
			parts = append(parts, fmt.Sprintf("%s %.0f", name, values[len(values)-1]))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %.0f MB", name, values[len(values)-1]/1e6))
	}
	return strings.Join(parts, ", ")
}
