package tunnel

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"contiv.dev/vswitch/dataplane/delta"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// TestNodesOneByOne: adding, changing and removing nodes one by one, some of them contradictory or invalid, has the same result as setting
// the whole list.
func TestNodesOneByOne(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		one, all := NewVXLAN(VXLANConfig{Family: table.IPv4}), NewVXLAN(VXLANConfig{Family: table.IPv4})
		now := map[string][]VTEP{}
		for range 60 {
			node := fmt.Sprintf("n%d", rnd.IntN(8))
			ends := randomEnds(rnd, node)
			now[node] = ends
			one.SetNode(node, ends...)
			var list []VTEP
			for _, e := range now {
				list = append(list, e...)
			}
			all.SetVTEPs(list)
			if got, want := desired(one), desired(all); got != want {
				t.Fatalf("seed %d, after %s:\n%s\nwant\n%s", seed, node, got, want)
			}
			if len(one.bad) != len(all.bad) {
				t.Fatalf("seed %d: %d ends are refused, want %d", seed, len(one.bad), len(all.bad))
			}
			one.fdb.PendingUpdates().Apply(func(mac, netip.Addr) delta.Outcome { return delta.Done })
			one.fdb.PendingDeletions().Apply(func(mac, netip.Addr) delta.Outcome { return delta.Done })
			one.neighs.PendingUpdates().Apply(func(netip.Addr, mac) delta.Outcome { return delta.Done })
			one.neighs.PendingDeletions().Apply(func(netip.Addr, mac) delta.Outcome { return delta.Done })
			there := fmt.Sprint(maps.Collect(one.fdb.Dataplane().Iter()), maps.Collect(one.neighs.Dataplane().Iter()))
			if there != desired(one) {
				t.Fatalf("seed %d: what was to be written leads to %s", seed, there)
			}
		}
	}
}

// desired returns the desired entries of a device.
func desired(v *VXLAN) string {
	return fmt.Sprint(maps.Collect(v.fdb.Desired().Iter()), maps.Collect(v.neighs.Desired().Iter()))
}

func randomEnds(rnd *rand.Rand, node string) []VTEP {
	if rnd.IntN(4) == 0 {
		return nil
	}
	id := byte(rnd.IntN(10)) // sometimes that of another node
	e := VTEP{
		Node: node, MAC: net.HardwareAddr{2, 0, 0, 0, 0, id}, TunnelAddr: netip.AddrFrom4([4]byte{10, 0, 0, byte(rnd.IntN(10))}),
		ParentAddr: netip.AddrFrom4([4]byte{192, 0, 2, id}),
	}
	switch rnd.IntN(10) {
	case 0:
		e.MAC = nil
	case 1:
		e.ParentAddr = netip.Addr{}
	case 2:
		e.ParentAddr = netip.AddrFrom4([4]byte{192, 0, 2, 200})
	}
	second := e
	second.TunnelAddr = netip.MustParseAddr(fmt.Sprintf("fd00::%x", id))
	return []VTEP{e, second}[:1+rnd.IntN(2)]
}
