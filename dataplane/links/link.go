package links

import (
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/nb/linux/namespace"
	"contiv.dev/vswitch/dataplane/scheduler"
)

type (
	iface     = linux_interfaces.Interface
	offload   = linux_interfaces.VethLink_ChecksumOffloading
	namespace = linux_namespace.NetNamespace
)

const (
	kindLink    = "linux-interface"
	tagPrefix   = "contiv:"
	tagPeer     = "contiv-peer:"
	maxAlias    = 255
	minMTU      = 68
	maxMTU      = 65535
	loopbackDev = "lo"
)

// tagOf returns the alias of the device of a logical interface.
func tagOf(logical string) string { return tagPrefix + logical }

// logicalOf returns the logical name in the alias of a link; ok is false if the link is not a device of ours. A pod can give any link in its namespace
// any alias. Links of types that this package does not create, and names whose key would change or belong to another kind (../), are not ours.
func logicalOf(l linkInfo) (logical string, ok bool) {
	logical, ok = strings.CutPrefix(l.alias, tagPrefix)
	return logical, ok && plainName(logical) && typeOf(l) != linux_interfaces.Interface_UNDEFINED
}

// plainName reports whether the key of an interface contains its name unchanged.
func plainName(logical string) bool {
	return nb.LinuxInterfaceKey(logical) == nb.LinuxInterfacePrefix+logical
}

// spareName returns the name of an end of a VETH pair, or of a TAP, while it has no value.
func spareName(logical string) string {
	h := fnv.New64a()
	h.Write([]byte(logical))
	return fmt.Sprintf("cv%013x", h.Sum64()>>12)
}

// deviceName returns the desired name of the device of v.
func deviceName(v *iface) string {
	if v.GetType() == linux_interfaces.Interface_LOOPBACK {
		return loopbackDev
	}
	if n := v.GetHostIfName(); n != "" {
		return n
	}
	return v.GetName()
}

// linkDescriptor returns the descriptor of Linux interfaces.
func (b *Backend) linkDescriptor() scheduler.Descriptor[*iface] {
	return scheduler.Descriptor[*iface]{
		Name:      kindLink,
		Prefix:    nb.LinuxInterfacePrefix,
		Rank:      scheduler.RankHostLink,
		Validate:  validateLink,
		Equal:     func(_ string, desired, applied *iface) bool { return b.linkEqual(desired, applied) },
		Deps:      linkDeps,
		Create:    func(op *scheduler.Op, _ string, v *iface) { b.queueLink(creates, op, v) },
		Update:    b.updateLink,
		CanUpdate: func(_ string, applied, desired *iface) bool { return b.samePlace(desired, applied) },
		Delete:    func(op *scheduler.Op, _ string, v *iface) { b.queueLink(deletes, op, v) },
		Derive:    b.deriveLink,
		Dump:      b.dumpLinks,
		Retriable: retriable,
	}
}

func validateLink(_ string, v *iface) error {
	switch v.GetType() {
	case linux_interfaces.Interface_VETH:
		if p := v.GetVeth().GetPeerIfName(); p == "" || p == v.GetName() {
			return fmt.Errorf("veth.peer_if_name is %q: name the interface at the other end", p)
		}
	case linux_interfaces.Interface_TAP_TO_VPP:
		if v.GetTap().GetVppTapIfName() == "" {
			return fmt.Errorf("tap.vpp_tap_if_name is empty: name the VPP interface at the other end")
		}
	case linux_interfaces.Interface_LOOPBACK, linux_interfaces.Interface_EXISTING, linux_interfaces.Interface_DUMMY:
	default:
		return fmt.Errorf("type %s is not supported", v.GetType())
	}
	if n := len(tagOf(v.GetName())); v.GetName() == "" || n > maxAlias-len(tagPeer) {
		return fmt.Errorf("name %q must have 1 to %d characters", v.GetName(), maxAlias-len(tagPeer)-len(tagPrefix))
	}
	if !plainName(v.GetName()) {
		return fmt.Errorf("name %q must be a path without empty parts, . and .., because it is part of a key", v.GetName())
	}
	if err := validateDeviceName(v); err != nil {
		return err
	}
	if err := validateNamespace(v.GetNamespace()); err != nil {
		return fmt.Errorf("namespace.%w", err)
	}
	if m := v.GetPhysAddress(); m != "" {
		if hw, err := net.ParseMAC(m); err != nil || len(hw) != 6 {
			return fmt.Errorf("phys_address %q is not a MAC address", m)
		}
	}
	if m := v.GetMtu(); m != 0 && (m < minMTU || m > maxMTU) {
		return fmt.Errorf("mtu %d is not between %d and %d", m, minMTU, maxMTU)
	}
	for _, a := range v.GetIpAddresses() {
		if _, err := netip.ParsePrefix(a); err != nil {
			return fmt.Errorf("ip_addresses: %q is not an address with a mask", a)
		}
	}
	if v.GetVrfMasterInterface() != "" {
		return fmt.Errorf("vrf_master_interface is not supported")
	}
	return nil
}

