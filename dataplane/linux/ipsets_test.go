package intdataplane

import (
	"errors"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/proto"
)

// setText returns the kernel's content of a set, "" if it does not exist.
func (b *bench) setText(f int, id string) string {
	name := "set v4 " + id
	if f == 6 {
		name = "set v6 " + id
	}
	_, members, _ := strings.Cut(strings.TrimSpace(b.fake.Dump()[name]), ": ")
	return members
}

func (b *bench) hasSet(f int, id string) bool {
	_, has := b.fake.Dump()[map[int]string{4: "set v4 ", 6: "set v6 "}[f]+id]
	return has
}

func TestIPSetMembers(t *testing.T) {
	for _, c := range []struct {
		kind     proto.IPSetUpdate_IPSetType
		members  []string
		v4, v6   string
		describe string
	}{
		{proto.IPSetUpdate_IP, []string{"10.0.0.1", "fd00::1", "10.0.0.2/32"}, "10.0.0.1/32/0:0 10.0.0.2/32/0:0",
			"fd00::1/128/0:0", "addresses"},
		{proto.IPSetUpdate_NET, []string{"10.0.0.0/8", "fd00::/16", "0.0.0.0/0"}, "0.0.0.0/0/0:0 10.0.0.0/8/0:0",
			"fd00::/16/0:0", "nets"},
		{proto.IPSetUpdate_IP_AND_PORT, []string{"10.0.0.1,tcp:80", "fd00::1,udp:53", "10.0.0.1,sctp:9"},
			"10.0.0.1/32/132:9 10.0.0.1/32/6:80", "fd00::1/128/17:53", "ports"},
	} {
		b := newBench(t, both)
		b.must(&proto.IPSetUpdate{Id: "s", Type: c.kind, Members: c.members})
		if got := b.setText(4, "s"); got != c.v4 {
			t.Errorf("%s: IPv4 has %q, want %q", c.describe, got, c.v4)
		}
		if got := b.setText(6, "s"); got != c.v6 {
			t.Errorf("%s: IPv6 has %q, want %q", c.describe, got, c.v6)
		}
	}
}

func TestIPSetDelta(t *testing.T) {
	b := newBench(t, both)
	b.must(ipSet("s", "10.0.0.1", "10.0.0.2"))
	b.must(&proto.IPSetDeltaUpdate{Id: "s", AddedMembers: []string{"10.0.0.3", "10.0.0.4", "fd00::1"},
		RemovedMembers: []string{"10.0.0.1", "10.0.0.4", "10.9.9.9"}})
	if got, want := b.setText(4, "s"), "10.0.0.2/32/0:0 10.0.0.3/32/0:0"; got != want {
		t.Errorf("after a delta: %q, want %q (added first, then removed)", got, want)
	}
	b.must(&proto.IPSetDeltaUpdate{Id: "unknown", AddedMembers: []string{"10.0.0.3"}})
	b.must(&proto.IPSetRemove{Id: "unknown"})
	b.must(ipSet("s", "10.0.0.9"))
	if got, want := b.setText(4, "s"), "10.0.0.9/32/0:0"; got != want {
		t.Errorf("after a replacement: %q, want %q", got, want)
	}
	b.must(&proto.IPSetRemove{Id: "s"})
	if b.hasSet(4, "s") || b.hasSet(6, "s") {
		t.Error("the set is there after its removal")
	}
}

// closedBench returns a bench with two workloads: one accepts packets from addresses in set "peers", the other accepts all others.
func closedBench(t *testing.T, config Config) *bench {
	b := newBench(t, config)
	b.must(openProfile(), ipSet("peers", "198.51.100.1"), policy("from-peers", fromSet("allow", "peers")),
		policy("not-peers", fromSet("deny", "peers"), &proto.Rule{Action: "allow"}),
		endpoint("a", "calia", 1, withTiers(ingress("from-peers"))), endpoint("b", "calib", 2, withTiers(ingress("not-peers"))),
		endpoint("c", "calic", 3), ifUp("calia", 1), ifUp("calib", 2), ifUp("calic", 3))
	return b
}

// expectPeers checks the workloads of closedBench, with a usable set or without.
func (b *bench) expectPeers(usable bool) {
	b.t.Helper()
	peer := func(to, dst string) rulestest.Packet { return packet("eth0", to, "198.51.100.1", dst, 80) }
	unknown := func(to, dst string) rulestest.Packet { return packet("eth0", to, "198.51.100.2", dst, 80) }
	want := map[bool]string{true: "accept", false: "drop"}[usable]
	b.expect("peer, allowed by the set", peer("calia", "10.65.0.1"), want)
	b.expect("unknown device, not allowed", unknown("calia", "10.65.0.1"), "drop")
	b.expect("peer, denied by the set", peer("calib", "10.65.0.2"), "drop")
	b.expect("unknown device, not denied", unknown("calib", "10.65.0.2"), want)
	b.expect("workload that does not need the set", peer("calic", "10.65.0.3"), "accept")
}

