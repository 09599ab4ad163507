package links

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

const (
	tunDevice = "/dev/net/tun"
	qdiscRoot = 0xFFFFFFFF // TC_H_ROOT
)

var errNoTuns = errors.New("the agent cannot make TAPs")

// MakeTap creates the Linux end of a TAP before VPP attaches to it: a persistent device called dev (a TUN if tun is set), down, in the network
// namespace netns (a path, a name in the directory of namespaces, or empty for the agent's own).
//
// VPP could create the device itself, but VPP's TAPs have several queues, for which the kernel keeps 256 transmit queues. When such a device is
// set up, each queue gets a queueing discipline with rings for three times the queue length: 6 MB and, from the 15th device on, 15 to 22 ms,
// during which VPP's main thread waits. A device that has a discipline when it is set up keeps it, so this one gets "noqueue". "noqueue" is
// also the correct discipline: the driver never makes the kernel wait, it drops packets that do not fit in its ring.
//
// made is false, and nothing was done, if a device of that name already exists, or if the agent is not permitted to create TAPs: then VPP
// attaches to the device or creates one. MakeTap must be called on the scheduler's goroutine.
func (b *Backend) MakeTap(netns, dev string, tun bool) (made bool, err error) {
	path := b.tapNamespace(netns)
	made, err = b.makeTap(path, dev, tun)
	return made, podOnly(path, err)
}

func (b *Backend) makeTap(path, dev string, tun bool) (made bool, err error) {
	h, err := b.enter(path)
	if err != nil {
		return false, fmt.Errorf("make TAP %s: %w", dev, err)
	}
	if _, err := h.sock.link(dev); !errors.Is(err, errNoLink) {
		return false, err
	}
	err = b.inNS(h, func() error { return newPersistentTap(dev, tun) })
	if errors.Is(err, errNoTuns) {
		b.log.Debug("TAPs are made by VPP, which takes longer", "error", err)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("make TAP %s in %s: %w", dev, h, err)
	}
	l, err := h.sock.link(dev)
	if err != nil {
		return false, fmt.Errorf("find TAP %s in %s after making it: %w", dev, h, err)
	}
	if err := h.sock.exec(newQdisc(l.index, "noqueue")); err != nil {
		// A kernel without queueing disciplines does not attach one, either.
		b.log.Debug("the TAP keeps the kernel's queueing disciplines", "device", dev, "namespace", h.path, "error", err)
	}
	return true, nil
}

// DropTap removes a device that MakeTap created and VPP has not attached to. It must be called on the scheduler's goroutine.
func (b *Backend) DropTap(netns, dev string) error {
	path := b.tapNamespace(netns)
	h, err := b.enter(path)
	if err == nil {
		var l linkInfo
		if l, err = h.sock.link(dev); err == nil && orphaned(l) && l.alias == "" {
			err = h.sock.exec(delLink(l.index))
		}
	}
	if err := unlessGone(err); err != nil {
		return podOnly(path, fmt.Errorf("remove TAP %s, which VPP did not take: %w", dev, err))
	}
	return nil
}

// tapNamespace returns the path of a namespace in the notation of VPP.
func (b *Backend) tapNamespace(netns string) string {
	if netns == "" || strings.Contains(netns, "/") {
		return netns
	}
	return filepath.Join(b.netnsDir, netns)
}

// newPersistentTap creates a device with the same flags as VPP: with other flags, VPP could not attach.
func newPersistentTap(dev string, tun bool) error {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("%w: open %s: %w", errNoTuns, tunDevice, err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(dev)
	if err != nil {
		return err
	}
	flags := uint16(unix.IFF_TAP)
	if tun {
		flags = unix.IFF_TUN
	}
	req.SetUint16(flags | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_MULTI_QUEUE)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TUNSETIFF, uintptr(unsafe.Pointer(req))); errno != 0 {
		return fmt.Errorf("TUNSETIFF: %w", errno)
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1); err != nil {
		return fmt.Errorf("TUNSETPERSIST: %w", err)
	}
	return nil
}

// newQdisc returns a request that replaces the root queueing discipline of a link.
func newQdisc(index int32, kind string) *netlink.Batch {
	h := make([]byte, sizeofTcMsg)
	binary.NativeEndian.PutUint32(h[4:], uint32(index))
	binary.NativeEndian.PutUint32(h[12:], qdiscRoot)
	b := &netlink.Batch{}
	b.Begin(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, h)
	b.Text(unix.TCA_KIND, kind)
	return b
}

const sizeofTcMsg = 20 // struct tcmsg
