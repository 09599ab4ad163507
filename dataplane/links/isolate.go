package links

import (
	"fmt"
	"hash/fnv"
	"net"
	"time"
)

// Isolate separates a VETH end that VPP reads through an AF_PACKET socket from the host's network stack. The kernel sees every frame that VPP
// sees. Without Isolate it would answer ARP there and accept frames for the end's hardware address, which VPP sets to its own: a pod could
// reach the host past VPP, and all packets for the host would arrive twice. So ARP is disabled on the end, and its hardware address is one that
// no other device uses. Isolate may be called from any goroutine.
func Isolate(dev string) error {
	s, err := newSock(nil, 5*time.Second, nil)
	if err != nil {
		return fmt.Errorf("isolate %s from the host's network stack: %w", dev, err)
	}
	defer s.close()
	if err := s.exec(setLink(linkSpec{nsFD: -1, name: dev, mac: unusedMAC(dev), noARP: true})); err != nil {
		return fmt.Errorf("isolate %s from the host's network stack: %w", dev, err)
	}
	return nil
}

// Share lets VPP use a NIC of the host through an AF_PACKET socket while the host uses the NIC, too. VPP has its own hardware address there, so
// the NIC must accept frames for other addresses than its own; the host's stack ignores them. The NIC must not merge received packets either
// (GRO, LRO): this costs the host more CPU, but VPP receives all packets. Share may be called from any goroutine.
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

// unusedMAC returns a locally administered address that no pod and no VPP interface has: their second byte differs.
func unusedMAC(dev string) net.HardwareAddr {
	h := fnv.New32a()
	h.Write([]byte(dev))
	sum := h.Sum32()
	return net.HardwareAddr{0x02, 0xfd, byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}
}
