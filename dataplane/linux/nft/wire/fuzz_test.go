package wire

import "testing"

// FuzzParse: reading arbitrary data from a socket does not panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x14\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xfe\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		HashOf(data)
		_ = elementOf(data).String()
	})
}
