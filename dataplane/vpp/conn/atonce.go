package conn

// togetherMost is the largest number of requests that may be sent together.
const togetherMost = 8

// WriteAtOnce makes VPP carry out the few requests that f starts without processing a packet in between, if VPP has no workers.
// VPP reads 4 kB at a time, and carries out all requests that it has read before it processes packets again. So the requests
// are written at once, when the data that VPP has not read yet leaves room for size bytes. There is no such guarantee in
// callbacks, which must not wait, and for more than 4 kB: f's requests are then sent like any others.
func (l *Lane) WriteAtOnce(size int, f func()) {
	if l.depth > 0 || size > outboxBytes || l.held {
		f()
		return
	}
	l.post()
	if l.unread+size > outboxBytes || l.flight.count+togetherMost > l.flight.window {
		for l.busy() {
			l.wait(nil)
		}
	}
	l.held = true
	f()
	l.held = false
	l.post()
}
