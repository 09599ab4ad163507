package vpp

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/poll"
)

// waitingInVPP returns the number of interfaces in VPP that wait to be deleted.
func waitingInVPP(a *agent) (n int) {
	lane := a.conn.Lane()
	conn.Dump(lane, &interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(kit.None)},
		func(d *interfaces.SwInterfaceDetails) {
			if strings.HasPrefix(d.Tag, iface.DeletedTagPrefix) {
				n++
			}
		}, func(error) {})
	lane.Flush(a.t.Context())
	return n
}

// emptied runs a queue until VPP has none of its interfaces any more.
func emptied(t *testing.T, a *agent, queue *iface.DeletionQueue) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = queue.Run(ctx) // ends with ctx
	}()
	defer func() {
		cancel()
		<-ended
	}()
	poll.Await(t, "empty queue", 10*time.Second, func() bool { return waitingInVPP(a) == 0 && queue.Waiting() == 0 })
}

// An interface that is made again while its predecessor is in the queue must be the only one on the device,
// and remain.
func TestDeferredDeletion(t *testing.T) {
	veth(t, "cvtesta0", "cvtesta1")
	v := vpptest.Start(t, vpptest.Options{Vhostshim: true})
	g := &target{socket: v.Socket(), real: v}
	deps := Deps{}
	a := newAgentWith(t, g, func(c *conn.Conn) Deps {
		deps.Interfaces.DeletionQueue = iface.NewDeletionQueue(c, nil, slog.New(slog.DiscardHandler))
		return deps
	})
	a.resync()
	before := vppState(t, a)
	dev := func(name, dev string, rings uint32) *vpp_interfaces.Interface {
		return tap(name, withIP("10.1.0.1/24"), inTable(1), func(v *vpp_interfaces.Interface) {
			v.GetTap().HostIfName, v.GetTap().RxRingSize = dev, rings
		})
	}
	af := func(name string) *vpp_interfaces.Interface {
		v := afPacket(name, "cvtesta0")
		v.IpAddresses = []string{"10.2.0.1/24"}
		return v
	}
	one := all(tables(1, "pod"), values{dev("tap-a", "cvtest0", 256), tap("tap-b"), af("af-a")})
	two := all(tables(1, "pod"), values{
		dev("tap-a", "cvtest0", 512), // made again because of other rings
		tap("tap-b", func(v *vpp_interfaces.Interface) { v.GetTap().RxRingSize = 512 }),
		af("af-b"), // another name on the same device
	})
	a.resync(one...)
	a.resync(two...)
	if n := waitingInVPP(a); n > 0 {
		t.Errorf("%d interfaces in the queue are on devices that are used again", n)
	}
	emptied(t, a, deps.Interfaces.DeletionQueue)
	a.mustNotWrite("after", two)

	// deleted, and made again before the deletion is carried out
	a.commit(txn.Update, deletions(t, two)...)
	if n := waitingInVPP(a); n != 3 {
		t.Errorf("%d interfaces in the queue", n)
	}
	other := all(tables(1, "pod"), values{dev("tap-x", "cvtest0", 256), af("af-x")})
	a.commit(txn.Update, kvs(t, other)...)
	emptied(t, a, deps.Interfaces.DeletionQueue)
	a.mustNotWrite("again", other)
	a.commit(txn.Update, deletions(t, other)...)
	emptied(t, a, deps.Interfaces.DeletionQueue)
	if after := vppState(t, a); after != before {
		t.Errorf("VPP is not as before:\n%s", diffText(before, after))
	}
}

// TestFullDeletionQueue: when more TAPs are deleted than the queue takes, VPP deletes the others at once: each holds packet buffers that running pods need.
func TestFullDeletionQueue(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{Vhostshim: true, Buffers: 32768})
	deps := Deps{}
	a := newAgentWith(t, &target{socket: v.Socket(), real: v}, func(c *conn.Conn) Deps {
		deps.Interfaces.DeletionQueue = iface.NewDeletionQueue(c, nil, slog.New(slog.DiscardHandler))
		return deps
	})
	a.resync()
	before := vppState(t, a)
	var taps values
	for i := range 50 {
		taps = append(taps, tap(fmt.Sprintf("tap-%d", i)))
	}
	a.resync(taps...)
	a.commit(txn.Update, deletions(t, taps)...)
	if n := waitingInVPP(a); n == 0 || n > 32 {
		t.Errorf("%d interfaces wait, want at most 32", n)
	}
	emptied(t, a, deps.Interfaces.DeletionQueue)
	if after := vppState(t, a); after != before {
		t.Errorf("VPP is not as before:\n%s", diffText(before, after))
	}
}
