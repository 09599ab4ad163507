package traffic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

const (
	// period is a prime: no segment, ring or window has a length that divides it, so that a piece that is lost, repeated or
	// reordered is detected.
	period = 1_048_573
	// piece is the size of one call to the kernel.
	piece = 128 << 10
)

// pattern is an endless sequence of bytes that depends on a seed. It is generated once, so that sending and comparing cost
// little.
type pattern struct {
	data []byte // one period, and the beginning of the next one
}

func newPattern(seed uint64) *pattern {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	p := &pattern{data: make([]byte, period+piece)}
	_, _ = rand.NewChaCha8(key).Read(p.data[:period]) // never fails
	copy(p.data[period:], p.data)
	return p
}

// at returns the n bytes (up to a piece) from an offset.
func (p *pattern) at(offset int64, n int) []byte {
	start := int(offset % period)
	return p.data[start : start+n]
}

// check compares the bytes received at an offset.
func (p *pattern) check(offset int64, got []byte) error {
	for len(got) > 0 {
		n := min(len(got), piece)
		want := p.at(offset, n)
		if !bytes.Equal(got[:n], want) {
			i := 0
			for got[i] == want[i] {
				i++
			}
			return fmt.Errorf("%w: byte %d is %#02x instead of %#02x", ErrCorrupted, offset+int64(i), got[i], want[i])
		}
		offset, got = offset+int64(n), got[n:]
	}
	return nil
}
