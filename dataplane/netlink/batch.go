package netlink

import "encoding/binary"

// Batch is a list of requests, encoded one after the other. The zero Batch is empty; after Reset a Batch is reused without allocating.
// Attributes are added to the request that was started last.
type Batch struct {
	Attrs
	offs []int // offsets of the requests
}

// Reset empties the batch.
func (b *Batch) Reset() { b.B, b.offs = b.B[:0], b.offs[:0] }

// Len returns the number of requests.
func (b *Batch) Len() int { return len(b.offs) }

// Bytes returns the encoded requests.
func (b *Batch) Bytes() []byte {
	b.seal()
	return b.B
}

// Begin starts a request with a message type (RTM_…), flags (NLM_F_REQUEST is added) and the fixed header of the type.
func (b *Batch) Begin(typ, flags uint16, header []byte) {
	b.seal()
	b.offs = append(b.offs, b.OpenMessage(typ, flags, 0, header...)) // the sequence number: see number
}

// seal writes the length of the request that was started last.
func (b *Batch) seal() {
	if n := len(b.offs); n > 0 {
		b.CloseMessage(b.offs[n-1])
	}
}

// number sets consecutive sequence numbers in the requests of a chunk, and flags in the last one.
func (b *Batch) number(first, end int, base uint32, flags uint16) {
	b.seal()
	for i := first; i < end; i++ {
		binary.NativeEndian.PutUint32(b.B[b.offs[i]+8:], base+uint32(i-first))
	}
	b.AddFlags(b.offs[end-1], flags)
}

// chunk returns the end of the range of requests from first on that are sent together.
func (b *Batch) chunk(first int) int {
	end := first + 1
	for end < len(b.offs) && end-first < maxRequests && b.end(end+1)-b.offs[first] <= maxBytes {
		end++
	}
	return end
}

// end returns the offset at which request n-1 ends.
func (b *Batch) end(n int) int {
	if n < len(b.offs) {
		return b.offs[n]
	}
	return len(b.B)
}
