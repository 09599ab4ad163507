package links

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/nb/linux/namespace"
	"contiv.dev/vswitch/internal/nsdo"
)

// asideMax is the number of put-aside devices that are stored: the maximum number that can wait for VPP to delete them.
const asideMax = 256

// asideTap is the device of a TAP that is no longer in use. It is removed together with its VPP interface, or must be removed here if VPP dies
// before that.
type asideTap struct {
	path  string // of its namespace
	id    nsdo.ID
	index int32
}

// asideName returns the name of a device that is put aside in its namespace. The index makes the name unique there, so that several devices of
// one interface do not conflict.
func asideName(index int32) string { return fmt.Sprintf("cvx%x", index) }

// isAside reports whether l is a TAP's device that was put aside, for any interface.
func isAside(l linkInfo) bool { return l.kind == "tun" && strings.HasPrefix(l.alias, tagPeer) }

// orphaned reports whether l is a TAP's device that no process holds open: VPP is gone, and only this agent will remove the device. VPP's TAPs
// have several queues; for other TAPs the kernel does not report the number of queues.
func orphaned(l linkInfo) bool { return l.kind == "tun" && l.multiQueue && l.queues == 0 }

// mayBeTapOf reports whether l may be the device of the TAP of a logical interface: it is a TAP and does not belong to another program.
func mayBeTapOf(l linkInfo, logical string) bool {
	return l.kind == "tun" && (l.alias == tagOf(logical) || l.alias == tagPeer+logical ||
		!strings.HasPrefix(l.alias, tagPrefix) && !strings.HasPrefix(l.alias, tagPeer))
}

// createTap moves the Linux end of a TAP that VPP created to its namespace. The device may be there already, if VPP created it in place or
// attached to a persistent TAP again, or if only the agent was restarted.
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
	name, logical := deviceName(v), v.GetName()
	dev, inPlace, known := "", false, false
	if b.tapDevice != nil {
		dev, inPlace, known = b.tapDevice(v.GetTap().GetVppTapIfName())
	}
	l, err := to.sock.link(name)
	if err == nil && (l.alias == tagOf(logical) || inPlace && name == dev && mayBeTapOf(l, logical)) {
		return b.place(v, to, l, name, to, nil)
	}
	if !inPlace {
		if placed, err := b.placeHostTap(v, dev, name, to); placed || err != nil {
			return err
		}
	}
	links, err := to.sock.links()
	if err != nil {
		return fmt.Errorf("list the links of %s: %w", to, err)
	}
	best, bestRank := linkInfo{}, 0
	for _, l := range links {
		if r := tapRank(l, logical, known && l.name == dev); r > bestRank {
			best, bestRank = l, r
		}
	}
	if bestRank == 0 {
		return fmt.Errorf("its device %q is neither in the agent's namespace nor in %s: %w", dev, to, errNoLink)
	}
	for _, l := range links {
		if l.index != best.index && l.alias == tagPeer+logical && isAside(l) && orphaned(l) {
			b.removeAside(to, l.index)
		}
	}
	return b.place(v, to, best, name, to, nil)
}

// tapRank returns the rank of l as a candidate for the device of a logical interface; 0: not a candidate. A device that VPP holds open ranks
// above one that VPP has left behind, whatever their names.
func tapRank(l linkInfo, logical string, named bool) int {
	rank := 0
	switch {
	case l.alias == tagOf(logical):
		rank = 3
	case named && mayBeTapOf(l, logical):
		rank = 2
	case isAside(l) && l.alias == tagPeer+logical:
		rank = 1
	}
	if rank > 0 && !orphaned(l) {
		rank += 3
	}
	return rank
}

