package scheduler

import "fmt"

// The process behind a backend may be replaced: VPP is restarted. The applied values in the graph are then void. The backend's supervisor
// requests a resync, but other transactions and retries may run before it, and one may be in progress.
//
// Transactions and retries that start on the new process treat all values as unknown: each kind is dumped before any operation depends on its
// values. Otherwise a few values, such as those whose last operation had an unknown outcome, would be found missing and be created without
// their dependencies; VPP creates some of these dependencies automatically, without our mark, and keeps them.
//
// Transactions and retries that fail on the new process may fail with any error, in most cases with one that is not retriable: VPP rejects an
// interface in a table that does not exist, or the device of a TAP is missing. No value is at fault, so the error of the whole transaction is
// retriable. A transaction that must be applied completely or not at all is not started.

// peerReplacedError is the error of a transaction that failed, or was not started, because a peer has been replaced.
type peerReplacedError struct{ error }

func (e *peerReplacedError) Error() string {
	return "the dataplane was replaced (has it been restarted?) and is not configured again yet; retry: " + e.error.Error()
}

func (e *peerReplacedError) Unwrap() error { return e.error }

// Retriable returns true: after the resync that follows, the same transaction may succeed.
func (e *peerReplacedError) Retriable() bool { return true }

func (s *Scheduler) pin() {
	for _, backend := range s.cfg.Backends {
		if p, ok := backend.(Pinner); ok {
			p.Pin()
		}
	}
}

// eachPeer visits the backends that implement Peer.
func (s *Scheduler) eachPeer(visit func(i int, name string, alive bool)) {
	if s.peers == nil {
		s.peers = make([]string, len(s.cfg.Backends))
	}
	for i, backend := range s.cfg.Backends {
		if p, ok := backend.(Peer); ok {
			name, alive := p.Peer()
			visit(i, name, alive)
		}
	}
}

// recordPeers records the processes to which the backends are pinned. Kinds that are not stale were dumped from, or applied to, the processes in
// peers.
func (s *Scheduler) recordPeers() {
	s.eachPeer(func(i int, name string, alive bool) {
		if !alive || name == s.peers[i] {
			return
		}
		if s.peers[i] != "" {
			s.replacedPeer = fmt.Errorf("process %s has replaced process %s", name, s.peers[i])
			s.invalidateKinds()
		}
		s.peers[i] = name
	})
}

// invalidateKinds marks every kind that has a dump as stale: it is dumped before the next operation on its values.
func (s *Scheduler) invalidateKinds() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.reg.kinds {
		k.stale = k.calls.dump != nil
	}
}

// clearReplaced clears replacedPeer after everything has been dumped, unless a peer is lost.
func (s *Scheduler) clearReplaced() {
	if s.lost() == nil {
		s.replacedPeer = nil
	}
}

// lost returns an error that names a peer that was lost in the meantime or did not exist.
func (s *Scheduler) lost() (err error) {
	s.eachPeer(func(_ int, name string, alive bool) {
		if !alive {
			err = fmt.Errorf("process %q is gone", name)
		}
	})
	return err
}

// explain makes the error of a transaction retriable if a peer was replaced or lost, so that the values are not the cause.
func (b *batch) explain(err error) error {
	if err == nil || b.s.replacedPeer == nil && b.s.lost() == nil {
		return err
	}
	return &peerReplacedError{err}
}
