package proxyhealth

import (
	"sync"
	"time"
)

// DefaultTimeout is how long changes of services may wait for the dataplane: twice kube-proxy's sync period.
const DefaultTimeout = time.Minute

// check is the interval of the checks whether changes get into the dataplane, in addition to the checks by requests.
const look = 5 * time.Second

// family is the state of an address family, as in kube-proxy's response.
type family struct {
	LastUpdated time.Time `json:"lastUpdated"`
	Healthy     bool      `json:"healthy"`
}

// answer is the body of a response.
type answer struct {
	LastUpdated  time.Time         `json:"lastUpdated"`
	CurrentTime  time.Time         `json:"currentTime"`
	NodeEligible *bool             `json:"nodeEligible,omitempty"` // /healthz only
	Healthy      bool              `json:"healthy"`
	Status       map[string]family `json:"status,omitempty"`
}

// health is the current state. Its methods get the time as an argument, and it starts no goroutine.
type health struct {
	timeout  time.Duration
	families []string

	mu       sync.Mutex
	updated  time.Time // guarded by mu; the last time at which all changes were in the dataplane; zero: never so far
	late     time.Time // guarded by mu; the time since which changes have been waiting; zero: none are waiting
	leaving  bool      // guarded by mu; the node is leaving the cluster
	unserved bool      // guarded by mu; no service is served, whether or not changes wait
}

// note records the result of a check: alive is the reason why nothing is served, programmed the reason why changes do not get into the
// dataplane; nil if there is none.
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

// answer returns the body of a response; ok determines its status. A node that has not served yet counts as healthy until its deadline,
// like a node on which kube-proxy is starting.
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