func TestIPSetOverItsLimitBlocksAndHeals(t *testing.T) {
	config := both
	config.MaxIPSetSize = 3
	b := closedBench(t, config)
	b.expectPeers(true)
	b.must(&proto.IPSetDeltaUpdate{Id: "peers", AddedMembers: []string{"10.1.1.1", "10.1.1.2", "10.1.1.3"}})
	b.expectPeers(false)
	if dump := b.d.dump(); !strings.Contains(dump.Sets["v4 peers"], "MaxIPSetSize") || len(dump.Policies) == 0 {
		t.Errorf("the dump does not tell: %+v", dump)
	}
	b.expectStatus(wlKey("a"), "up")
	b.must(&proto.IPSetDeltaUpdate{Id: "peers", RemovedMembers: []string{"10.1.1.1"}})
	b.expectPeers(true)
	b.must(ipSet("peers", "1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"))
	b.expectPeers(false)
	b.must(ipSet("peers", "198.51.100.1"))
	b.expectPeers(true)
	if dump := b.d.dump(); len(dump.Sets)+len(dump.Policies) != 0 {
		t.Errorf("the dump tells of faults that are over: %+v", dump)
	}
}

func TestIPSetWithInvalidMemberBlocks(t *testing.T) {
	for _, member := range []string{"nonsense", "10.0.0.0/8", "10.0.0.1,tcp:80", "fe80::1%eth0"} {
		b := closedBench(t, both)
		b.must(&proto.IPSetDeltaUpdate{Id: "peers", AddedMembers: []string{member}})
		b.expectPeers(false)
		b.must(&proto.IPSetDeltaUpdate{Id: "peers", RemovedMembers: []string{member}})
		b.expectPeers(true)
	}
	for _, member := range []string{"10.0.0.1", "10.0.0.1,icmp:8", "10.0.0.1,tcp:0", "10.0.0.1,tcp:65536", "10.0.0.1,tcp"} {
		b := newBench(t, both)
		b.must(&proto.IPSetUpdate{Id: "s", Type: proto.IPSetUpdate_IP_AND_PORT, Members: []string{member}})
		if b.hasSet(4, "s") {
			t.Errorf("a set with member %q was programmed", member)
		}
	}
}

func TestIPSetThatTheKernelRefusesBlocksAndHeals(t *testing.T) {
	b := closedBench(t, both)
	b.fake.Break = func(object string) error {
		if object == "set v4 peers" {
			return errors.New("no memory")
		}
		return nil
	}
	if err := b.step(ipSet("peers", "198.51.100.1", "198.51.100.7")); err != nil {
		t.Fatal(err)
	}
	b.expectPeers(false)
	b.fake.Break = nil
	b.must()
	b.expectPeers(true)
}

// TestIPSetThatIsBusy: a kernel may reject a change of a set that rules refer to.
func TestIPSetThatIsBusy(t *testing.T) {
	b := closedBench(t, both)
	refusals := 0
	b.fake.Break = func(object string) error {
		if object == "set v4 peers" && refusals == 0 {
			refusals++
			return errors.New("busy")
		}
		return nil
	}
	b.must(ipSet("peers", "198.51.100.9"))
	b.expect("the set is replaced, and the rules are back", packet("eth0", "calia", "198.51.100.9", "10.65.0.1", 80), "accept")
	b.expect("the old member", packet("eth0", "calia", "198.51.100.1", "10.65.0.1", 80), "drop")
}

func TestIPSetIsMissingWhenItsPolicyComes(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), policy("from-peers", fromSet("allow", "peers")), endpoint("a", "calia", 1,
		withTiers(ingress("from-peers"))))
	b.expect("no set", packet("eth0", "calia", "198.51.100.1", "10.65.0.1", 80), "drop")
	b.must(ipSet("peers", "198.51.100.1"))
	b.expect("the set came later", packet("eth0", "calia", "198.51.100.1", "10.65.0.1", 80), "accept")
	b.must(&proto.IPSetRemove{Id: "peers"})
	b.expect("the set went first", packet("eth0", "calia", "198.51.100.1", "10.65.0.1", 80), "drop")
	b.must(&proto.IPSetUpdate{Id: "peers", Type: proto.IPSetUpdate_IP_AND_PORT, Members: []string{"198.51.100.1,tcp:80"}})
	b.expect("the set came back with another type", packet("eth0", "calia", "198.51.100.1", "10.65.0.1", 80), "drop")
	b.must(ipSet("peers", "198.51.100.1"))
	b.expect("and with the right one", packet("eth0", "calia", "198.51.100.1", "10.65.0.1", 80), "accept")
}
