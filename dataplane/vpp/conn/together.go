package conn

// togetherMost is how many requests may be sent together.
const togetherMost = 8

// Together makes VPP carry out the few requests that f starts with no packet in between, if VPP has no workers. It reads 4 kB
// at a time, and carries out all that it has read before it looks at packets again. So they are written at once, when what VPP
// has not read yet leaves room for size bytes. In callbacks, which must not wait, and for more than 4 kB there is no such
// promise: f's requests are sent like any others.
func (l *Lane) Together(size int, f func()) {
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
