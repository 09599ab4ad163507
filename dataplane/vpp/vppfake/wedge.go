package vppfake

import "fmt"

// wedge is what is wrong with the rings that an interface shares with the kernel. It goes with the interface and with nothing else,
// as in VPP, where two parties wait for each other for good.
type wedge struct {
	transmit bool   // no frame is free any more
	receive  bool   // frames are not fetched
	refused  uint64 // VPP's error "tx frame not ready"
}

// Wedge makes an af_packet interface (by name or tag) transmit nothing, or take nothing in, until it has been deleted.
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

// TxRefused is how many packets an interface had no frame for.
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
