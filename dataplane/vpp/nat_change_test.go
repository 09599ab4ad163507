package vpp

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/nat44"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

var clusterIPs = nat44.Settings{ClusterIPs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}

// No connection is lost when VPP handles packets between the requests of a change, as a VPP with a worker
// does.
func TestNATChangesUnderLoad(t *testing.T) {
	const rounds = 30
	f, a, base := natWorldWith(t, vppfake.Config{Seed: 1, Workers: 1}, Deps{NAT: clusterIPs})
	service := func(backends ...string) values {
		return all(base, values{dnat("s", with(port("10.96.0.1:80/tcp", backends...), self))})
	}
	a.resync(service("10.1.1.3:8080", "10.1.1.4:8080")...)
	f.Faults.Add(vppfake.Fault{Message: "nat44_*", WritesOnly: true, Delay: time.Millisecond}) // packets arrive before each request
	stop := make(chan struct{})
	var load sync.WaitGroup
	sent, lost := 0, 0
	load.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if connect(t, f, natPacket(vppfake.ProtoTCP, uint16(1000+sent%60000), 0)) == 0 {
				lost++
			}
			sent++
			time.Sleep(50 * time.Microsecond)
		}
	})
	for range rounds {
		for _, left := range [][]string{{"10.1.1.4:8080"}, {"10.1.1.4:8080", "10.1.1.5:8080"}, {"10.1.1.5:8080"},
			{"10.1.1.3:8080", "10.1.1.5:8080"}, {"10.1.1.3:8080", "10.1.1.4:8080"}} {
			a.commit(txn.Update, kvs(t, service(left...))...)
		}
	}
	close(stop)
	load.Wait()
	if sent < rounds || lost > 0 {
		t.Errorf("%d of %d connections are lost", lost, sent)
	}
	a.mustNotWrite("after the changes", service("10.1.1.3:8080", "10.1.1.4:8080"))
	if n := connect(t, f, natPacket(vppfake.ProtoTCP, 500, 0)); n != 2 && n != 3 {
		t.Errorf("a new connection reaches pod %d", n)
	}
	other := natPacket(vppfake.ProtoTCP, 500, 0)
	other.DstPort = 81
	if n := connect(t, f, other); n != 0 {
		t.Errorf("an unused port leads to pod %d", n)
	}
}

// A bridge that an agent has left behind is removed by the next agent, which removes nothing else.
func TestNATBridgeLeftBehind(t *testing.T) {
	onVPP(t, vpptest.Options{Workers: 1}, func(t *testing.T, g *target) {
		deps := Deps{NAT: clusterIPs}
		config := all(natOn(), tables(1, "pod"), values{dnat("s", port("10.96.0.1:80/tcp", "10.1.1.3:8080@1", "10.1.1.4:8080@1"))})
		a := newAgent(t, g, deps)
		a.resync(config...)
		before := vppState(t, a)
		a.invoke(&nat44_ed.Nat44AddDelLbStaticMapping{
			IsAdd: true, Flags: nat_types.NAT_IS_OUT2IN_ONLY, ExternalAddr: [4]byte{10, 96, 0, 1}, Tag: "cv:s",
			Locals: []nat44_ed.Nat44LbAddrPort{
				{Addr: [4]byte{10, 1, 1, 3}, Port: 8080, Probability: 1, VrfID: 1},
				{Addr: [4]byte{10, 1, 1, 4}, Port: 8080, Probability: 1, VrfID: 1},
			},
		}, &nat44_ed.Nat44AddDelLbStaticMappingReply{})
		a.stop()
		a = newAgent(t, g, deps)
		if n, rec := a.resync(config...); n != 1 {
			t.Errorf("%d writes\n%s", n, rec)
		}
		if after := vppState(t, a); after != before {
			t.Error(diffText(before, after))
		}
		a.resync()
	})
}

// Mappings that cannot be bridged are changed without a bridge: those of addresses with other ports, and all
// on a VPP without a worker.
func TestNATBridgeNotNeeded(t *testing.T) {
	for _, c := range []struct {
		workers int
		ip      string
		adds    int // of balanced mappings, for the service and one change
	}{{0, "10.96.0.1", 2}, {1, "10.96.0.1", 3}, {1, "192.168.16.1", 2}} {
		f, a, base := natWorldWith(t, vppfake.Config{Seed: 1, Workers: c.workers}, Deps{NAT: clusterIPs})
		a.resync(all(base, values{dnat("s", port(c.ip+":80/tcp", "10.1.1.3:8080", "10.1.1.4:8080"))})...)
		a.resync(all(base, values{dnat("s", port(c.ip+":80/tcp", "10.1.1.4:8080"))})...)
		if n := int(f.Requests()["nat44_add_del_lb_static_mapping"]); n != c.adds {
			t.Errorf("%d workers, %s: %d mappings added, want %d", c.workers, c.ip, n, c.adds)
		}
		a.resync()
	}
}
