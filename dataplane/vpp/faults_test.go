package vpp

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// node returns values of many kinds.
func node() values {
	return all(tables(1, "pod"), values{
		loop("gw", "02:00:00:00:01:01", inTable(1), withIP("10.1.0.1/24", "fd00:1::1/64")),
		loop("pod-1", "", inTable(1), unnumberedTo("gw")),
		loop("bvi", "02:00:00:00:01:02", inTable(1), withIP("10.2.0.1/24")),
		tap("tap-1", inTable(1), unnumberedTo("gw")),
		memifOf("memif-1", "/run/m.sock", 1, true),
		&vpp_interfaces.Interface{
			Name: "vxlan-2", Type: vpp_interfaces.Interface_VXLAN_TUNNEL, Enabled: true,
			Link: &vpp_interfaces.Interface_Vxlan{
				Vxlan: &vpp_interfaces.VxlanLink{SrcAddress: "10.9.0.1", DstAddress: "10.9.0.2", Vni: 10},
			},
		},
		&vpp_interfaces.Interface{
			Name: "sub", Type: vpp_interfaces.Interface_SUB_INTERFACE, Enabled: true,
			Link: &vpp_interfaces.Interface_Sub{Sub: &vpp_interfaces.SubInterface{ParentName: "pod-1", SubId: 7}},
		},
		&vpp_l2.BridgeDomain{Name: "bd", Forward: true, Interfaces: []*vpp_l2.BridgeDomain_Interface{
			{Name: "bvi", BridgedVirtualInterface: true}, {Name: "vxlan-2", SplitHorizonGroup: 1},
		}},
		&vpp_l2.FIBEntry{BridgeDomain: "bd", PhysAddress: "02:00:00:00:02:02", OutgoingInterface: "vxlan-2", StaticConfig: true},
		&vpp_l3.ARPEntry{Interface: "bvi", IpAddress: "10.2.0.2", PhysAddress: "02:00:00:00:02:02", Static: true},
		&vpp_l3.Route{VrfId: 1, DstNetwork: "10.3.0.0/16", NextHopAddr: "10.2.0.2", OutgoingInterface: "bvi"},
		&vpp_l3.Route{VrfId: 1, DstNetwork: "0.0.0.0/0", Type: vpp_l3.Route_INTER_VRF},
		&vpp_l3.Route{DstNetwork: "10.3.0.0/16", Type: vpp_l3.Route_INTER_VRF, ViaVrfId: 1},
		pipeEndOf("pipe-in", ""), pipeEndOf("pipe-out", "pipe-in", inTable(1), unnumberedTo("gw")),
		&vpp_l3.Route{DstNetwork: "10.20.0.0/16", OutgoingInterface: "pipe-in"},
		&vpp_interfaces.Interface{Name: "nic", Type: vpp_interfaces.Interface_SOFTWARE_LOOPBACK, Enabled: true, SetDhcpClient: true},
	}, natOn(), values{
		natIf("tap-1", true, true, false), natIf("bvi", true, true, false), natIf("nic", false, true, true),
		&vpp_nat.Nat44AddressPool{VrfId: kit.None, FirstIp: "10.9.0.1", LastIp: "10.9.0.3"},
		&vpp_nat.Nat44AddressPool{Name: "twice", VrfId: kit.None, FirstIp: "192.0.2.254", TwiceNat: true},
		dnat("default/web", with(port("10.96.0.1:80/tcp", "10.1.0.2:8080", "10.1.0.3:8080"), self),
			port("10.96.0.1:53/udp", "10.1.0.2:53")), // in table 0: see forgetBalanced for others
		dnat("default/sticky", with(port("10.96.0.2:80/tcp", "10.1.0.2:8080", "10.1.0.3:8080*3"), sticky(30))),
		dnat("identities", &vpp_nat.DNat44_IdentityMapping{IpAddress: "10.9.0.1"},
			&vpp_nat.DNat44_IdentityMapping{IpAddress: "10.9.0.1", VrfId: 1}),
		aclOf("services", []string{"tap-1", "bvi"}, []string{"bvi"}, allow("10.0.0.0/8", "10.96.0.3/32", 80), denyAll("10.96.0.3/32", 80)),
		aclOf("more", []string{"tap-1"}, nil, denyAll("fd00:96::1/128", 80)),
		dnat("default/guarded", guardedBy("services", port("10.96.0.3:80/tcp", "10.1.0.2:8080"))),
	}, contivOn("tap-1"))
}

