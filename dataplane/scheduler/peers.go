package scheduler

import "fmt"

// The other side of a backend may be replaced: VPP is restarted. What the graph says is applied is then void. The backend's
// supervisor asks for a resync, but other transactions and retries may come first, and one may be under way.
//
// Those that begin on the new process know nothing of any value, so that each kind is dumped before anything is built on its
// values. Else a few of them, such as those whose last operation was left unknown, would be found missing and be made without
// what they depend on; VPP makes up some of that by itself, without our mark, and keeps it.
//
// Those that fail may do so in any way, most of them final by themselves: VPP refuses an interface in a table that it does not
// have, the device of a TAP is not there. None of this is the fault of a value, so the error of the transaction as a whole is
// retriable. One that is to be done completely or not at all is not even begun.

// strangeError says that a transaction failed, or was not begun, because a peer is not the one that is known.
type strangeError struct{ error }

func (e *strangeError) Error() string {
	return "the dataplane was replaced (has it been restarted?) and is not configured again yet; retry: " + e.error.Error()
}

func (e *strangeError) Unwrap() error { return e.error }

// Retriable is true: after the resync that follows, the same may succeed.
func (e *strangeError) Retriable() bool { return true }

func (s *Scheduler) pin() {
	for _, backend := range s.cfg.Backends {
		if p, ok := backend.(Pinner); ok {
			p.Pin()
		}
	}
}

// eachPeer visits the backends that have one.
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

// meet looks up the process that the backends are pinned to. Whatever is not stale has been taken from, or done to, the processes in peers.
func (s *Scheduler) meet() {
	s.eachPeer(func(i int, name string, alive bool) {
		if !alive || name == s.peers[i] {
			return
		}
		if s.peers[i] != "" {
			s.replacedPeer = fmt.Errorf("process %s has taken the place of %s", name, s.peers[i])
			s.forget()
		}
		s.peers[i] = name
	})
}

// forget makes every kind be dumped before the next operation on its values.
func (s *Scheduler) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.reg.kinds {
		k.stale = k.calls.dump != nil
	}
}

// forgetReplaced records that everything has been dumped.
func (s *Scheduler) forgetReplaced() {
	if s.lost() == nil {
		s.replacedPeer = nil
	}
}

// lost reports which peer has been lost in the meantime, or was not there.
func (s *Scheduler) lost() (err error) {
	s.eachPeer(func(_ int, name string, alive bool) {
		if !alive {
			err = fmt.Errorf("process %q is gone", name)
		}
	})
	return err
}

// explain makes the error of a transaction retriable if it is not about the values.
func (b *batch) explain(err error) error {
	if err == nil || b.s.replacedPeer == nil && b.s.lost() == nil {
		return err
	}
	return &strangeError{err}
}