func validateDeviceName(v *iface) error {
	name := deviceName(v)
	switch {
	case v.GetHostIfName() == "" && len(name) > maxName:
		return fmt.Errorf("host_if_name is empty and name %q, which would stand in, is longer than %d characters", name, maxName)
	case len(name) > maxName:
		return fmt.Errorf("host_if_name %q is longer than %d characters", name, maxName)
	case name == "." || name == ".." || strings.ContainsAny(name, "/: \t\n%"):
		return fmt.Errorf("host_if_name %q is not a device name", name)
	}
	return nil
}

func validateNamespace(ref *namespace) error {
	r := ref.GetReference()
	switch ref.GetType() {
	case linux_namespace.NetNamespace_UNDEFINED:
		return nil
	case linux_namespace.NetNamespace_NSID:
		if r == "" || r == "." || r == ".." || strings.Contains(r, "/") {
			return fmt.Errorf("reference %q is not the name of a network namespace", r)
		}
	case linux_namespace.NetNamespace_PID:
		if pid, err := strconv.Atoi(r); err != nil || pid <= 0 {
			return fmt.Errorf("reference %q is not a process ID", r)
		}
	case linux_namespace.NetNamespace_FD:
		if !filepath.IsAbs(r) {
			return fmt.Errorf("reference %q is not an absolute path", r)
		}
	default:
		return fmt.Errorf("type %s is not supported", ref.GetType())
	}
	return nil
}

func linkDeps(_ string, v *iface, add func(string)) {
	if v.GetType() == linux_interfaces.Interface_TAP_TO_VPP {
		add(nb.VppInterfaceKey(v.GetTap().GetVppTapIfName()))
	}
}

// samePlace reports whether two versions of an interface are the same device under the same name.
func (b *Backend) samePlace(desired, applied *iface) bool {
	return desired.GetType() == applied.GetType() &&
		b.nsPath(desired.GetNamespace()) == b.nsPath(applied.GetNamespace()) &&
		deviceName(desired) == deviceName(applied) &&
		desired.GetVeth().GetPeerIfName() == applied.GetVeth().GetPeerIfName() &&
		desired.GetTap().GetVppTapIfName() == applied.GetTap().GetVppTapIfName()
}

// linkEqual ignores properties that are separate items: addresses and link-up.
func (b *Backend) linkEqual(desired, applied *iface) bool {
	if !b.samePlace(desired, applied) {
		return false
	}
	if m := desired.GetMtu(); m != 0 && m != applied.GetMtu() {
		return false
	}
	if m := macOf(desired); m != nil && !slices.Equal(m, macOf(applied)) {
		return false
	}
	d, a := desired.GetVeth(), applied.GetVeth()
	return offloaded(d.GetTxChecksumOffloading()) == offloaded(a.GetTxChecksumOffloading()) &&
		offloaded(d.GetRxChecksumOffloading()) == offloaded(a.GetRxChecksumOffloading())
}

// offloaded returns an offload setting; the default of a VETH is on.
func offloaded(o offload) bool { return o != linux_interfaces.VethLink_CHKSM_OFFLOAD_DISABLED }

// macOf returns the MAC that v requests, nil if it requests none.
func macOf(v *iface) net.HardwareAddr {
	if v.GetPhysAddress() == "" || v.GetLinkOnly() {
		return nil
	}
	hw, err := net.ParseMAC(v.GetPhysAddress())
	if err != nil {
		return nil
	}
	return hw
}

