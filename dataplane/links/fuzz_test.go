package links

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// FuzzParse tests that any message of the kernel is parsed or causes an error.
func FuzzParse(f *testing.F) {
	head := binary.NativeEndian.AppendUint32(nil, 32)
	head = binary.NativeEndian.AppendUint16(head, unix.RTM_NEWROUTE)
	f.Add(append(head, make([]byte, 26)...))
	f.Add([]byte{8, 0, 18, 0x80, 4, 0, 1, 0, 16, 0, 9, 0, 0xff, 0xff, 0, 0})
	f.Fuzz(func(_ *testing.T, data []byte) {
		parse := func(payload []byte) {
			parseLink(payload)
			parseAddr(payload)
			parseRoute(payload)
			parseNeigh(payload)
		}
		netlink.Messages(data, func(m netlink.Message) { parse(m.Payload) })
		parse(data)
	})
}
