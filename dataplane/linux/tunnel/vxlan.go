package tunnel

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/delta"
	"contiv.dev/vswitch/dataplane/linux/routetable"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/ipaddr"
)

// Size of the encapsulation in bytes, which reduces the link's MTU.
const (
	overIPv4 = 50 // 20 IP, 8 UDP, 8 VXLAN, 14 Ethernet
	overIPv6 = 70
)

// mac is a hardware address.
type mac [6]byte

// VXLAN maintains a VXLAN device. It is used by one goroutine.
type VXLAN struct {
	cfg    VXLANConfig
	log    *slog.Logger
	open   func() (kernel, error)
	kernel kernel // nil: not connected

	local []VTEP
	seen  netlink.Link // the device as the last Apply left it; Index 0: does not exist

	nodes nodes // the other nodes' VTEPs

	fdb    *delta.Tracker[mac, netip.Addr]
	neighs *delta.Tracker[netip.Addr, mac]
	bad    []error // of VTEPs that cannot be programmed
	resync bool
}

// NewVXLAN returns a VXLAN. It does no I/O before Apply.
func NewVXLAN(cfg VXLANConfig) *VXLAN {
	if cfg.Device == "" {
		cfg.Device = defaultVXLANDevice
	}
	cfg.VNI = cmp.Or(cfg.VNI, defaultVNI)
	cfg.Port = cmp.Or(cfg.Port, defaultPort)
	cfg.Protocol = cmp.Or(cfg.Protocol, routetable.DefaultProtocol)
	cfg.Family = cmp.Or(cfg.Family, table.IPv4)
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &VXLAN{
		cfg: cfg, log: cfg.Log, open: func() (kernel, error) { return openSocket(cfg.NS, cfg.Timeout) },
		nodes: newNodes(), fdb: delta.NewComparable[mac, netip.Addr](), neighs: delta.NewComparable[netip.Addr, mac](),
		resync: true,
	}
}

// SetLocal sets the device's own VTEP: one, or one per family with the same MAC and ParentAddr. Without any the device is removed.
func (v *VXLAN) SetLocal(local ...VTEP) {
	if !slices.EqualFunc(v.local, local, sameVTEP) {
		v.local, v.seen = slices.Clone(local), netlink.Link{}
	}
}

func sameVTEP(x, y VTEP) bool {
	return x.Node == y.Node && bytes.Equal(x.MAC, y.MAC) && x.TunnelAddr == y.TunnelAddr && x.ParentAddr == y.ParentAddr
}

func (v *VXLAN) check(vtep VTEP) error {
	switch parent := vtep.ParentAddr.Unmap(); {
	case len(vtep.MAC) != 6 || vtep.MAC[0]&1 != 0 || bytes.Equal(vtep.MAC, make([]byte, 6)):
		return fmt.Errorf("VTEP of node %s: %q is not a unicast MAC address", vtep.Node, vtep.MAC.String())
	case !parent.IsValid() || parent.Is4() != (v.cfg.Family == table.IPv4) || parent.IsUnspecified() || parent.IsMulticast():
		return fmt.Errorf("VTEP of node %s: %s is not an IPv%d unicast address of the underlay", vtep.Node, parent, v.cfg.Family)
	}
	return nil
}

// Device returns the name of the device, for use in routes.
func (v *VXLAN) Device() string { return v.cfg.Device }

// Resync makes the next Apply compare addresses, forwarding entries and neighbours with the kernel. Every Apply checks whether the device
// itself has changed.
func (v *VXLAN) Resync() { v.resync = true }

// OnIfaceStateChanged must be called for the interface monitor's reports: a device that was down has lost its neighbours.
func (v *VXLAN) OnIfaceStateChanged(name string) {
	if name == v.cfg.Device {
		v.resync = true
	}
}

// Close closes the socket. The device remains.
func (v *VXLAN) Close() error {
	if v.kernel != nil {
		v.kernel.Close()
		v.kernel = nil
	}
	return nil
}

// Apply writes the differences. The error names VTEPs that cannot be programmed; the others are still written.
func (v *VXLAN) Apply(ctx context.Context) error {
	if v.kernel == nil {
		k, err := v.open()
		if err != nil {
			return err
		}
		v.kernel, v.resync = k, true
	}
	err := v.apply(ctx)
	if errors.Is(err, netlink.ErrUnknown) || ctx.Err() != nil {
		v.Close()
	}
	return err
}

func (v *VXLAN) apply(ctx context.Context) error {
	l, found, err := v.kernel.Link(v.cfg.Device)
	if err != nil {
		return err
	}
	if len(v.local) == 0 {
		return v.remove(ctx, l, found)
	}
	if v.resync || !found || !sameLink(l, v.seen) {
		if err := v.keepDevice(ctx, l, found); err != nil {
			return err
		}
		v.resync = true // a device that was down, or had another MAC, has lost its neighbours
	}
	errs := slices.Clone(v.bad)
	if v.resync {
		if err := v.readEntries(); err != nil {
			return err
		}
		v.resync = false
	}
	failed, err := v.write(ctx)
	if err != nil {
		return err
	}
	return errors.Join(append(errs, failed...)...)
}

func (v *VXLAN) remove(ctx context.Context, l netlink.Link, found bool) error {
	v.seen, v.resync = netlink.Link{}, true
	if !found || l.Kind != "vxlan" || parseVXLAN(l.Data).vni != v.cfg.VNI {
		return nil
	}
	err := one(ctx, v.kernel, func(b *netlink.Batch) { b.DelLink(l.Index) })
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove VXLAN device %s: %w", l.Name, err)
	}
	return nil
}

