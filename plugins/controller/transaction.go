package controller

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
)

// entry is one value of the internal configuration: a nil value is a deletion (in transactions only). The owner is the
// index of the handler that put it.
type entry struct {
	value proto.Message
	owner int
}

// store is the internal configuration: the values that plugins have put, as of the last committed event. Only the loop writes to it; any
// goroutine may read it.
type store struct {
	mu     sync.RWMutex
	values map[string]entry // guarded by mu
}

func newStore() *store { return &store{values: map[string]entry{}} }

func (s *store) get(key string) proto.Message {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.values[key].value
}

func (s *store) has(key string) bool { return s.get(key) != nil }

func (s *store) keys() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return sortedKeys(s.values)
}

// apply makes the transaction part of the configuration.
func (s *store) apply(tx *transaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tx.resync {
		s.values = make(map[string]entry, len(tx.values))
	}
	for key, e := range tx.values {
		if e.value == nil {
			delete(s.values, key)
			continue
		}
		s.values[key] = e
	}
}

// transaction collects the values that handlers put and delete while they handle one event. It implements api.UpdateOperations.
type transaction struct {
	resync bool
	base   *store // for updates: the store that Get falls back to; for resyncs: the store with the values that a failed handler keeps
	owner  int    // the index of the handler that is being called
	order  []string
	values map[string]entry
	errs   []error // misuse by the handler that is being called
}

func newTransaction(base *store, resync bool) *transaction {
	return &transaction{resync: resync, base: base, values: map[string]entry{}}
}

// Put implements api.ResyncOperations.
func (tx *transaction) Put(key string, value proto.Message) {
	switch {
	case key == "":
		tx.errs = append(tx.errs, errors.New("put under an empty key"))
	case value == nil || !value.ProtoReflect().IsValid():
		tx.errs = append(tx.errs, fmt.Errorf("put of a nil value under %q", key))
	default:
		tx.set(key, entry{value: value, owner: tx.owner})
	}
}

// Get implements api.ResyncOperations.
func (tx *transaction) Get(key string) proto.Message {
	if e, pending := tx.values[key]; pending || tx.resync {
		return e.value
	}
	return tx.base.get(key)
}

// Delete implements api.UpdateOperations.
func (tx *transaction) Delete(key string) {
	if key == "" {
		tx.errs = append(tx.errs, errors.New("delete of an empty key"))
		return
	}
	tx.set(key, entry{owner: tx.owner})
}

func (tx *transaction) set(key string, e entry) {
	if _, known := tx.values[key]; !known {
		tx.order = append(tx.order, key)
	}
	tx.values[key] = e
}

// begin starts the call of a handler.
func (tx *transaction) begin(owner int) { tx.owner = owner }

// end ends the call and returns the errors of the handler's misuse.
func (tx *transaction) end() error {
	err := errors.Join(tx.errs...)
	tx.errs = nil
	return err
}

// keepOld drops the values that a handler has put in the resync in which it failed, and restores the values that it had before: its
// configuration must not be removed because it could not be recomputed.
func (tx *transaction) keepOld(owner int) {
	for key, e := range tx.values {
		if e.owner == owner {
			delete(tx.values, key)
		}
	}
	order := tx.order[:0]
	for _, key := range tx.order {
		if _, kept := tx.values[key]; kept {
			order = append(order, key)
		}
	}
	tx.order = order

	tx.base.mu.RLock()
	defer tx.base.mu.RUnlock()
	for _, key := range sortedKeys(tx.base.values) {
		e := tx.base.values[key]
		if _, taken := tx.values[key]; !taken && e.owner == owner {
			tx.set(key, e)
		}
	}
}

// touched reports whether plugins have put or deleted key in this transaction.
func (tx *transaction) touched(key string) bool {
	_, ok := tx.values[key]
	return ok
}
