package state

import (
	"sync"

	"contiv.dev/vswitch/plugins/statscollector"
)

// Rates computes rates from counters: it stores the last two answers of each node.
type Rates struct {
	mu    sync.Mutex
	nodes map[string]*[2]*statscollector.TrafficReport // guarded by mu: the older, the newer
}

// Add stores an answer. It ignores one that is no newer than the last.
func (r *Rates) Add(node string, t *statscollector.TrafficReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes == nil {
		r.nodes = map[string]*[2]*statscollector.TrafficReport{}
	}
	last := r.nodes[node]
	if last == nil {
		last = &[2]*statscollector.TrafficReport{}
		r.nodes[node] = last
	}
	if last[1] == nil || t.Sampled.After(last[1].Sampled) {
		last[0], last[1] = last[1], t
	}
}

// Series names an interface.
type Series struct{ Namespace, Pod, Interface string }

// Interfaces returns the rates of a node's interfaces; nil until there are two answers.
func (r *Rates) Interfaces(node string) map[Series]Rate {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.nodes[node]
	if last == nil || last[0] == nil || last[1].Missing != "" {
		return nil
	}
	seconds := last[1].Sampled.Sub(last[0].Sampled).Seconds()
	before := map[Series]*statscollector.InterfaceTraffic{}
	for i := range last[0].Interfaces {
		t := &last[0].Interfaces[i]
		before[Series{t.Namespace, t.Pod, t.Interface}] = t
	}
	out := map[Series]Rate{}
	for _, t := range last[1].Interfaces {
		key := Series{t.Namespace, t.Pod, t.Interface}
		b := before[key]
		if b == nil || t.RxBytes < b.RxBytes || t.TxBytes < b.TxBytes { // new, or created again
			continue
		}
		per := func(now, then uint64) float64 { return float64(now-min(then, now)) / seconds }
		// The dataplane receives what the pod sends.
		out[key] = Rate{
			InBits: 8 * per(t.TxBytes, b.TxBytes), OutBits: 8 * per(t.RxBytes, b.RxBytes),
			InPackets: per(t.TxPackets, b.TxPackets), OutPackets: per(t.RxPackets, b.RxPackets),
		}
	}
	return out
}

// Node returns the sum of what all pods of a node send and receive; nil if it is not known.
func (r *Rates) Node(node string) *Rate {
	all := r.Interfaces(node)
	if all == nil {
		return nil
	}
	sum := &Rate{}
	for name, rate := range all {
		if name.Pod != "" {
			sum.InBits, sum.OutBits = sum.InBits+rate.InBits, sum.OutBits+rate.OutBits
			sum.InPackets, sum.OutPackets = sum.InPackets+rate.InPackets, sum.OutPackets+rate.OutPackets
		}
	}
	return sum
}

// Rate is traffic per second.
type Rate struct {
	InBits     float64 `json:"inBits"`
	OutBits    float64 `json:"outBits"`
	InPackets  float64 `json:"inPackets"`
	OutPackets float64 `json:"outPackets"`
}
