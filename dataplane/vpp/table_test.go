package vpp

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// A service changes after VPP has crashed in the middle of a resync and before the next one. The outcome of NAT's requests is unknown, so
// NAT is dumped and made again; the agent must not assume that the table, which it had just added to VPP, still exists: VPP would make one
// for the backends, which has neither our name nor a lock of the API.
func TestServiceComesWhileVPPIsReplaced(t *testing.T) {
	f := vppfake.New(vppfake.Config{Seed: 1})
	t.Cleanup(func() { f.Close() })
	g := &target{fake: f, socket: filepath.Join(t.TempDir(), "api.sock"), wait: 20 * time.Second}
	if err := f.Listen(g.socket); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, g, Deps{})
	f.Faults.Add(vppfake.Fault{Message: "nat44_ed_plugin_enable_disable", Crash: true, Times: 1})
	base := all(natOn(), tables(1, "pod"))
	service := func(backends ...string) values { return values{dnat("s", port("10.96.0.1:80/tcp", backends...))} }
	_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.FullResync, Values: kvs(t, all(base, service("10.1.1.3:8080@1")))})
	if err == nil {
		t.Fatal("VPP has not crashed")
	}
	a.awaitNewBoot()
	changed := service("10.1.1.3:8080@1", "10.1.1.4:8080@1")
	a.commit(txn.Update, kvs(t, changed)...)
	a.commit(txn.DownstreamResync)
	const want = `table ip4 1 "cv:pod-IPv4" locked true`
	if dump := f.Dump(); !strings.Contains(dump, want) {
		t.Errorf("want %s, have\n%s", want, dump)
	}
	a.mustNotWrite("in the end", all(base, changed))
}

// foreignBackends makes NAT hold table 1 for another program's service, which creates the table if necessary.
func (a *agent) foreignBackends(add bool) {
	a.t.Helper()
	req := &nat44_ed.Nat44AddDelLbStaticMapping{IsAdd: add, Flags: nat_types.NAT_IS_OUT2IN_ONLY,
		ExternalAddr: [4]byte{10, 96, 0, 9}, ExternalPort: 80, Protocol: 6, Tag: "theirs"}
	for host := byte(1); add && host <= 2; host++ {
		req.Locals = append(req.Locals, nat44_ed.Nat44LbAddrPort{Addr: [4]byte{10, 1, 9, host}, Port: 80, Probability: 1, VrfID: 1})
	}
	a.invoke(req, &nat44_ed.Nat44AddDelLbStaticMappingReply{})
}

// table1 returns VPP's name of the IPv4 table 1, and the number of its API routes.
func table1(t *testing.T, a *agent) (name string, routes int) {
	t.Helper()
	lane := a.conn.Lane()
	end := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	conn.Dump(lane, &ip.IPTableDump{}, func(d *ip.IPTableDetails) {
		if d.Table.TableID == 1 && !d.Table.IsIP6 {
			name = d.Table.Name
		}
	}, end)
	const fromAPI = 8
	conn.Dump(lane, &ip.IPRouteV2Dump{Table: ip.IPTable{TableID: 1}, Src: fromAPI}, func(*ip.IPRouteV2Details) { routes++ }, end)
	lane.Flush(t.Context())
	return name, routes
}

// A table that NAT has created before us, or kept after we had deleted it, is held as soon as it is desired: when NAT releases it, its
// routes stay.
func TestTableOfNAT(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		without := all(natOn(), values{loop("nic", "", withIP("192.168.0.1/24"))})
		node := all(without, tables(1, "pod"), values{&vpp_l3.Route{
			VrfId: 1, DstNetwork: "10.1.0.9/32", NextHopAddr: "192.168.0.7", OutgoingInterface: "nic",
		}})
		check := func(a *agent, when, wantName string) {
			t.Helper()
			if name, routes := table1(t, a); name != wantName || routes != 1 {
				t.Errorf("%s: table %q with %d routes, want %q with one", when, name, routes, wantName)
			}
		}
		a := newAgent(t, g, Deps{})
		a.resync(without...)
		a.foreignBackends(true)
		a.resync(node...)
		a.mustNotWrite("once held", node)
		a.foreignBackends(false)
		check(a, "NAT had made it", "ipv4-VRF:1")
		a.stop()

		a = newAgent(t, g, Deps{})
		if n, rec := a.resync(node...); n != 1 {
			t.Errorf("another agent, that cannot know: %d writes\n%s", n, rec)
		}
		a.mustNotWrite("another agent, once held", node)
		a.resync(without...)
		if name, _ := table1(t, a); name != "" {
			t.Errorf("deleted, but there is %q", name)
		}
		a.resync(node...)
		check(a, "made by us", "cv:pod-IPv4")

		a.foreignBackends(true)
		a.resync(without...)
		a.resync(node...)
		a.mustNotWrite("once held again", node)
		a.foreignBackends(false)
		check(a, "NAT had kept it", "cv:pod-IPv4")
		a.stop()
		a = newAgent(t, g, Deps{})
		a.mustNotWrite("a restart", node)
		a.resync()
	})
}
