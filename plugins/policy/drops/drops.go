package drops

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"

	"contiv.dev/vswitch/dataplane/denied"
	"contiv.dev/vswitch/plugins/policy/model"
)

// Limits of the stored flows.
const (
	perPeer  = 8    // flows of a pod, in one direction, with one peer
	perPod   = 64   // flows of a pod in one direction
	allFlows = 4096 // of all pods
	// forgotten is how long a flow is stored after its newest packet.
	forgotten = time.Hour
)

// Verdict describes what denied a flow.
type Verdict struct {
	Pod                   model.EndpointID // the pod whose policy denied it; zero: no pod of this node
	SourcePod, DestPod    string           // namespace/name; empty: not a pod
	Policy, Rule, Because string           // Policy and Rule are empty if the flow was denied because no rule allowed it
}

// Flow is a flow that was denied. Packets with different source ports belong to the same flow.
type Flow struct {
	denied.Flow // the newest packet
	Verdict
	First time.Time
	Count uint64 // packets that the dataplane has reported; it limits reports
}

// key identifies a flow.
type key struct {
	place    place
	protocol uint8
	port     uint16
	icmp     [2]uint8
	far      netip.Addr
	near     netip.Addr
}

// place identifies a pod and a direction, for which the number of flows is limited.
type place struct {
	pod     model.EndpointID
	ingress bool
}

func keyOf(f denied.Flow, pod model.EndpointID) key {
	k := key{place: place{pod, f.Ingress}, protocol: f.Protocol, port: f.Dest.Port(), icmp: [2]uint8{f.ICMPType, f.ICMPCode}}
	if k.far, k.near = f.Dest.Addr(), f.Source.Addr(); f.Ingress {
		k.far, k.near = k.near, k.far
	}
	return k
}

// Label identifies a counter. Policy is the policy that denied, or those that isolate the pod.
type Label struct {
	Policy  string
	Ingress bool
}

// maxLabels limits the number of counters; further labels are counted as Others.
const maxLabels = 1000

// Others is the policy of the counter for labels beyond the limit.
const Others = "others"

// Store stores denied flows. It is safe for concurrent use.
type Store struct {
	mu     sync.Mutex
	flows  map[key]*Flow
	places map[place]map[key]*Flow
	counts map[Label]uint64
}

// New returns a store without flows.
func New() *Store {
	return &Store{flows: map[key]*Flow{}, places: map[place]map[key]*Flow{}, counts: map[Label]uint64{}}
}

// Note records a packet. isNew reports whether it begins a new flow.
func (s *Store) Note(f denied.Flow, v Verdict, label string) (isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(Label{label, f.Ingress})
	k := keyOf(f, v.Pod)
	if known := s.flows[k]; known != nil {
		known.Flow, known.Verdict = f, v
		known.Count++
		return false
	}
	s.makeRoom(k, f.Time)
	n := &Flow{Flow: f, Verdict: v, First: f.Time, Count: 1}
	s.flows[k] = n
	if s.places[k.place] == nil {
		s.places[k.place] = map[key]*Flow{}
	}
	s.places[k.place][k] = n
	return true
}

func (s *Store) count(l Label) {
	if _, known := s.counts[l]; !known && len(s.counts) >= maxLabels {
		l.Policy = Others
	}
	s.counts[l]++
}

// makeRoom removes the oldest flow of the same peer, of the same pod or of all flows, depending on which limit is reached.
func (s *Store) makeRoom(n key, now time.Time) {
	var peers int
	var ofPeer, ofPod *Flow
	var peerKey, podKey key
	for k, f := range s.places[n.place] {
		if ofPod == nil || f.Time.Before(ofPod.Time) {
			ofPod, podKey = f, k
		}
		if k.far != n.far {
			continue
		}
		if peers++; ofPeer == nil || f.Time.Before(ofPeer.Time) {
			ofPeer, peerKey = f, k
		}
	}
	switch {
	case peers >= perPeer:
		s.remove(peerKey)
	case len(s.places[n.place]) >= perPod:
		s.remove(podKey)
	case len(s.flows) >= allFlows:
		s.removeOld(now)
	}
}

// removeOld removes old flows, or the oldest flow if none is old.
func (s *Store) removeOld(now time.Time) {
	var oldest key
	var at *Flow
	for k, f := range s.flows {
		switch {
		case now.Sub(f.Time) > forgotten:
			s.remove(k)
		case at == nil || f.Time.Before(at.Time):
			oldest, at = k, f
		}
	}
	if len(s.flows) >= allFlows {
		s.remove(oldest)
	}
}

func (s *Store) remove(k key) {
	delete(s.flows, k)
	if delete(s.places[k.place], k); len(s.places[k.place]) == 0 {
		delete(s.places, k.place)
	}
}

// Flows returns the flows whose newest packet arrived after a time, the newest first.
func (s *Store) Flows(after time.Time) []Flow {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Flow{}
	for _, f := range s.flows {
		if f.Time.After(after) {
			out = append(out, *f)
		}
	}
	slices.SortFunc(out, func(a, b Flow) int {
		return cmp.Or(b.Time.Compare(a.Time), a.Source.Compare(b.Source), a.Dest.Compare(b.Dest), cmp.Compare(a.Protocol, b.Protocol))
	})
	return out
}

// Counts returns the number of reported packets, by policy and direction, since the agent's start.
func (s *Store) Counts() map[Label]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[Label]uint64, len(s.counts))
	for l, n := range s.counts {
		out[l] = n
	}
	return out
}