// placeHostTap moves a TAP's device from the agent's namespace, where VPP created it. If the device's own name was in use when it was moved
// back from a namespace, it has its spare name.
func (b *Backend) placeHostTap(v *iface, dev, name string, to *nsHandle) (placed bool, err error) {
	host, err := b.enter("")
	if err != nil {
		return false, err
	}
	for _, candidate := range []string{dev, spareName(v.GetName())} {
		if candidate == "" {
			continue
		}
		l, err := host.sock.link(candidate)
		if errors.Is(err, errNoLink) {
			continue
		}
		if err != nil {
			return false, err
		}
		if mayBeTapOf(l, v.GetName()) {
			return true, b.place(v, host, l, name, to, nil)
		}
	}
	return false, nil
}

// deleteTap moves the Linux end of a TAP back to the agent's namespace, where VPP created it. A device that VPP created in place stays there,
// and only its name is released: moving it would cost more than all other steps, and it is removed together with its VPP interface. A device
// that VPP has left behind is removed, and one in a pod's namespace that VPP does not have: the pod may have made it, and must not get a device into
// the agent's namespace.
func (b *Backend) deleteTap(v *iface) error {
	dev, inPlace, known := "", false, true
	if b.tapDevice != nil {
		dev, inPlace, known = b.tapDevice(v.GetTap().GetVppTapIfName())
	}
	err := b.onDevice(v.GetName(), func(h *nsHandle, d *device) error {
		if !known && h.path != "" {
			return h.sock.exec(delLink(d.index))
		}
		if l, err := h.sock.link(d.name); err == nil && l.index == d.index && orphaned(l) {
			return h.sock.exec(delLink(d.index))
		}
		if inPlace {
			return b.putAside(h, d)
		}
		names := []string{spareName(v.GetName())}
		if dev != "" {
			names = []string{dev, names[0]}
		}
		return b.moveBack(h, d.index, tagPeer+v.GetName(), names...)
	})
	if err := unlessGone(err); err != nil {
		return fmt.Errorf("return the Linux end of TAP %s to the agent: %w", v.GetTap().GetVppTapIfName(), err)
	}
	b.removeDevice(v.GetName())
	return nil
}

// putAside renames a device that stays in its namespace, and marks it as unused.
func (b *Backend) putAside(h *nsHandle, d *device) error {
	mark := tagPeer + d.logical
	if err := rename(h, linkSpec{index: d.index, nsFD: -1, name: asideName(d.index), alias: &mark}); err != nil {
		return fmt.Errorf("free its name: %w", err)
	}
	if len(b.aside) >= asideMax {
		b.aside = b.aside[1:]
	}
	b.aside = append(b.aside, asideTap{h.path, h.ID(), d.index})
	return nil
}

// lookAside reads the namespaces with devices that were put aside, since it is possible that no desired value refers to these namespaces any more.
func (b *Backend) lookAside(s *snapshot) {
	for _, a := range b.aside {
		if _, err := s.space(a.path, &namespace{Type: linux_namespace.NetNamespace_FD, Reference: a.path}); err != nil {
			b.log.Debug("cannot look for a device that was put aside", "namespace", a.path, "error", err)
		}
	}
}

// sweepAside removes devices that were put aside and that VPP has left behind. Devices that VPP still holds open stay until VPP removes them.
func (b *Backend) sweepAside(s *snapshot) {
	held := map[asideTap]bool{}
	for _, sp := range s.order {
		for _, l := range sp.links {
			switch {
			case isAside(l) && orphaned(l):
				b.removeAside(sp.h, l.index)
			case isAside(l):
				held[asideTap{sp.h.path, sp.h.ID(), l.index}] = true
			}
		}
	}
	b.aside = slices.DeleteFunc(b.aside, func(a asideTap) bool { return !held[a] })
}

// removeAside removes a device that was put aside and that VPP has left behind.
func (b *Backend) removeAside(h *nsHandle, index int32) {
	if err := unlessGone(h.sock.exec(delLink(index))); err != nil {
		b.log.Warn("the Linux device of a deleted TAP could not be removed", "index", index, "namespace", h.path, "error", err)
	}
}
