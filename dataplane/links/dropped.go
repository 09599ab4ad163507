package links

import (
	"encoding/binary"
	"fmt"
	"runtime"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// TapAt is the kernel's end of a TAP.
type TapAt struct {
	Netns  string // path; empty: the agent's own
	Device string
}

// TapsDropped is how many packets the kernel has dropped at each TAP, because VPP had not taken those before: the device's tx_dropped. It is 0
// where it cannot be read, as when the pod has gone.
func (m *HostMonitor) TapsDropped(taps []TapAt) ([]uint64, error) {
	out := make([]uint64, len(taps))
	home, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("open the agent's network namespace: %w", err)
	}
	defer home.Close()
	for i, at := range taps {
		s, err := m.sockIn(int(home), at.Netns)
		if err != nil {
			continue
		}
		if found, err := listing(s, getStats(at.Device), parseTxDropped); err == nil && len(found) == 1 {
			out[i] = found[0]
		}
		s.close()
	}
	return out, nil
}

// sockIn opens a socket in a namespace.
func (m *HostMonitor) sockIn(home int, path string) (s *sock, err error) {
	if path == "" {
		return newSock(m.timeout, nil)
	}
	fd, err := openNSFile(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	runtime.LockOSThread()
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("enter %s: %w", path, err)
	}
	s, err = newSock(m.timeout, nil)
	if back := unix.Setns(home, unix.CLONE_NEWNET); back != nil {
		// The thread stays locked: going on here would use the pod's network instead of the host's.
		panic(fmt.Sprintf("links: cannot leave %s: %v", path, back))
	}
	runtime.UnlockOSThread()
	return s, err
}

// getStats asks for a link with its counters.
func getStats(name string) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	return req
}

// txDroppedAt is where struct rtnl_link_stats64 has tx_dropped.
const txDroppedAt = 7 * 8

func parseTxDropped(payload []byte) (n uint64, ok bool, err error) {
	err = attributes(payload, unix.SizeofIfInfomsg, func(typ uint16, v []byte) {
		if typ == unix.IFLA_STATS64 && len(v) >= txDroppedAt+8 {
			n, ok = binary.NativeEndian.Uint64(v[txDroppedAt:]), true
		}
	})
	return n, ok, err
}
