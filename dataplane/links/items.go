package links

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/scheduler"
)

const (
	kindUp   = "linux-link-up"
	kindAddr = "linux-address"
)

// linkUp is the item of an interface that is enabled.
type linkUp struct {
	logical string
}

// address is the item of one address of an interface.
type address struct {
	logical string
	prefix  netip.Prefix
	// afterUp is set for IPv6 on an interface that is enabled: going down drops IPv6 addresses.
	afterUp bool
}

func (b *Backend) deriveLink(_ string, v *iface, put func(kind, itemKey string, item any)) {
	if v.GetEnabled() {
		put(kindUp, nb.LinuxInterfaceStateKey(v.GetName(), true), &linkUp{v.GetName()})
	}
	if v.GetLinkOnly() {
		return
	}
	for _, a := range v.GetIpAddresses() {
		p, err := netip.ParsePrefix(a)
		if err != nil {
			continue // rejected by Validate
		}
		item := &address{logical: v.GetName(), prefix: p, afterUp: v.GetEnabled() && p.Addr().Is6()}
		put(kindAddr, nb.LinuxInterfaceAddressKey(v.GetName(), nb.AddressStatic, a), item)
	}
}

func (b *Backend) upDescriptor() scheduler.Descriptor[*linkUp] {
	return scheduler.Descriptor[*linkUp]{
		Name:  kindUp,
		Rank:  scheduler.RankPodLink,
		Equal: func(_ string, desired, applied *linkUp) bool { return *desired == *applied },
		Create: func(op *scheduler.Op, _ string, v *linkUp) {
			b.queue(creates, op.Done, func() error {
				return b.onDevice(v.logical, func(h *nsHandle, d *device) error {
					return h.sock.exec(setLink(linkSpec{index: d.index, nsFD: -1, up: true}))
				})
			})
		},
		Delete: func(op *scheduler.Op, _ string, v *linkUp) {
			b.queue(deletes, op.Done, func() error {
				return unlessGone(b.onDevice(v.logical, func(h *nsHandle, d *device) error {
					if !d.tagged() {
						return nil // not ours, so it is not set down
					}
					return h.sock.exec(setLink(linkSpec{index: d.index, nsFD: -1, down: true}))
				}))
			})
		},
		Dump:            b.dumpUp,
		Retriable:       retriable,
		ImpliedByParent: true,
		Parent:          func(_ string, v *linkUp) string { return nb.LinuxInterfaceKey(v.logical) },
	}
}

func (b *Backend) addrDescriptor() scheduler.Descriptor[*address] {
	return scheduler.Descriptor[*address]{
		Name:  kindAddr,
		Rank:  scheduler.RankPodSetting,
		Equal: func(_ string, desired, applied *address) bool { return *desired == *applied },
		Deps: func(_ string, v *address, add func(string)) {
			if v.afterUp {
				add(nb.LinuxInterfaceStateKey(v.logical, true))
			}
		},
		Create: func(op *scheduler.Op, _ string, v *address) {
			b.queue(creates, op.Done, func() error { return b.addAddress(v) })
		},
		Delete: func(op *scheduler.Op, _ string, v *address) {
			b.queue(deletes, op.Done, func() error { return b.removeAddress(v) })
		},
		Dump:            b.dumpAddrs,
		Retriable:       retriable,
		ImpliedByParent: true,
		Parent:          func(_ string, v *address) string { return nb.LinuxInterfaceKey(v.logical) },
	}
}

func (b *Backend) addAddress(v *address) error {
	err := b.onDevice(v.logical, func(h *nsHandle, d *device) error {
		if v.prefix.Addr().Is6() && !d.ipv6 && d.tagged() {
			if err := b.prepareIPv6(h, d.name); err != nil {
				return err
			}
			d.ipv6 = true
		}
		return h.sock.exec(newAddr(d.index, v.prefix))
	})
	if err != nil {
		return fmt.Errorf("add address %s: %w", v.prefix, err)
	}
	return nil
}

func (b *Backend) removeAddress(v *address) error {
	err := b.onDevice(v.logical, func(h *nsHandle, d *device) error {
		if v.prefix.Addr().Is4() {
			b.heal[v.logical] = true
		}
		return h.sock.exec(delAddr(d.index, v.prefix))
	})
	if err := unlessGone(err); err != nil {
		return fmt.Errorf("remove address %s: %w", v.prefix, err)
	}
	return nil
}

// healAll restores the routes and neighbours of interfaces which lost an address or changed their MAC: the kernel drops routes and neighbours
// with the last IPv4 address, and neighbours also when the MAC changes, although they are still desired.
func (b *Backend) healAll() {
	for logical := range b.heal {
		delete(b.heal, logical)
		b.healLink(logical)
	}
}

// healAttached restores the neighbours of TAPs to which VPP has attached again. Attaching sets their MAC, even to the same value, and may
// happen after a dump has found all neighbours present.
func (b *Backend) healAttached() {
	for logical, vppTap := range b.attachingTaps() {
		if b.tapDevice != nil && vppTap != "" {
			if _, _, there := b.tapDevice(vppTap); !there {
				continue // not attached yet
			}
		}
		b.mu.Lock()
		delete(b.attaching, logical)
		b.mu.Unlock()
		b.healLink(logical)
	}
}

// attachingTaps returns the Linux ends to which VPP is about to attach, with the names of their VPP ends; nil if there are none.
func (b *Backend) attachingTaps() map[string]string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if len(b.attaching) == 0 {
		return nil
	}
	taps := make(map[string]string, len(b.attaching))
	for logical := range b.attaching {
		taps[logical] = ""
		if d := b.links[logical]; d != nil {
			taps[logical] = d.vppTap
		}
	}
	return taps
}

func (b *Backend) healLink(logical string) {
	err := unlessGone(b.onDevice(logical, func(h *nsHandle, d *device) error {
		for _, viaGateway := range []bool{false, true} {
			for _, r := range d.routes {
				if r.gw.IsValid() != viaGateway {
					continue
				}
				err := requestRoute(h, d.index, &r, unix.NLM_F_EXCL)
				if err != nil && !errors.Is(err, unix.EEXIST) { // most of them still exist
					return err
				}
			}
		}
		for ip, mac := range d.neighs {
			if err := h.sock.exec(newNeigh(d.index, ip, mac)); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		b.log.Warn("lost routes or neighbours could not be restored; a resync follows", "interface", logical, "error", err)
	}
}

// enabledUp reports whether a link is enabled.
func enabledUp(l linkInfo) bool { return l.flags&unix.IFF_UP != 0 }

// typeOf returns the type of a link that we own.
func typeOf(l linkInfo) linux_interfaces.Interface_Type {
	switch {
	case l.kind == "veth":
		return linux_interfaces.Interface_VETH
	case l.kind == "tun":
		return linux_interfaces.Interface_TAP_TO_VPP
	case l.kind == "dummy":
		return linux_interfaces.Interface_DUMMY
	case l.flags&unix.IFF_LOOPBACK != 0:
		return linux_interfaces.Interface_LOOPBACK
	}
	return linux_interfaces.Interface_UNDEFINED
}
