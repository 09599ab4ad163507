package clusterdb

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

type noLoop struct{}

func (noLoop) PushEvent(api.Event) error               { return nil }
func (noLoop) PushFollowUp(api.Event, api.Event) error { return nil }

// TestNodesOfACluster checks that nodes allocate IDs at the same time in a real etcd, and publish their
// addresses there.
func TestNodesOfACluster(t *testing.T) {
	db := openEmbedded(t, t.TempDir())
	until(t, "connection", db.Connected)
	const count = 15
	ids := make([]uint32, count)
	var wg sync.WaitGroup
	for i := range count {
		ns := nodesync.NewPlugin(nodesync.UseDeps(func(d *nodesync.Deps) {
			d.DB, d.EventLoop, d.ServiceLabel = db, noLoop{}, servicelabel.Label(fmt.Sprintf("node-%d", i))
		}))
		if err := ns.Init(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := ns.Close(); err != nil {
				t.Error(err)
			}
		}()
		wg.Go(func() {
			ev := api.NewDBResync()
			if err := ns.Resync(ev, ev.KubeState, 1, nil); err != nil {
				t.Error(err)
				return
			}
			ids[i] = ns.GetNodeID()
			ip := netip.MustParsePrefix(fmt.Sprintf("192.168.16.%d/24", ids[i]))
			addrs := contivconf.IPsWithNetworks{{Version: contivconf.IPv4, Address: ip.Addr(), Network: ip.Masked()}}
			if err := ns.PublishNodeIPs(addrs, contivconf.IPv4); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[uint32]bool{}
	for i, id := range ids {
		if id < 1 || id > count || seen[id] {
			t.Errorf("node-%d has ID %d", i, id)
		}
		seen[id] = true
		until(t, "published addresses", func() bool {
			var n vppnode.VppNode
			_, _, err := db.NewBroker(KSRPrefix).GetValue(t.Context(), fmt.Sprintf("allocatedIDs/%d", id), &n)
			return err == nil && n.GetName() == fmt.Sprintf("node-%d", i) && len(n.GetIpAddresses()) == 1
		})
	}
}
