package vpp

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// servingNode returns a node with a pod and services, with all objects that VPP does not report completely: locks of tables, features.
func servingNode() values {
	return all(tables(1, "pod"), natOn(), values{
		loop("nic", "02:00:00:00:01:02", withIP("192.168.16.1/24")),
		loop("gw", "02:00:00:00:01:01", inTable(1), withIP("10.1.0.1/24", "fd00:1::1/64")),
		loop("pod", "02:00:00:00:01:03", inTable(1), unnumberedTo("gw")),
		&vpp_l3.Route{VrfId: 1, DstNetwork: "10.1.0.2/32", NextHopAddr: "10.1.0.2", OutgoingInterface: "pod"},
		natIf("pod", true, true, false), natIf("gw", true, true, false), natIf("nic", false, false, true),
		dnat("s", port("10.96.0.1:80/tcp", "10.1.0.2:8080", "10.1.0.3:8080")),
	}, contivOn("pod"))
}

// Whichever request fails, in the end VPP is in the same state as if none had failed, including the state that VPP does not report.
func TestEachRequestGoesWrong(t *testing.T) {
	clean, want := "", ""
	writes := [2]uint64{}
	onFake(t, func(f *vppfake.Fake, a *agent) {
		clean = dumpOf(f)
		writes[0], _ = a.resync(servingNode()...)
		want = dumpOf(f)
		writes[1], _ = a.resync()
	})
	if writes[0] < 40 || writes[1] < 20 {
		t.Fatalf("%d writes, too few to be all", writes)
	}
	for name, fault := range map[string]vppfake.Fault{
		"refused": {Retval: -1}, "lost": {Disconnect: true}, "lost after it was done": {ApplyThenDisconnect: true},
	} {
		t.Run(name, func(t *testing.T) {
			fault.Message, fault.WritesOnly, fault.Times = "*", true, 1
			for n := range int(max(writes[0], writes[1])) {
				fault.Nth = n + 1
				onFake(t, func(f *vppfake.Fake, a *agent) { oneGoesWrong(f, a, fault, want, clean) })
			}
		})
	}
}

func oneGoesWrong(f *vppfake.Fake, a *agent, fault vppfake.Fault, want, clean string) {
	a.t.Helper()
	f.Faults.Add(fault)
	// may fail
	_, _ = a.s.Commit(a.t.Context(), &txn.Txn{Kind: txn.FullResync, Values: kvs(a.t, servingNode()), NoRetry: true})
	f.Faults.Clear()
	a.settle(kvs(a.t, servingNode()))
	if got := dumpOf(f); got != want {
		a.t.Errorf("request %d of what is made:\n%s", fault.Nth, diffText(want, got))
	}
	f.Faults.Add(fault)
	_, _ = a.s.Commit(a.t.Context(), &txn.Txn{Kind: txn.FullResync, NoRetry: true})
	f.Faults.Clear()
	a.settle(nil)
	if got := dumpOf(f); got != clean {
		a.t.Errorf("request %d of what is deleted:\n%s", fault.Nth, diffText(clean, got))
	}
}

// dumpOf returns the state of VPP except its own routes to addresses of NAT, which are those that it had when an interface was created.
func dumpOf(f *vppfake.Fake) string {
	lines := strings.Split(f.Dump(), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, " nat-low: ") }), "\n")
}

// onFake runs a test with an agent on a separate fake VPP.
func onFake(t *testing.T, run func(f *vppfake.Fake, a *agent)) {
	t.Helper()
	f := vppfake.New(vppfake.Config{Seed: 1, Plugin: true})
	defer f.Close()
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := f.Listen(socket); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, &target{socket: socket, fake: f, wait: 20 * time.Second}, Deps{})
	defer a.stop()
	a.resync()
	run(f, a)
}

// A pod was deleted while no agent was running, and the next agent does not receive its neighbours at first. VPP would keep these for
// the next interface with the same index, so the pod's interface stays until they are known.
func TestNeighboursUnknownAtFirst(t *testing.T) {
	onFake(t, func(f *vppfake.Fake, a *agent) {
		node := values{loop("gw", "02:00:00:00:01:01", withIP("10.1.0.1/24"))}
		pod := values{loop("pod", "02:00:00:00:01:03", unnumberedTo("gw")),
			&vpp_l3.ARPEntry{Interface: "pod", IpAddress: "10.1.0.2", PhysAddress: "02:00:00:00:02:02", Static: true}}
		a.resync(node...)
		want := f.Dump()
		a.resync(all(node, pod)...)
		a.stop()
		a = newAgent(t, &target{socket: f.Socket(), fake: f, wait: 300 * time.Millisecond}, Deps{})
		defer a.stop()
		f.Faults.Add(vppfake.Fault{Message: "ip_neighbor_dump", LostReply: true, Times: 1})
		if _, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.FullResync, Values: kvs(t, node), NoRetry: true}); err == nil {
			t.Error("the fault has no effect")
		}
		a.settle(kvs(t, node))
		if got := f.Dump(); got != want {
			t.Errorf("VPP is not as before:\n%s", diffText(want, got))
		}
	})
}
