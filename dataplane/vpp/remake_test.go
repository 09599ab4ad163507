package vpp

import (
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// Whichever interface is created again, VPP ends in the same state, and a resync has nothing to do.
func TestRecreateInterfaces(t *testing.T) {
	f := vppfake.New(vppfake.Config{Seed: 1, Plugin: true})
	t.Cleanup(func() { f.Close() })
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := f.Listen(socket); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, &target{socket: socket, fake: f}, Deps{})
	desired := append(node(), uplinkValues()...)
	a.resync(desired...)
	before := vppState(t, a)
	for _, v := range desired {
		ifc, ok := v.(*vpp_interfaces.Interface)
		if !ok {
			continue
		}
		rec, err := a.s.Commit(t.Context(), &txn.Txn{Description: "again", Recreate: []string{nb.VppInterfaceKey(ifc.Name)}, NoRetry: true})
		if err != nil {
			t.Fatalf("%s: %v\n%s", ifc.Name, err, rec)
		}
		if len(rec.Executed) < 2 || len(rec.Pending) > 0 {
			t.Errorf("%s: %s", ifc.Name, rec)
		}
		if after := vppState(t, a); !sameState(before, after) {
			t.Errorf("%s: VPP is not as before:\n%s", ifc.Name, diffText(before, after))
		}
		a.mustNotWrite(ifc.Name, desired)
	}
}

// Values that VPP chooses itself: hardware addresses that were not requested, names of memifs, and NAT44's own routes to the addresses of
// mappings, which it makes when an outside interface is added after them.
var (
	chosenPattern   = regexp.MustCompile(`memif[0-9]+/|mac 02:fe:[0-9a-f:]+`)
	natRoutePattern = regexp.MustCompile(`(?m)^route 0 10\.96\.0\.[0-9]+/32 .*\n`)
)

func sameState(before, after string) bool {
	plain := func(text string) string {
		lines := strings.Split(chosenPattern.ReplaceAllString(natRoutePattern.ReplaceAllString(text+"\n", ""), "~"), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	return plain(before) == plain(after)
}

func uplinkValues() values {
	up := afPacket("host-eth1", "eth1")
	up.IpAddresses = []string{"192.168.16.1/24"}
	return values{
		up, &vpp_l3.ARPEntry{Interface: "host-eth1", IpAddress: "192.168.16.2", PhysAddress: "02:00:00:00:00:99", Static: true},
		&vpp_l3.Route{DstNetwork: "198.51.100.0/24", NextHopAddr: "192.168.16.2", OutgoingInterface: "host-eth1"},
	}
}

// An uplink whose ring is wedged forwards nothing until it is created again, whatever fails meanwhile.
func TestRecreateWedgedUplink(t *testing.T) {
	faults := map[string]vppfake.Fault{
		"none":                    {},
		"refused":                 {Message: "*", WritesOnly: true, Retval: -1, Probability: 0.3},
		"lost connection, before": {Message: "*", WritesOnly: true, Disconnect: true, Probability: 0.2},
		"lost connection, after":  {Message: "*", WritesOnly: true, ApplyThenDisconnect: true, Probability: 0.2},
		"lost reply":              {Message: "*", WritesOnly: true, LostReply: true, Probability: 0.2},
		"crash":                   {Message: "*", WritesOnly: true, Crash: true, Probability: 0.2},
	}
	for name, fault := range faults {
		for seed := range uint64(3) {
			t.Run(name+" "+strconv.FormatUint(seed, 10), func(t *testing.T) {
				f := vppfake.New(vppfake.Config{Seed: seed})
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
				desired := all(uplinkValues(), values{loop("pod", "02:00:00:00:01:01", withIP("10.1.0.1/24"))})
				a.resync(desired...)
				through := func() bool { return passes(t, f) }
				if !through() {
					t.Fatal("nothing gets through from the beginning")
				}
				if err := f.Wedge("cv:host-eth1", true, true); err != nil {
					t.Fatal(err)
				}
				if through() || f.TxRefused("cv:host-eth1") == 0 {
					t.Fatal("a wedged uplink transmits")
				}
				a.mustNotWrite("wedged", desired) // its configuration is correct
				if fault.Message != "" {
					f.Faults.Add(fault)
				}
				// May fail; then a retry, or the next agent's first resync, repairs it.
				_, _ = a.s.Commit(t.Context(), &txn.Txn{Description: "again", Recreate: []string{nb.VppInterfaceKey("host-eth1")}, NoRetry: true})
				f.Faults.Clear()
				a.settle(kvs(t, desired))
				if !through() { // the first deletion was refused, so it was not created again
					_, err := a.s.Commit(t.Context(), &txn.Txn{Description: "again", Recreate: []string{nb.VppInterfaceKey("host-eth1")}})
					if err != nil || !through() {
						t.Errorf("nothing gets through afterwards: %v", err)
					}
				}
				a.mustNotWrite("in the end", desired)
			})
		}
	}
}

// passes reports whether a packet from a pod leaves by the uplink, and one from outside reaches the pod.
func passes(t *testing.T, f *vppfake.Fake) bool {
	t.Helper()
	mac, _ := f.MAC("cv:pod")
	out, err := f.Send("cv:pod", vppfake.Packet{
		EthDst: mac, Src: netip.MustParseAddr("10.1.0.2"), Dst: netip.MustParseAddr("198.51.100.7"), Proto: vppfake.ProtoUDP,
	})
	if err != nil {
		t.Fatal(err)
	}
	mac, _ = f.MAC("cv:host-eth1")
	in, err := f.Send("cv:host-eth1", vppfake.Packet{
		EthDst: mac, Src: netip.MustParseAddr("198.51.100.7"), Dst: netip.MustParseAddr("10.1.0.1"), Proto: vppfake.ProtoUDP,
	})
	if err != nil {
		t.Fatal(err)
	}
	local := slices.ContainsFunc(in.Out, func(d vppfake.Delivery) bool { return d.Local })
	return len(out.Out) == 1 && local
}
