package links

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// createDummy creates a dummy device in its namespace.
func (b *Backend) createDummy(v *iface) error {
	h, err := b.enter(b.nsPath(v.GetNamespace()))
	if err != nil {
		return err
	}
	name, group := deviceName(v), uint32(groupNew)
	request := func() error {
		return h.sock.exec(newLink("dummy", linkSpec{nsFD: -1, name: name, mac: macOf(v), mtu: v.GetMtu(), group: &group}, nil))
	}
	err = request()
	if errors.Is(err, unix.EEXIST) {
		l, lookErr := h.sock.link(name)
		if lookErr == nil && !ours(l, v.GetName()) {
			return fmt.Errorf("device %s exists in %s: %w; rename or remove it", name, h, errForeign)
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
			b.removeDevice(v.GetName())
			err = errors.Join(err, h.sock.exec(delLink(l.index)))
		}
	}
	return err
}

// createLoopback takes over the loopback device of a namespace; its link-up state is a separate item.
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
	b.addDevice(d)
	return b.finish(h, v, loopbackDev, true)
}

// createExisting takes over a device that another program created and will remove.
func (b *Backend) createExisting(v *iface) error {
	h, err := b.enter(b.nsPath(v.GetNamespace()))
	if err != nil {
		return err
	}
	name := deviceName(v)
	l, err := h.sock.link(name)
	if err != nil {
		return fmt.Errorf("device %s in %s: %w; it is of type EXISTING, so another program must create it", name, h, err)
	}
	if mac, mtu := macOf(v), v.GetMtu(); mac != nil || mtu != 0 {
		if err := h.sock.exec(setLink(linkSpec{index: l.index, nsFD: -1, mac: mac, mtu: mtu})); err != nil {
			return fmt.Errorf("set MAC and MTU of %s in %s: %w", name, h, err)
		}
	}
	b.addDevice(newDevice(v, h, l.index, name))
	return b.finish(h, v, name, true)
}

// deleteOwned removes a device of ours.
func (b *Backend) deleteOwned(v *iface) error {
	err := b.onDevice(v.GetName(), func(h *nsHandle, d *device) error { return h.sock.exec(delLink(d.index)) })
	if err := unlessGone(err); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	b.removeDevice(v.GetName())
	return nil
}

// deleteUnowned releases a device that we did not create: it removes our tag and addresses.
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
	b.removeDevice(v.GetName())
	return nil
}
