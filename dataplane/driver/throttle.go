package driver

import "time"

const (
	bucketSize     = 10
	refillInterval = 100 * time.Millisecond
)

// bucket is the throttle: an apply costs a token. It starts full, so that the first changes are applied immediately. When applies take long,
// tokens arrive at half the rate at which they could be spent, and the bucket holds no more than the tokens of one second (at least one): even
// a burst leaves half of the time to other work. Applies with a waiting caller take a token only if one is available.
type bucket struct {
	tokens   int
	interval time.Duration
	since    time.Time // tokens are counted up to this time
}

func newBucket(now time.Time) bucket {
	return bucket{tokens: bucketSize, interval: refillInterval, since: now}
}

func (b *bucket) size() int {
	return max(1, int(bucketSize*refillInterval/b.interval))
}

func (b *bucket) refill(now time.Time) {
	if n := now.Sub(b.since) / b.interval; n > 0 {
		b.since = b.since.Add(n * b.interval)
		b.tokens += int(min(n, bucketSize))
	}
	if b.tokens >= b.size() {
		b.tokens, b.since = b.size(), now
	}
}

// take takes a token if one is available.
func (b *bucket) take(now time.Time) bool {
	b.refill(now)
	if b.tokens == 0 {
		return false
	}
	b.tokens--
	return true
}

// next returns the time at which the empty bucket gets a token.
func (b *bucket) next() time.Time { return b.since.Add(b.interval) }

// adapt sets the interval from the duration of the last apply, which has just ended.
func (b *bucket) adapt(now time.Time, took time.Duration) {
	b.interval = max(refillInterval, 2*took)
	b.refill(now)
}
