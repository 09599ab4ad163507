package driver

import (
	"container/list"
	"sync"
)

// statusQueue keeps the latest message per key until it is read, in the order in which the keys first arrived. Writing never waits for the
// reader, and unread messages take no more than one entry per key.
type statusQueue struct {
	mu    sync.Mutex
	order list.List // of *status
	byKey map[any]*list.Element
	wake  chan struct{} // holds a token while a message may be pending
}

type status struct{ key, msg any }

func newStatusQueue() *statusQueue {
	return &statusQueue{byKey: map[any]*list.Element{}, wake: make(chan struct{}, 1)}
}

// put sets the message of key; nil withdraws the pending message.
func (q *statusQueue) put(key, msg any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	el, pending := q.byKey[key]
	switch {
	case msg == nil && pending:
		q.order.Remove(el)
		delete(q.byKey, key)
	case msg == nil:
	case pending:
		el.Value = &status{key, msg}
	default:
		q.byKey[key] = q.order.PushBack(&status{key, msg})
		q.signal()
	}
}

// take removes and returns the message of the oldest key.
func (q *statusQueue) take() (any, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	el := q.order.Front()
	if el == nil {
		return nil, false
	}
	s := q.order.Remove(el).(*status)
	delete(q.byKey, s.key)
	if q.order.Len() > 0 {
		q.signal() // another reader may be waiting
	}
	return s.msg, true
}

func (q *statusQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
