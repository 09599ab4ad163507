package vppsup

import "time"

// The pace of restarts.
const (
	// stable is how long VPP has to live for its end to be taken as the first one.
	stable   = 30 * time.Second
	minDelay = 100 * time.Millisecond
	maxDelay = 10 * time.Second
)

// backoff reports how long to wait before the next start. The first crash costs no wait: packets are waiting.
type backoff struct{ crashes int }

// next takes how long the process lived.
func (b *backoff) next(lived time.Duration) time.Duration {
	if lived >= stable {
		b.crashes = 0
	}
	b.crashes++
	if b.crashes <= 2 { // one that dies twice in a row may still have been killed from outside
		return 0
	}
	return min(maxDelay, minDelay<<min(b.crashes-3, 10))
}
