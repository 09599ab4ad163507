package driver

import (
	"errors"
	"fmt"
)

// Manager is the logic for one kind of object. Both methods are called on the loop's goroutine.
type Manager interface {
	// OnUpdate receives each message in the order of arrival, whether the manager handles its type or not. It records the required work and
	// does no I/O. The message is shared with other managers and must not be changed.
	OnUpdate(msg any)
	// CompleteDeferredWork is called at the start of each apply for the last computations, before anything is written. After an error the apply
	// continues (complete parts should work) and another apply follows.
	CompleteDeferredWork() error
}

// maxDeliveries is the number of times that a manager receives a message that it panics over.
const maxDeliveries = 3

// slot is a registered manager and the messages that could not be delivered to it yet.
type slot struct {
	manager Manager
	name    string
	held    []any // held[0] made the manager panic; the others came later
	tries   int   // deliveries of held[0]
	err     error // the panic
}

func newSlot(m Manager) *slot {
	name := fmt.Sprintf("%T", m)
	if s, ok := m.(fmt.Stringer); ok {
		name = s.String()
	}
	return &slot{manager: m, name: name}
}

// deliver passes msg to the manager, or holds it behind the held messages. An error is a panic that occurred now.
func (s *slot) deliver(msg any) error {
	if len(s.held) > 0 {
		s.held = append(s.held, msg)
		return nil
	}
	if err := s.offer(msg); err != nil {
		s.held, s.tries, s.err = []any{msg}, 1, err
		return err
	}
	return nil
}

func (s *slot) offer(msg any) error {
	return guard(func() string { return "manager " + s.name + ": OnUpdate of " + describe(msg) },
		func() error { s.manager.OnUpdate(msg); return nil })
}

// redeliver delivers the held messages again, until the manager panics or none is left. It returns the panics over messages that were dropped.
func (s *slot) redeliver() (lost []error) {
	for len(s.held) > 0 {
		if err := s.offer(s.held[0]); err != nil {
			s.err = err
			if s.tries++; s.tries < maxDeliveries {
				return lost
			}
			lost = append(lost, fmt.Errorf("given up after %d deliveries: %w", s.tries, err))
		}
		s.held[0] = nil
		s.held, s.tries, s.err = s.held[1:], 0, nil
	}
	s.held = nil
	return lost
}

// complete runs the manager's part of an apply.
func (s *slot) complete() error {
	err := guard(func() string { return "manager " + s.name + ": CompleteDeferredWork" }, s.manager.CompleteDeferredWork)
	if err != nil && !isPanic(err) {
		err = fmt.Errorf("manager %s: %w", s.name, err)
	}
	if len(s.held) > 0 {
		err = errors.Join(err, fmt.Errorf("manager %s: %d messages wait behind a failed one: %w", s.name, len(s.held), s.err))
	}
	return err
}
