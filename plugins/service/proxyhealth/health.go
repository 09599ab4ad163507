package proxyhealth

import (
	"sync"
	"time"
)

// DefaultTimeout is how long changes of services may wait for the dataplane: twice kube-proxy's sync period.
const DefaultTimeout = time.Minute

// look is how often it is looked whether changes get into the dataplane, if nothing else asks.
const look = 5 * time.Second

// family is the state of an address family, as in kube-proxy's answer.
type family struct {
	LastUpdated time.Time `json:"lastUpdated"`
	Healthy     bool      `json:"healthy"`
}

// answer is the body of an answer.
type answer struct {
	LastUpdated  time.Time         `json:"lastUpdated"`
	CurrentTime  time.Time         `json:"currentTime"`
	NodeEligible *bool             `json:"nodeEligible,omitempty"` // /healthz only
	Healthy      bool              `json:"healthy"`
	Status       map[string]family `json:"status,omitempty"`
}

// health is what is known. It receives the time, and does nothing by itself.
type health struct {
	timeout  time.Duration
	families []string

	mu       sync.Mutex
	updated  time.Time // guarded by mu; when all changes were last in the dataplane; zero: not yet
	late     time.Time // guarded by mu; since when some have been waiting; zero: none are
	leaving  bool      // guarded by mu; the node is
	unserved bool      // guarded by mu; nothing is served, whatever the changes
}

// note takes the outcome of a look: alive says why nothing is served, programmed why changes do not get into the dataplane.
func (h *health) note(now time.Time, alive, programmed error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unserved = alive != nil
	switch {
	case alive == nil && programmed == nil:
		h.updated, h.late = now, time.Time{}
	case h.late.IsZero():
		h.late = now
	}
}

func (h *health) setLeaving(leaving bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leaving = leaving
}

// answer reports how it is; ok is what the status of the answer depends on. A node that has not served yet is healthy until its deadline,
// like one on which kube-proxy starts.
func (h *health) answer(now time.Time, withNode bool) (a answer, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	well := !h.unserved && (h.late.IsZero() || now.Sub(h.late) < h.timeout)
	a = answer{LastUpdated: h.updated, CurrentTime: now, Healthy: well}
	if !h.updated.IsZero() {
		a.Status = map[string]family{}
		for _, name := range h.families {
			a.Status[name] = family{h.updated, well}
		}
	}
	ok = well
	if withNode {
		stays := !h.leaving
		a.NodeEligible, ok = &stays, well && stays
	}
	if ok {
		a.LastUpdated = now
	}
	return a, ok
}
