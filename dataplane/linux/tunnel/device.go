package tunnel

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// setLink sets a link up, with an MTU and a MAC; 0 and nil leave the current value.
func setLink(ctx context.Context, k kernel, l netlink.Link, mtu int, mac net.HardwareAddr) error {
	enabled := l.Flags&unix.IFF_UP != 0
	newMAC := mac != nil && !bytes.Equal(mac, l.MAC)
	if enabled && !newMAC && (mtu == 0 || mtu == l.MTU) {
		return nil
	}
	err := one(ctx, k, func(b *netlink.Batch) {
		b.SetLink(l.Index, true)
		if mtu > 0 {
			b.Uint32(unix.IFLA_MTU, uint32(mtu))
		}
		if newMAC {
			b.Attr(unix.IFLA_ADDRESS, mac)
		}
	})
	if err != nil {
		return fmt.Errorf("set link %s up with MTU %d and MAC %s: %w", l.Name, mtu, mac, err)
	}
	return nil
}

// vxlanParams are the parameters that cannot be changed on an existing device.
type vxlanParams struct {
	vni      uint32
	port     uint16
	local    netip.Addr
	remote   bool // has a default destination or multicast group
	learning bool
	metadata bool // takes all parameters from the route (external)
}

// putVXLAN creates a device with these parameters.
func putVXLAN(b *netlink.Batch, name string, p vxlanParams, mtu int, mac net.HardwareAddr) {
	b.NewLink()
	b.Text(unix.IFLA_IFNAME, name)
	b.Attr(unix.IFLA_ADDRESS, mac)
	if mtu > 0 {
		b.Uint32(unix.IFLA_MTU, uint32(mtu))
	}
	b.Nest(unix.IFLA_LINKINFO, func() {
		b.Text(unix.IFLA_INFO_KIND, "vxlan")
		b.Nest(unix.IFLA_INFO_DATA, func() {
			b.Uint32(unix.IFLA_VXLAN_ID, p.vni)
			b.Attr(unix.IFLA_VXLAN_PORT, binary.BigEndian.AppendUint16(nil, p.port))
			b.Uint8(unix.IFLA_VXLAN_LEARNING, 0)
			local := uint16(unix.IFLA_VXLAN_LOCAL)
			if p.local.Is6() {
				local = unix.IFLA_VXLAN_LOCAL6
			}
			b.Addr(local, p.local)
		})
	})
}

// parseVXLAN parses the parameters of a device.
func parseVXLAN(data []byte) (p vxlanParams) {
	netlink.Attributes(data, 0, func(typ uint16, v []byte) {
		flag := len(v) > 0 && v[0] != 0
		switch typ {
		case unix.IFLA_VXLAN_ID:
			p.vni = netlink.Uint32(v)
		case unix.IFLA_VXLAN_PORT:
			if len(v) >= 2 {
				p.port = binary.BigEndian.Uint16(v)
			}
		case unix.IFLA_VXLAN_LOCAL, unix.IFLA_VXLAN_LOCAL6:
			p.local = netlink.Addr(v)
		case unix.IFLA_VXLAN_GROUP, unix.IFLA_VXLAN_GROUP6:
			p.remote = netlink.Addr(v).IsValid() && !netlink.Addr(v).IsUnspecified()
		case unix.IFLA_VXLAN_LEARNING:
			p.learning = flag
		case unix.IFLA_VXLAN_COLLECT_METADATA:
			p.metadata = flag
		}
	})
	return p
}
