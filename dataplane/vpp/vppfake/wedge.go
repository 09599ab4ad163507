package vppfake

import "fmt"

// wedge is the fault state of the rings that an interface shares with the kernel. It disappears only with the interface, as in VPP, where the
// two sides deadlock permanently.
type wedge struct {
	transmit bool   // no frame is free any more
	receive  bool   // frames are not read
	refused  uint64 // VPP's error "tx frame not ready"
}

// Wedge makes an af_packet interface (by name or tag) stop sending, or stop receiving, until it is deleted.
func (f *Fake) Wedge(ifName string, transmit, receive bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.st == nil {
		return errDown
	}
	i := f.st.named(ifName)
	if i == nil {
		return fmt.Errorf("vppfake: no interface %q", ifName)
	}
	if _, ok := i.hw.driver.detail.(*afPacket); !ok {
		return fmt.Errorf("vppfake: %s shares no rings with the kernel", i.label())
	}
	i.hw.wedge.transmit, i.hw.wedge.receive = transmit, receive
	return nil
}

// TxRefused returns the number of packets for which an interface had no free frame.
func (f *Fake) TxRefused(ifName string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.st == nil {
		return 0
	}
	if i := f.st.named(ifName); i != nil {
		return i.hw.wedge.refused
	}
	return 0
}
