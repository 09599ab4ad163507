package links

import (
	"fmt"
	"hash/fnv"
	"net"
	"time"
)

// Isolate keeps the host's network stack off a VETH end that VPP reads through an AF_PACKET socket. The kernel sees every frame that VPP
// sees; without this it would answer ARP there and take in what is addressed to the end's hardware address, which VPP sets to its own: a
// pod could talk to the host past VPP, and everything for the host would arrive twice. So the end does not speak ARP and has an address
// that nothing uses. It may be called from any goroutine.
func Isolate(dev string) error {
	s, err := newSock(nil, 5*time.Second, nil)
	if err != nil {
		return fmt.Errorf("keep the host off %s: %w", dev, err)
	}
	defer s.close()
	if err := s.exec(setLink(linkSpec{nsFD: -1, name: dev, mac: unusedMAC(dev), noARP: true})); err != nil {
		return fmt.Errorf("keep the host off %s: %w", dev, err)
	}
	return nil
}

// Share lets VPP use a NIC of the host through an AF_PACKET socket beside the host itself. VPP has a hardware address of its own
// there, so the NIC must take frames for other addresses than its own; the host's stack ignores those. It must not join received
// packets either (GRO, LRO): the host has more work by that, and VPP gets all. It may be called from any goroutine.
func Share(dev string) error {
	s, err := newSock(nil, 5*time.Second, nil)
	if err != nil {
		return fmt.Errorf("share NIC %s with VPP: %w", dev, err)
	}
	defer s.close()
	if err := s.exec(setLink(linkSpec{nsFD: -1, name: dev, promisc: true, up: true})); err != nil {
		return fmt.Errorf("share NIC %s with VPP: make it promiscuous and bring it up: %w", dev, err)
	}
	if err := s.wholeFrames(dev); err != nil {
		return fmt.Errorf("share NIC %s with VPP: %w", dev, err)
	}
	return nil
}

// unusedMAC is a locally administered address that no pod and no VPP interface has: their second byte differs.
func unusedMAC(dev string) net.HardwareAddr {
	h := fnv.New32a()
	h.Write([]byte(dev))
	sum := h.Sum32()
	return net.HardwareAddr{0x02, 0xfd, byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}
}
