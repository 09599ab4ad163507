package nodesync

import (
	"slices"
	"testing"
	"testing/synctest"

	"contiv.dev/vswitch/plugins/contivconf"
)

// TestOrderOfAddresses tests that the first address of a node stays the first one of its family, in its record and for the other nodes.
func TestOrderOfAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newNode(t, "a", db)
		defer n.start()()
		n.mustResync()
		for _, want := range [][]string{
			{"10.0.0.9/24", "10.0.0.1/32", "fd00::9/64", "fd00::1/64"},
			{"10.0.0.1/32", "10.0.0.9/24", "fd00::1/64", "fd00::9/64"},
		} {
			if err := n.PublishNodeIPs(ips(want[:2]...), contivconf.IPv4); err != nil {
				t.Fatal(err)
			}
			if err := n.PublishNodeIPs(ips(want[2:]...), contivconf.IPv6); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := db.get(t, 1).GetIpAddresses(); !slices.Equal(got, want) {
				t.Errorf("record has %q, want %q", got, want)
			}
			if got := addressTexts(nodeOf(2, record(2, "b", want...)).VppIPAddresses); !slices.Equal(got, want) {
				t.Errorf("addresses of a node %q, want %q", got, want)
			}
		}
	})
}
