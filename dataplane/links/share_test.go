package links

import (
	"testing"
	"time"
)

// TestShare tests that a shared NIC is promiscuous and up, and that it does not change received packets. Sharing it again changes nothing.
func TestShare(t *testing.T) {
	w := newWorld(t)
	dev, peer := w.dev("s"), w.dev("t")
	w.run("ip", "link", "add", dev, "type", "veth", "peer", "name", peer)
	s, err := newSock(nil, 5*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if _, err := s.ethtool(dev, ethtoolSetGRO, 1); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Share(dev); err != nil {
			t.Fatal(err)
		}
		if gro, err := s.ethtool(dev, ethtoolGetGRO, 0); err != nil || gro != 0 {
			t.Errorf("GRO of a shared NIC: %d, %v", gro, err)
		}
	}
	if err := Share("cvnone"); err == nil {
		t.Error("a NIC that is not there is shared")
	}
}
