package links

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

// TapAt is the kernel's end of a TAP.
type TapAt struct {
	Netns  string // path; empty: the agent's own
	Device string
}

// TapsDropped returns, for each TAP, the number of packets that the kernel dropped because VPP had not read earlier ones: the device's
// tx_dropped. It is 0 if it cannot be read, for example when the pod is gone.
func (m *HostMonitor) TapsDropped(taps []TapAt) []uint64 {
	out := make([]uint64, len(taps))
	for i, at := range taps {
		n, err := m.tapDropped(at)
		if err == nil {
			out[i] = n
		}
	}
	return out
}

func (m *HostMonitor) tapDropped(at TapAt) (uint64, error) {
	ns, err := nsdo.Open(at.Netns)
	if err != nil {
		return 0, err
	}
	defer ns.Close()
	s, err := newSock(ns, m.timeout, nil)
	if err != nil {
		return 0, err
	}
	defer s.close()
	n, _, err := one(s, getStats(at.Device), parseTxDropped)
	return n, err
}

// getStats requests a link with its counters.
func getStats(name string) *netlink.Batch {
	b := &netlink.Batch{}
	b.Begin(unix.RTM_GETLINK, 0, make([]byte, unix.SizeofIfInfomsg))
	b.Text(unix.IFLA_IFNAME, name)
	return b
}

// txDroppedAt is the offset of tx_dropped in struct rtnl_link_stats64.
const txDroppedAt = 7 * 8

func parseTxDropped(payload []byte) (n uint64, ok bool) {
	netlink.Attributes(payload, unix.SizeofIfInfomsg, func(typ uint16, v []byte) {
		if typ == unix.IFLA_STATS64 && len(v) >= txDroppedAt+8 {
			n, ok = binary.NativeEndian.Uint64(v[txDroppedAt:]), true
		}
	})
	return n, ok
}
