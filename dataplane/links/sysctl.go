package links

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
)

// Sysctl is one setting below /proc/sys, e.g. "net/ipv4/conf/eth0/rp_filter". Dots are not separators: device names may
// contain them.
type Sysctl struct {
	Path  string
	Value string
}

// SetSysctls writes settings of the network namespace of a Linux interface that is configured, in order, leaving alone what
// has its value already. It belongs on the scheduler's goroutine.
func (b *Backend) SetSysctls(ns *namespace, settings ...Sysctl) error {
	h, err := b.enter(b.nsPath(ns))
	if err != nil {
		return err
	}
	return b.inNS(h, func() error { return writeSysctls(h, settings) })
}

// prepareIPv6 makes a device ready for IPv6 addresses: IPv6 is on, nothing on the link configures it for us, and its own link-local address
// is usable at once.
func (b *Backend) prepareIPv6(h *nsHandle, dev string) error {
	conf := "net/ipv6/conf/" + dev + "/"
	settings := []Sysctl{{conf + "disable_ipv6", "0"}}
	if dev != loopbackDev {
		settings = []Sysctl{{conf + "accept_ra", "0"}, {conf + "accept_dad", "0"}, settings[0]}
	}
	return b.inNS(h, func() error { return writeSysctls(h, settings) })
}

// closeHostEnd keeps the other end of a VETH pair, which is a pod's, from configuring the node. It comes before either end is up
// in a pod. An end whose frames VPP reads takes no part in the host's own stack: without that a pod could reach the node past
// VPP, by the link-local address or by the MAC of this end.
func (b *Backend) closeHostEnd(h *nsHandle, v *iface, dev string) error {
	conf4, conf6 := "net/ipv4/conf/"+dev+"/", "net/ipv6/conf/"+dev+"/"
	for4 := []Sysctl{{conf4 + "accept_redirects", "0"}}
	for6 := []Sysctl{{conf6 + "accept_ra", "0"}, {conf6 + "autoconf", "0"}, {conf6 + "accept_redirects", "0"}}
	if readByVPP(v) {
		for4 = append(for4, Sysctl{conf4 + "rp_filter", "1"}, Sysctl{conf4 + "arp_ignore", "8"})
		for6 = append(for6, Sysctl{conf6 + "disable_ipv6", "1"})
	}
	return b.inNS(h, func() error {
		if _, err := os.Stat("/proc/sys/" + conf6); errors.Is(err, fs.ErrNotExist) {
			for6 = nil // no IPv6 in the kernel, or too small an MTU for it
		}
		return writeSysctls(h, append(for4, for6...))
	})
}

// readByVPP: only the ends that VPP's af_packet reads have no checksum offload.
func readByVPP(v *iface) bool {
	return v.GetVeth().GetTxChecksumOffloading() == linux_interfaces.VethLink_CHKSM_OFFLOAD_DISABLED
}

func writeSysctls(h *nsHandle, settings []Sysctl) error {
	var buf [64]byte
	for _, s := range settings {
		if !filepath.IsLocal(s.Path) || strings.ContainsAny(s.Path, "\x00\n") {
			return fmt.Errorf("sysctl %q is not a path below /proc/sys", s.Path)
		}
		err := writeSysctl(filepath.Join("/proc/sys", s.Path), s.Value, buf[:])
		if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(s.Path, "net/ipv6/") {
			return fmt.Errorf("sysctl %s in %s: %w; is IPv6 switched off in the kernel?", s.Path, h, err)
		}
		if err != nil {
			return fmt.Errorf("set sysctl %s to %s in %s: %w", s.Path, s.Value, h, err)
		}
	}
	return nil
}

// writeSysctl writes only what differs, since /proc/sys may be read-only and already right.
func writeSysctl(path, value string, buf []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	n, err := f.Read(buf)
	f.Close()
	if err == nil && string(bytes.TrimSpace(buf[:n])) == value {
		return nil
	}
	return os.WriteFile(path, []byte(value), 0)
}
