package links

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// place moves a device into its namespace, names, configures and tags it, all with one message, and indexes it. If the message fails half-way,
// the device is moved back.
func (b *Backend) place(v *iface, from *nsHandle, l linkInfo, name string, to *nsHandle, group *uint32) error {
	tag := tagOf(v.GetName())
	spec := linkSpec{index: l.index, nsFD: -1, mac: macOf(v), mtu: v.GetMtu(), alias: &tag, group: group}
	if name != l.name || from != to {
		spec.name = name
	}
	if from != to {
		spec.nsFD = to.FD()
	}
	if err := rename(from, spec); err != nil {
		err = fmt.Errorf("move device %s from %s to %s as %s: %w", l.name, from, to, name, err)
		if errors.Is(err, unix.EEXIST) {
			err = fmt.Errorf("%w: %w; rename or remove the device that has the name", err, errForeign)
		}
		return errors.Join(err, b.unplace(from, l, name, tag, to))
	}
	index := l.index
	if from != to {
		moved, err := to.sock.link(name)
		if err != nil {
			return fmt.Errorf("find %s in %s after moving it there: %w", name, to, err)
		}
		index = moved.index
	}
	d := newDevice(v, to, index, name)
	if d.mac == nil {
		d.mac = l.mac
	}
	d.pooled = group != nil && *group == groupPooled
	b.addDevice(d)
	return nil
}

// unplace reverts a move that failed after the device had changed namespaces (its MAC, MTU or name was rejected).
func (b *Backend) unplace(from *nsHandle, l linkInfo, name, tag string, to *nsHandle) error {
	if from == to {
		return nil
	}
	if _, err := from.sock.link(l.name); !errors.Is(err, errNoLink) {
		return err // the device was not moved, or its location is unknown
	}
	// The kernel renames last.
	for _, now := range []string{l.name, name} {
		moved, err := to.sock.link(now)
		if err != nil || moved.alias != l.alias && moved.alias != tag {
			continue
		}
		spec := linkSpec{index: moved.index, name: l.name, nsFD: from.FD(), alias: &l.alias, down: true}
		if err := rename(to, spec); err != nil {
			return fmt.Errorf("move %s back from %s to %s: %w", now, to, from, err)
		}
		return nil
	}
	return nil
}

// moveBack sets a device that is no longer used down and moves it into the agent's namespace, under the first of names that is free there.
func (b *Backend) moveBack(h *nsHandle, index int32, alias string, names ...string) error {
	host, err := b.enter("")
	if err != nil {
		return err
	}
	// The kernel first moves and then renames the device: a name that is in use would leave it in the wrong state.
	name := ""
	for _, n := range names {
		l, err := host.sock.link(n)
		if errors.Is(err, errNoLink) {
			name = n
			break
		}
		if err != nil {
			return err
		}
		if h == host && l.index == index {
			break // the device already has this name
		}
	}
	spec := linkSpec{index: index, nsFD: -1, name: name, alias: &alias, down: true}
	if h != host {
		spec.nsFD = host.FD()
	}
	if err := rename(h, spec); err != nil {
		return fmt.Errorf("move it to %s as %q: %w", host, name, err)
	}
	if h == host {
		return b.flushAddrs(host, index)
	}
	return nil
}

// flushAddrs removes all our addresses from a device.
func (b *Backend) flushAddrs(h *nsHandle, index int32) error {
	addrs, err := h.sock.addrs(index)
	if errors.Is(err, netlink.ErrTooMany) {
		return nil // the pod has added addresses; they end with its namespace
	}
	if err != nil {
		return fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addrs {
		if a.index != index || !a.ours {
			continue
		}
		if err := unlessGone(h.sock.exec(delAddr(index, a.prefix))); err != nil {
			return fmt.Errorf("remove address %s: %w", a.prefix, err)
		}
	}
	return nil
}
