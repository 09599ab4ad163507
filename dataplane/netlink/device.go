package netlink

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
)

// createTap takes the Linux end of a TAP that VPP has made to its namespace. It may be there already, when only the agent was
// restarted or VPP has taken up a persistent TAP again.
func (b *Backend) createTap(v *iface) error {
	if err := b.placeTap(v); err != nil {
		return fmt.Errorf("TAP of VPP interface %s: %w", v.GetTap().GetVppTapIfName(), err)
	}
	d := b.device(v.GetName())
	h, err := b.enter(d.path)
	if err == nil {
		err = b.finish(h, v, d.name, true)
	}
	if err != nil {
		return errors.Join(err, b.deleteTap(v))
	}
	return nil
}

func (b *Backend) placeTap(v *iface) error {
	to, err := b.enter(b.nsPath(v.GetNamespace()))
	if err != nil {
		return err
	}
	host, err := b.enter("")
	if err != nil {
		return err
	}
	name := deviceName(v)
	if l, err := to.sock.link(name); err == nil && l.alias == tagOf(v.GetName()) {
		return b.place(v, to, l, name, to, nil)
	}
	dev, inPlace, known := "", false, false
	if b.tapDevice != nil {
		dev, inPlace, known = b.tapDevice(v.GetTap().GetVppTapIfName())
	}
	// A TAP whose own name was taken when it came back from a namespace waits under its spare name.
	for _, candidate := range []string{dev, spareName(v.GetName())} {
		if candidate == "" || inPlace {
			continue
		}
		l, err := host.sock.link(candidate)
		if errors.Is(err, errNoLink) {
			continue
		}
		if err != nil {
			return err
		}
		if l.kind != "tun" || strings.HasPrefix(l.alias, tagPrefix) && l.alias != tagOf(v.GetName()) {
			continue // somebody else's device of that name
		}
		return b.place(v, host, l, name, to, nil)
	}
	links, err := to.sock.links()
	if err != nil {
		return fmt.Errorf("list the links of %s: %w", to, err)
	}
	for _, l := range links {
		if l.alias == tagOf(v.GetName()) || known && l.name == dev && l.kind == "tun" {
			return b.place(v, to, l, name, to, nil)
		}
	}
	return fmt.Errorf("its device %q is neither in the agent's namespace nor in %s: %w", dev, to, errNoLink)
}

// deleteTap gives the Linux end of a TAP back to the agent's namespace, where VPP made it. One that VPP made in its place stays
// there, only its name is made free: moving it would cost more than anything else on this path, and it goes with its VPP
// interface.
func (b *Backend) deleteTap(v *iface) error {
	if b.tapDevice != nil {
		if _, inPlace, ok := b.tapDevice(v.GetTap().GetVppTapIfName()); ok && inPlace {
			return b.freeName(v)
		}
	}
	err := b.onDevice(v.GetName(), func(h *nsHandle, d *device) error {
		names := []string{spareName(v.GetName())}
		if b.tapDevice != nil {
			if dev, _, ok := b.tapDevice(v.GetTap().GetVppTapIfName()); ok && dev != "" {
				names = []string{dev, names[0]}
			}
		}
		return b.moveBack(h, d.index, "", names...)
	})
	if err := unlessGone(err); err != nil {
		return fmt.Errorf("give the Linux end of TAP %s back: %w", v.GetTap().GetVppTapIfName(), err)
	}
	b.forget(v.GetName())
	return nil
}

// freeName renames a device that stays where it is.
func (b *Backend) freeName(v *iface) error {
	err := b.onDevice(v.GetName(), func(h *nsHandle, d *device) error {
		return rename(h, linkSpec{index: d.index, nsFD: -1, name: spareName(v.GetName())})
	})
	if err := unlessGone(err); err != nil {
		return fmt.Errorf("free the name of %s: %w", v.GetName(), err)
	}
	b.forget(v.GetName())
	return nil
}

