package bulk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// patternSize is a prime, so that no repetition of the pattern starts on a boundary of segments, frames or
// buffers.
const patternSize = 1<<20 - 3

// pattern is the content of all streams: bytes without a visible order. Each stream starts at its own offset.
var pattern = makePattern()

func makePattern() []byte {
	r := rand.New(rand.NewPCG(12, 25))
	p := make([]byte, patternSize)
	var word [8]byte
	for i := 0; i < len(p); i += len(word) {
		binary.LittleEndian.PutUint64(word[:], r.Uint64())
		copy(p[i:], word[:])
	}
	return p
}

// cursor is a position in an endless repetition of the pattern.
type cursor struct{ at int64 }

// next returns the longest piece from this position that is not longer than n.
func (c *cursor) next(n int64) []byte {
	from := c.at % patternSize
	return pattern[from:min(patternSize, from+n)]
}

func (c *cursor) advance(n int) { c.at += int64(n) }

// check compares received bytes with the pattern.
func (c *cursor) check(got []byte) error {
	for len(got) > 0 {
		want := c.next(int64(len(got)))
		if !bytes.Equal(want, got[:len(want)]) {
			return fmt.Errorf("the byte at offset %d is not the one that was sent", c.at+int64(firstDifference(want, got)))
		}
		c.advance(len(want))
		got = got[len(want):]
	}
	return nil
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}
