package vppsup

import "time"

// The delays between restarts.
const (
	// stable is how long VPP must run until its next crash counts as the first one again.
	stable   = 30 * time.Second
	minDelay = 100 * time.Millisecond
	maxDelay = 10 * time.Second
)

// backoff computes the delay before the next start. After the first crash there is no delay, because packets are waiting.
type backoff struct{ crashes int }

// next returns the delay after a process that ran for lived.
func (b *backoff) next(lived time.Duration) time.Duration {
	if lived >= stable {
		b.crashes = 0
	}
	b.crashes++
	if b.crashes <= 2 { // a process that ends twice in a row may still have been killed by another program
		return 0
	}
	return min(maxDelay, minDelay<<min(b.crashes-3, 10))
}
