package links

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
)

// offloads holds the settings of a VETH that VPP's af_packet depends on: a frame whose checksum is left to the hardware, or that is larger than
// the MTU, is lost or corrupted when it reaches VPP.
type offloads struct {
	rx, tx bool
}

const (
	ethtoolGetRX  = 0x14 // ETHTOOL_GRXCSUM
	ethtoolSetRX  = 0x15 // ETHTOOL_SRXCSUM
	ethtoolGetTX  = 0x16 // ETHTOOL_GTXCSUM
	ethtoolSetTX  = 0x17 // ETHTOOL_STXCSUM
	ethtoolSetTSO = 0x1f // ETHTOOL_STSO
	ethtoolSetGSO = 0x24 // ETHTOOL_SGSO
	ethtoolGetGRO = 0x2b // ETHTOOL_GGRO
	ethtoolSetGRO = 0x2c // ETHTOOL_SGRO
	ethtoolGetLRO = 0x25 // ETHTOOL_GFLAGS
	ethtoolSetLRO = 0x26 // ETHTOOL_SFLAGS
	flagLRO       = 1 << 15
)

// ethtoolRequest is struct ifreq with a pointer to struct ethtool_value.
type ethtoolRequest struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

type ethtoolValue struct {
	cmd, data uint32
}

// ethtool runs one request on a device of the socket's namespace: any socket can be used.
func (s *sock) ethtool(dev string, cmd, value uint32) (uint32, error) {
	v := ethtoolValue{cmd, value}
	req := ethtoolRequest{data: unsafe.Pointer(&v)}
	copy(req.name[:maxName], dev)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.conn.FD()), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return 0, errno
	}
	return v.data, nil
}

// offloadsOf returns the settings that v requests.
func offloadsOf(v *iface) offloads {
	return offloads{
		rx: offloaded(v.GetVeth().GetRxChecksumOffloading()),
		tx: offloaded(v.GetVeth().GetTxChecksumOffloading()),
	}
}

// updateOffloads sets the offloads of a VETH to those that v requests; present holds the current settings.
func updateOffloads(h *nsHandle, dev string, v *iface, present offloads) error {
	want := offloadsOf(v)
	set := func(what string, cmd uint32, on bool) error {
		value := uint32(0)
		if on {
			value = 1
		}
		if _, err := h.sock.ethtool(dev, cmd, value); err != nil {
			return fmt.Errorf("ethtool -K %s %s %t in %s: %w", dev, what, on, h, err)
		}
		return nil
	}
	if want.rx != present.rx {
		if err := set("rx", ethtoolSetRX, want.rx); err != nil {
			return err
		}
	}
	if want.tx == present.tx {
		return nil
	}
	if err := set("tx", ethtoolSetTX, want.tx); err != nil {
		return err
	}
	// The kernel disables TSO together with the checksums, and would enable it again with them; GSO does not depend on them.
	if err := set("tso", ethtoolSetTSO, want.tx); err != nil {
		return err
	}
	return set("gso", ethtoolSetGSO, want.tx)
}

// checksumsOff disables checksum and segmentation offload towards the device, as updateOffloads does.
func (s *sock) checksumsOff(dev string) error {
	for _, cmd := range []uint32{ethtoolSetTX, ethtoolSetTSO, ethtoolSetGSO} {
		if _, err := s.ethtool(dev, cmd, 0); err != nil {
			return fmt.Errorf("turn offloads of %s off: %w", dev, err)
		}
	}
	return nil
}

// wholeFrames stops a NIC from merging received packets into larger ones, which do not fit in VPP's rings. A NIC that cannot merge packets
// stays unchanged.
func (s *sock) wholeFrames(dev string) error {
	gro, err := s.ethtool(dev, ethtoolGetGRO, 0)
	if err == nil && gro != 0 {
		if _, err := s.ethtool(dev, ethtoolSetGRO, 0); err != nil {
			return fmt.Errorf("ethtool -K %s gro off: %w", dev, err)
		}
	}
	flags, err := s.ethtool(dev, ethtoolGetLRO, 0)
	if err == nil && flags&flagLRO != 0 {
		if _, err := s.ethtool(dev, ethtoolSetLRO, flags&^flagLRO); err != nil {
			return fmt.Errorf("ethtool -K %s lro off: %w", dev, err)
		}
	}
	return nil
}

// offloadSetting converts a present state to the value in a dump.
func offloadSetting(on bool) offload {
	if on {
		return linux_interfaces.VethLink_CHKSM_OFFLOAD_ENABLED
	}
	return linux_interfaces.VethLink_CHKSM_OFFLOAD_DISABLED
}

// readOffloads returns the present state of a VETH.
func readOffloads(h *nsHandle, dev string) (offloads, error) {
	rx, err := h.sock.ethtool(dev, ethtoolGetRX, 0)
	if err != nil {
		return offloads{}, fmt.Errorf("read rx checksum offload of %s in %s: %w", dev, h, err)
	}
	tx, err := h.sock.ethtool(dev, ethtoolGetTX, 0)
	if err != nil {
		return offloads{}, fmt.Errorf("read tx checksum offload of %s in %s: %w", dev, h, err)
	}
	return offloads{rx: rx != 0, tx: tx != 0}, nil
}
