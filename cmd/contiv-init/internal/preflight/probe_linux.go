package preflight

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/lifecycle"
)

// For is the dataplane that needs a feature.
type For int

// The dataplanes.
const (
	ForBoth For = iota
	ForVPP
	ForLinux
	ForVXLAN // on Linux, if nodes are connected by VXLAN
)

// Feature is a feature that the kernel may have.
type Feature struct {
	Name     string
	For      For
	Optional bool
	Err      string // why the kernel does not have it; empty: it does
	Fix      string
}

// probeTimeout is long: modules may have to be loaded.
const probeTimeout = 20 * time.Second

// Probe tries the kernel's features in its own network namespace, which loads modules as real use does. It needs root.
func Probe(ctx context.Context, log *slog.Logger) ([]Feature, error) {
	jobs := lifecycle.NewGroup(ctx, log)
	done := make(chan []Feature, 1)
	jobs.Go("probe", func(context.Context) error {
		// The thread is never unlocked: it ends with the job, and its namespace is removed with it.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("network namespace for trials: %w; run as root", err)
		}
		done <- try()
		return nil
	})
	select {
	case features := <-done:
		return features, nil
	case err := <-jobs.Failed():
		return nil, err
	case <-time.After(probeTimeout):
		return nil, errors.New("the kernel does not respond; check dmesg")
	}
}

func try() []Feature {
	link := func(l netlink.Link) func() error { return func() error { return netlink.LinkAdd(l) } }
	trials := []struct {
		Feature
		try func() error
	}{
		{Feature{Name: "veth", Fix: "run modprobe veth"},
			link(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "pf0"}, PeerName: "pf1"})},
		{Feature{Name: "VXLAN", For: ForVXLAN, Fix: "run modprobe vxlan, or set nodeToNodeTransport: nooverlay in contiv.conf"},
			link(&netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: "pf2"}, VxlanId: 10, Port: vxlanPort})},
		{Feature{Name: "nf_tables", For: ForLinux, Fix: "run modprobe nf_tables; the kernel must be 5.2 or later"},
			queryNetfilter(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETGEN)},
		{Feature{Name: "connection tracking", For: ForLinux, Fix: "run modprobe nf_conntrack_netlink"},
			queryNetfilter(unix.NFNL_SUBSYS_CTNETLINK, ctGetStats)},
		{Feature{Name: "AF_PACKET", For: ForVPP, Fix: "run modprobe af_packet"}, tryPacket},
		{Feature{Name: "/dev/net/tun", For: ForVPP, Optional: true, Fix: "run modprobe tun; without, pods are wired by VETH"},
			readable("/dev/net/tun")},
		{Feature{Name: "/dev/vhost-net", For: ForVPP, Optional: true,
			Fix: "run modprobe vhost_net; without, pods are wired by VETH, " +
				"which is slower"}, readable("/dev/vhost-net")},
	}
	var out []Feature
	for _, t := range trials {
		if err := t.try(); err != nil {
			t.Err = err.Error()
		}
		out = append(out, t.Feature)
	}
	return out
}

func readable(path string) func() error {
	return func() error {
		_, err := os.Stat(path)
		return err
	}
}

func tryPacket() error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// ctGetStats is IPCTNL_MSG_CT_GET_STATS.
const ctGetStats = 5

// queryNetfilter sends a read request to a part of netfilter, which loads its module.
func queryNetfilter(subsystem, message uint16) func() error {
	return func() error { return query(subsystem<<8 | message) }
}

func query(kind uint16) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const header, nfgen = unix.NLMSG_HDRLEN, 4
	msg := make([]byte, header+nfgen)
	order := binary.NativeEndian
	order.PutUint32(msg, uint32(len(msg)))
	order.PutUint16(msg[4:], kind)
	order.PutUint16(msg[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n >= header+4 && order.Uint16(answer[4:]) == unix.NLMSG_ERROR {
		if errno := -int32(order.Uint32(answer[header:])); errno != 0 {
			return unix.Errno(errno)
		}
	}
	return nil
}