// createDummy makes a dummy device in its namespace.
func (b *Backend) createDummy(v *iface) error {
	h, err := b.enter(b.nsPath(v.GetNamespace()))
	if err != nil {
		return err
	}
	name, group := deviceName(v), uint32(GroupNew)
	request := func() error {
		return h.sock.exec(newLink("dummy", linkSpec{nsFD: -1, name: name, mac: macOf(v), mtu: v.GetMtu(), group: &group}, nil))
	}
	err = request()
	if errors.Is(err, unix.EEXIST) {
		l, lookErr := h.sock.link(name)
		if lookErr == nil && !ours(l, v.GetName()) {
			return fmt.Errorf("device %s exists in %s: %w; rename or remove it", name, h, ErrForeign)
		}
		if lookErr == nil {
			lookErr = h.sock.exec(delLink(l.index))
		}
		if err = unlessGone(lookErr); err == nil {
			err = request()
		}
	}
	if err != nil {
		return fmt.Errorf("make dummy device %s in %s: %w", name, h, err)
	}
	l, err := h.sock.link(name)
	if err == nil {
		none := uint32(0)
		if err = b.place(v, h, l, name, h, &none); err == nil {
			err = b.finish(h, v, name, true)
		}
		if err != nil {
			b.forget(v.GetName())
			err = errors.Join(err, h.sock.exec(delLink(l.index)))
		}
	}
	return err
}

// createLoopback takes the loopback device of a namespace over; it comes up as its own item.
func (b *Backend) createLoopback(v *iface) error {
	h, err := b.enter(b.nsPath(v.GetNamespace()))
	if err != nil {
		return err
	}
	d := newDevice(v, h, loopbackIndex, loopbackDev)
	spec := linkSpec{index: loopbackIndex, nsFD: -1, mtu: v.GetMtu()}
	if d.tagged() {
		tag := tagOf(v.GetName())
		spec.alias = &tag
	}
	if spec.alias != nil || spec.mtu != 0 {
		if err := h.sock.exec(setLink(spec)); err != nil {
			return fmt.Errorf("set up lo in %s: %w", h, err)
		}
	}
	b.remember(d)
	return b.finish(h, v, loopbackDev, true)
}

// createExisting takes a device over that somebody else made and will remove.
func (b *Backend) createExisting(v *iface) error {
	h, err := b.enter(b.nsPath(v.GetNamespace()))
	if err != nil {
		return err
	}
	name := deviceName(v)
	l, err := h.sock.link(name)
	if err != nil {
		return fmt.Errorf("device %s in %s: %w; it is of type EXISTING and must be made by others", name, h, err)
	}
	if mac, mtu := macOf(v), v.GetMtu(); mac != nil || mtu != 0 {
		if err := h.sock.exec(setLink(linkSpec{index: l.index, nsFD: -1, mac: mac, mtu: mtu})); err != nil {
			return fmt.Errorf("set MAC and MTU of %s in %s: %w", name, h, err)
		}
	}
	b.remember(newDevice(v, h, l.index, name))
	return b.finish(h, v, name, true)
}

// deleteOwned removes a device of ours.
func (b *Backend) deleteOwned(v *iface) error {
	err := b.onDevice(v.GetName(), func(h *nsHandle, d *device) error { return h.sock.exec(delLink(d.index)) })
	if err := unlessGone(err); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	b.forget(v.GetName())
	return nil
}

// deleteUnowned lets a device go that we did not make: without our tag and addresses.
func (b *Backend) deleteUnowned(v *iface) error {
	err := b.onDevice(v.GetName(), func(h *nsHandle, d *device) error {
		if !v.GetLinkOnly() {
			for _, a := range v.GetIpAddresses() {
				p, err := netip.ParsePrefix(a)
				if err != nil {
					continue
				}
				if err := unlessGone(h.sock.exec(delAddr(d.index, p))); err != nil {
					return fmt.Errorf("remove address %s: %w", a, err)
				}
			}
		}
		if err := b.flushAddrs(h, d.index); err != nil || !d.tagged() {
			return err
		}
		none := ""
		return h.sock.exec(setLink(linkSpec{index: d.index, nsFD: -1, alias: &none, down: true}))
	})
	if err := unlessGone(err); err != nil {
		return err
	}
	b.forget(v.GetName())
	return nil
}
