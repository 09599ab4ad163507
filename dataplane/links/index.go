package links

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/internal/nsdo"
)

// device is an interface of ours in the kernel.
type device struct {
	logical string
	typ     linux_interfaces.Interface_Type
	path    string  // of its namespace; "" is the agent's own
	id      nsdo.ID // of the namespace in which index holds
	index   int32
	name    string
	peer    string // logical name of the other end of a VETH pair
	vppTap  string // logical name of the VPP end of a TAP
	mac     net.HardwareAddr
	pooled  bool
	ipv6    bool // its IPv6 sysctls are set

	// Routes and neighbours that the kernel drops together with the last IPv4 address or on a change of the MAC; they are stored to restore
	// them.
	routes map[string]routeSpec
	neighs map[netip.Addr]net.HardwareAddr
}

// tagged reports whether the device carries our alias.
func (d *device) tagged() bool {
	switch d.typ {
	case linux_interfaces.Interface_EXISTING:
		return false
	case linux_interfaces.Interface_LOOPBACK:
		return d.path != ""
	}
	return true
}

// LinuxDevice returns the device name of a logical interface of ours in the agent's namespace, which is also VPP's.
func (b *Backend) LinuxDevice(logical string) (dev string, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	d := b.links[logical]
	if d == nil || d.path != "" {
		return "", false
	}
	return d.name, true
}

// LinuxTap returns the current location of the Linux end of the TAP of a VPP interface, for VPP to attach to it; netnsPath is empty for the
// agent's namespace. Attaching makes the device lose its neighbours, so the next flush that finds it attached restores them.
func (b *Backend) LinuxTap(vppIfName string) (netnsPath, dev string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.links[b.taps[vppIfName]]
	if d == nil {
		return "", "", false
	}
	b.attaching[d.logical] = true
	return d.path, d.name, true
}

// LinuxTapMAC returns the hardware address of the Linux end of the TAP of a VPP interface, which VPP must keep when it attaches again.
func (b *Backend) LinuxTapMAC(vppIfName string) (net.HardwareAddr, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	d := b.links[b.taps[vppIfName]]
	if d == nil || len(d.mac) == 0 {
		return nil, false
	}
	return slices.Clone(d.mac), true
}

func (b *Backend) device(logical string) *device {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.links[logical]
}

func (b *Backend) addDevice(d *device) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.links[d.logical] = d
	if d.vppTap != "" {
		b.taps[d.vppTap] = d.logical
	}
}

func (b *Backend) removeDevice(logical string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.links[logical]; d != nil && d.vppTap != "" && b.taps[d.vppTap] == logical {
		delete(b.taps, d.vppTap)
	}
	delete(b.links, logical)
	delete(b.attaching, logical)
}

// replaceIndex replaces the index by links, and keeps the data that a dump does not contain.
func (b *Backend) replaceIndex(links map[string]*device) {
	b.mu.Lock()
	defer b.mu.Unlock()
	taps := map[string]string{}
	for name, d := range links {
		if old := b.links[name]; old != nil && old.id == d.id && old.index == d.index {
			d.ipv6, d.routes, d.neighs = old.ipv6, old.routes, old.neighs
		}
		if d.vppTap != "" {
			taps[d.vppTap] = name
		}
	}
	b.links, b.taps = links, taps
}

// locate returns the namespace and the present device of a logical interface. The device is also returned if it is known and cannot be found.
func (b *Backend) locate(logical string) (*nsHandle, *device, error) {
	d := b.device(logical)
	if d == nil {
		return nil, nil, fmt.Errorf("interface %s: %w", logical, errNoLink)
	}
	h, err := b.enter(d.path)
	if err != nil {
		return nil, d, fmt.Errorf("interface %s: %w", logical, err)
	}
	if d.index != 0 && d.id == h.ID() {
		return h, d, nil
	}
	l, err := h.sock.link(d.name)
	if err == nil && d.tagged() && l.alias != tagOf(logical) {
		err = errNoLink // the path refers to another namespace now
	}
	if err != nil {
		return nil, d, fmt.Errorf("interface %s: device %s in %s: %w", logical, d.name, h, err)
	}
	b.mu.Lock()
	d.id, d.index = h.ID(), l.index
	b.mu.Unlock()
	return h, d, nil
}

// onDevice runs f for the present device of a logical interface; errors contain the name of the interface.
func (b *Backend) onDevice(logical string, f func(h *nsHandle, d *device) error) error {
	h, d, err := b.locate(logical)
	if err != nil {
		return podOnly(d.location(), d.ifLost(logical, err))
	}
	if err := f(h, d); err != nil {
		if errors.Is(err, unix.ENODEV) {
			d.index = 0 // look it up again next time
		}
		return podOnly(d.path, d.ifLost(logical, fmt.Errorf("device %s in %s: %w", d.name, h, err)))
	}
	return nil
}

// ifLost marks an error that means that the device of a logical interface was removed, for example by its pod. Both ends of a VETH pair are removed
// together. d is nil if the device is not in the index.
func (d *device) ifLost(logical string, err error) error {
	if !errors.Is(err, errNoLink) && !errors.Is(err, unix.ENODEV) {
		return err
	}
	keys := []string{nb.LinuxInterfaceKey(logical)}
	if d != nil && d.peer != "" {
		keys = append(keys, nb.LinuxInterfaceKey(d.peer))
	}
	return scheduler.Lost(err, keys...)
}

// location returns the path of the namespace of a device; empty if there is no device.
func (d *device) location() string {
	if d == nil {
		return ""
	}
	return d.path
}