// queueLink queues the creation or removal of the device of v.
func (b *Backend) queueLink(c class, op *scheduler.Op, v *iface) {
	making := c == creates
	done := func(err error) { op.Done(podOnly(b.nsPath(v.GetNamespace()), err)) }
	switch v.GetType() {
	case linux_interfaces.Interface_VETH:
		end := &vethEnd{name: v.GetName(), peer: v.GetVeth().GetPeerIfName(), v: v}
		b.tasks = append(b.tasks, &task{class: c, veth: end, done: done})
		return
	case linux_interfaces.Interface_TAP_TO_VPP:
		b.queue(c, done, choose(making, b.createTap, b.deleteTap, v))
	case linux_interfaces.Interface_LOOPBACK:
		b.queue(c, done, choose(making, b.createLoopback, b.deleteUnowned, v))
	case linux_interfaces.Interface_EXISTING:
		b.queue(c, done, choose(making, b.createExisting, b.deleteUnowned, v))
	case linux_interfaces.Interface_DUMMY:
		b.queue(c, done, choose(making, b.createDummy, b.deleteOwned, v))
	default:
		done(fmt.Errorf("type %s is not supported", v.GetType()))
	}
}

func choose(making bool, create, remove func(*iface) error, v *iface) func() error {
	if making {
		return func() error { return create(v) }
	}
	return func() error { return remove(v) }
}

// updateLink changes properties that can be changed in place: MAC, MTU and offloads.
func (b *Backend) updateLink(op *scheduler.Op, _ string, applied, desired *iface) {
	b.queue(creates, op.Done, func() error {
		return b.onDevice(desired.GetName(), func(h *nsHandle, d *device) error {
			spec := linkSpec{index: d.index, nsFD: -1}
			if m := desired.GetMtu(); m != applied.GetMtu() {
				spec.mtu = m
			}
			if m := macOf(desired); !slices.Equal(m, macOf(applied)) {
				spec.mac = m
				b.heal[desired.GetName()] = true // the kernel drops neighbours when the MAC changes
			}
			if spec.mtu != 0 || spec.mac != nil {
				if err := h.sock.exec(setLink(spec)); err != nil {
					return fmt.Errorf("set MAC and MTU: %w", err)
				}
				if spec.mac != nil {
					b.mu.Lock()
					d.mac = spec.mac
					b.mu.Unlock()
				}
			}
			return updateOffloads(h, d.name, desired, offloadsOf(applied))
		})
	})
}

// wantsIPv6 reports whether we manage the IPv6 settings of the interface and it has IPv6 addresses.
func wantsIPv6(v *iface) bool {
	if v.GetLinkOnly() || v.GetType() == linux_interfaces.Interface_EXISTING {
		return false
	}
	for _, a := range v.GetIpAddresses() {
		if p, err := netip.ParsePrefix(a); err == nil && p.Addr().Is6() {
			return true
		}
	}
	return false
}

// newDevice returns the index entry of v's device.
func newDevice(v *iface, h *nsHandle, index int32, name string) *device {
	return &device{
		logical: v.GetName(), typ: v.GetType(), path: h.path, id: h.ID(), index: index, name: name,
		peer: v.GetVeth().GetPeerIfName(), vppTap: v.GetTap().GetVppTapIfName(), mac: macOf(v),
	}
}

// finish completes a device that is in place, tagged and indexed: it sets offloads and sysctls. A new device has the kernel's defaults.
func (b *Backend) finish(h *nsHandle, v *iface, name string, isNew bool) error {
	if v.GetType() == linux_interfaces.Interface_VETH {
		present, err := offloads{rx: true, tx: true}, error(nil)
		if !isNew {
			present, err = readOffloads(h, name)
		}
		if err == nil {
			err = updateOffloads(h, name, v, present)
		}
		if err != nil {
			return err
		}
	}
	if v.GetType() == linux_interfaces.Interface_VETH && h.path == "" && len(v.GetIpAddresses()) == 0 {
		return b.closeHostEnd(h, v, name)
	}
	if !wantsIPv6(v) || h.path == "" && name == loopbackDev {
		return nil
	}
	if err := b.prepareIPv6(h, name); err != nil {
		return err
	}
	if d := b.device(v.GetName()); d != nil {
		d.ipv6 = true
	}
	return nil
}

// ours reports whether l is the device of a logical interface, or the remainder of an attempt to create it.
func ours(l linkInfo, logical string) bool {
	return l.alias == tagOf(logical) || l.alias == tagPeer+logical || l.alias == "" && l.group == groupNew
}