// Whatever fails on the way, a resync without faults leads to the desired state, and deleting all values leaves
// nothing.
func TestFaults(t *testing.T) {
	faults := map[string]vppfake.Fault{
		"refused":                 {Message: "*", WritesOnly: true, Retval: -1, Probability: 0.15},
		"lost connection, before": {Message: "*", WritesOnly: true, Disconnect: true, Probability: 0.05},
		"lost connection, after":  {Message: "*", WritesOnly: true, ApplyThenDisconnect: true, Probability: 0.05},
		"lost reply":              {Message: "*", WritesOnly: true, LostReply: true, Probability: 0.05},
		"crash":                   {Message: "*", WritesOnly: true, Crash: true, Probability: 0.03},
	}
	for name, fault := range faults {
		for seed := range uint64(6) {
			t.Run(name+" "+strconv.FormatUint(seed, 10), func(t *testing.T) {
				f := vppfake.New(vppfake.Config{Seed: seed, Plugin: true})
				t.Cleanup(func() { f.Close() })
				socket := filepath.Join(t.TempDir(), "api.sock")
				if err := f.Listen(socket); err != nil {
					t.Fatal(err)
				}
				g := &target{socket: socket, fake: f}
				if fault.LostReply {
					g.wait = 300 * time.Millisecond
				}
				a := newAgent(t, g, Deps{})
				a.resync()
				before := vppState(t, a)
				desired := kvs(t, node())
				f.Faults.Add(fault)
				for _, kind := range []txn.Kind{txn.Update, txn.FullResync, txn.FullResync} {
					// may fail
					_, _ = a.s.Commit(t.Context(), &txn.Txn{Kind: kind, Values: desired, NoRetry: true})
					a.awaitConnection()
				}
				f.Faults.Clear()
				a.settle(desired)
				a.mustNotWrite("healed", node())

				f.Faults.Add(fault)
				_, _ = a.s.Commit(t.Context(), &txn.Txn{Kind: txn.FullResync, NoRetry: true})
				f.Faults.Clear()
				a.settle(nil)
				if after := withoutNATRoutes(vppState(t, a)); after != withoutNATRoutes(before) {
					t.Errorf("VPP is not as before:\n%s", diffText(before, after))
				}
			})
		}
	}
}

// settle resyncs until it succeeds. The agent may not have detected the end of a connection yet, and a busy machine may
// be slow.
func (a *agent) settle(desired []txn.KV) {
	a.t.Helper()
	var err error
	for range 50 {
		a.awaitConnection()
		var rec *txn.Record
		rec, err = a.s.Commit(a.t.Context(), &txn.Txn{Kind: txn.FullResync, Values: desired, NoRetry: true})
		if err == nil && len(rec.Pending) == 0 {
			return
		}
		if !errors.Is(err, conn.ErrDisconnected) && !errors.Is(err, conn.ErrTimeout) {
			a.t.Fatalf("%v, pending %s\n%s", err, rec.Pending, rec)
		}
		time.Sleep(20 * time.Millisecond)
	}
	a.t.Fatal(err)
}

// withoutNATRoutes leaves out VPP's own routes to addresses of NAT, which are those that it had when an interface was
// created.
func withoutNATRoutes(state string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(state, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "route 0 10.96.")
	}), "\n")
}