func sameLink(x, y netlink.Link) bool {
	return x.Index == y.Index && x.Flags&unix.IFF_UP == y.Flags&unix.IFF_UP && x.MTU == y.MTU && bytes.Equal(x.MAC, y.MAC) &&
		bytes.Equal(x.Data, y.Data)
}

// keepDevice creates or changes the device as desired, and records the result.
func (v *VXLAN) keepDevice(ctx context.Context, l netlink.Link, found bool) error {
	v.seen = netlink.Link{}
	own := v.local[0]
	if err := v.check(own); err != nil {
		return err
	}
	want := vxlanParams{vni: v.cfg.VNI, port: v.cfg.Port, local: own.ParentAddr.Unmap()}
	if found && l.Kind != "vxlan" {
		return fmt.Errorf("link %s is not a VXLAN device but of kind %q; remove it or configure another name", l.Name, l.Kind)
	}
	mtu, err := v.mtu(want.local)
	if err != nil {
		return err
	}
	if have := parseVXLAN(l.Data); found && have != want {
		v.log.Info("the VXLAN device is created again", "device", l.Name, "actual", have, "desired", want)
		err := one(ctx, v.kernel, func(b *netlink.Batch) { b.DelLink(l.Index) })
		if err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("remove VXLAN device %s, which has other parameters: %w", l.Name, err)
		}
		found = false
	}
	if !found {
		if l, err = v.makeDevice(ctx, want, mtu, own.MAC); err != nil {
			return err
		}
	}
	if err := setLink(ctx, v.kernel, l, mtu, own.MAC); err != nil {
		return err
	}
	var addrs []netip.Prefix
	for _, vtep := range v.local {
		if a := vtep.TunnelAddr.Unmap(); a.IsValid() {
			addrs = append(addrs, ipaddr.HostPrefix(a))
		}
	}
	if err := setAddresses(ctx, v.kernel, l, addrs); err != nil {
		return err
	}
	v.seen, found, err = v.kernel.Link(v.cfg.Device)
	if err == nil && !found {
		err = errVanished(v.cfg.Device)
	}
	return err
}

func (v *VXLAN) makeDevice(ctx context.Context, p vxlanParams, mtu int, m net.HardwareAddr) (netlink.Link, error) {
	err := one(ctx, v.kernel, func(b *netlink.Batch) { putVXLAN(b, v.cfg.Device, p, mtu, m) })
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return netlink.Link{}, fmt.Errorf("make VXLAN device %s: %w (module vxlan)", v.cfg.Device, errNoDriver)
	case errors.Is(err, unix.EEXIST):
		return netlink.Link{}, fmt.Errorf("make VXLAN device %s: %w; another device has VNI %d on port %d: remove it, or configure "+
			"another VNI", v.cfg.Device, err, p.vni, p.port)
	case err != nil:
		return netlink.Link{}, fmt.Errorf("make VXLAN device %s: %w", v.cfg.Device, err)
	}
	l, found, err := v.kernel.Link(v.cfg.Device)
	if err == nil && !found {
		err = errVanished(v.cfg.Device)
	}
	return l, err
}

// mtu returns the MTU that the device must have; 0 if it is unknown, since no link has the local address.
func (v *VXLAN) mtu(local netip.Addr) (int, error) {
	if v.cfg.MTU > 0 {
		return v.cfg.MTU, nil
	}
	addrs, err := v.kernel.Addresses(0)
	if err != nil {
		return 0, err
	}
	at := slices.IndexFunc(addrs, func(a netlink.Address) bool { return a.Prefix.Addr() == local })
	if at < 0 {
		return 0, nil
	}
	links, err := v.kernel.Links()
	if err != nil {
		return 0, err
	}
	for _, l := range links {
		if l.Index != addrs[at].Index {
			continue
		}
		if v.cfg.Family == table.IPv6 {
			return l.MTU - overIPv6, nil
		}
		return l.MTU - overIPv4, nil
	}
	return 0, nil
}

// readEntries reads the device's entries. All of them are ours, since the device is ours.
func (v *VXLAN) readEntries() error {
	entries, err := v.kernel.Forwarding(v.seen.Index)
	if err != nil {
		return fmt.Errorf("VXLAN device %s: %w", v.cfg.Device, err)
	}
	fdb := map[mac]netip.Addr{}
	for _, e := range entries {
		if len(e.MAC) == 6 {
			m := mac(e.MAC)
			if _, several := fdb[m]; several || e.VNI != 0 && e.VNI != v.cfg.VNI || e.State&unix.NUD_PERMANENT == 0 {
				fdb[m] = netip.Addr{} // not in the form that we write
				continue
			}
			fdb[m] = e.Addr
		}
	}
	neighs, err := v.kernel.Neighbours(v.seen.Index)
	if err != nil {
		return fmt.Errorf("VXLAN device %s: %w", v.cfg.Device, err)
	}
	have := map[netip.Addr]mac{}
	for _, n := range neighs {
		if n.State&unix.NUD_PERMANENT != 0 && len(n.MAC) == 6 {
			have[n.Addr] = mac(n.MAC)
		}
	}
	v.fdb.Dataplane().ReplaceAll(maps.All(fdb))
	v.neighs.Dataplane().ReplaceAll(maps.All(have))
	return nil
}
