package scheduler

import "fmt"

// The other side of a backend may be replaced: VPP is restarted. What the graph says is applied is then void, until a resync
// has dumped everything again; the backend's supervisor asks for that one, but other transactions may come first, and one may be
// under way. Such a transaction can fail in any way, most of them final by themselves: VPP refuses an interface in a table that
// it does not have, the device of a TAP is not there. None of this is the fault of a value, so the error of the transaction as a
// whole is retriable. One that is to be done completely or not at all is not even begun.

// strangeError says that a transaction failed, or was not begun, because a peer is not the one that is known.
type strangeError struct{ error }

func (e *strangeError) Error() string {
	return "the dataplane was replaced (has it been restarted?) and is not configured anew yet; try again: " + e.error.Error()
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

// meetPeers notes whom the dataplane has been dumped from.
func (s *Scheduler) meetPeers() {
	s.eachPeer(func(i int, name string, alive bool) {
		if alive {
			s.peers[i] = name
		}
	})
}

// strangers says which peer is alive, and not the one that the dataplane was last dumped from.
func (s *Scheduler) strangers() (err error) {
	s.eachPeer(func(i int, name string, alive bool) {
		if alive && s.peers[i] != "" && name != s.peers[i] {
			err = fmt.Errorf("process %s has taken the place of %s", name, s.peers[i])
		}
	})
	return err
}

// lost says which peer has been lost in the meantime, or was not there.
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
	if err == nil || b.s.strangers() == nil && b.s.lost() == nil {
		return err
	}
	return &strangeError{err}
}
