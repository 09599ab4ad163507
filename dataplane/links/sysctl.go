package links

import (
	"errors"
	"io/fs"

	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/netlink/sysctl"
)

// prepareIPv6 prepares a device for IPv6 addresses: IPv6 is enabled, autoconfiguration from the link is disabled, and the device's own
// link-local address is usable immediately.
func (b *Backend) prepareIPv6(h *nsHandle, dev string) error {
	conf := "net/ipv6/conf/" + dev + "/"
	settings := []sysctl.Setting{{Path: conf + "disable_ipv6", Value: "0"}}
	if dev != loopbackDev {
		settings = []sysctl.Setting{{Path: conf + "accept_ra", Value: "0"}, {Path: conf + "accept_dad", Value: "0"}, settings[0]}
	}
	return h.sysctls().Write(settings...)
}

// closeHostEnd prevents a pod, which has the other end of a VETH pair, from configuring the node. It runs before either end is up. An end whose
// frames VPP reads takes no part in the host's own network stack: otherwise a pod could reach the node past VPP, by the link-local address or
// by the MAC of this end.
func (b *Backend) closeHostEnd(h *nsHandle, v *iface, dev string) error {
	conf4, conf6 := "net/ipv4/conf/"+dev+"/", "net/ipv6/conf/"+dev+"/"
	for4 := []sysctl.Setting{{Path: conf4 + "accept_redirects", Value: "0"}, {Path: conf4 + "rp_filter", Value: "1"}}
	for6 := []sysctl.Setting{{Path: conf6 + "accept_ra", Value: "0"}, {Path: conf6 + "autoconf", Value: "0"}, {Path: conf6 + "accept_redirects", Value: "0"}}
	if readByVPP(v) {
		for4 = append(for4, sysctl.Setting{Path: conf4 + "arp_ignore", Value: "8"})
		for6 = append(for6, sysctl.Setting{Path: conf6 + "disable_ipv6", Value: "1"})
	}
	if _, err := h.sysctls().Get(conf6 + "accept_ra"); errors.Is(err, fs.ErrNotExist) {
		for6 = nil // the kernel has no IPv6, or the MTU is too small for it
	}
	return h.sysctls().Write(append(for4, for6...)...)
}

// readByVPP reports whether VPP's af_packet reads the end: only such ends have no checksum offload.
func readByVPP(v *iface) bool {
	return v.GetVeth().GetTxChecksumOffloading() == linux_interfaces.VethLink_CHKSM_OFFLOAD_DISABLED
}

// sysctls writes settings of the namespace.
func (h *nsHandle) sysctls() sysctl.Writer { return sysctl.Writer{NS: h.inside()} }
