package tabletest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

// TestNet: without rules every node reaches every other, and with rules written by hand every verdict is recognised.
func TestNet(t *testing.T) {
	n := NewNet(t, Options{})
	both(func(f table.Family) {
		p1, p2, o := n.Pods[0], n.Pods[1].Addr(f), n.Outside.Addr(f)
		n.Expect(t, Case{Want: Pass, Probe: p1.UDP(p2, 1)}, Case{Want: Pass, Probe: p1.TCP(p2, 1)},
			Case{Want: Pass, Probe: p1.Ping(p2)},
			Case{Want: Pass, Probe: p1.SCTP(p2, 1)}, Case{Want: Arrive, Probe: p1.Message(p2, 200, 7)},
			Case{Want: Pass, Probe: p1.UDP(o, 1)}, Case{Want: Pass, Probe: p1.TCP(anywhere(f, 0, 5), 1).FromPort(7777)},
			Case{Want: Pass, Probe: n.Host.TCP(p2, 1)}, Case{Want: Pass, Probe: p1.UDP(n.Host.Addr(f), 1)},
			Case{Want: Pass, Probe: n.Outside.Ping(p2).FromAddr(anywhere(f, 1, 5))},
			Case{Want: Arrive, Probe: p1.UDP(o, 1).FromAddr(p2)})
	})
	n.Host.command(t, "nft", `
		table inet byhand {
			chain forwarded {
				type filter hook forward priority 0;
				udp dport 10 drop; tcp dport 10 drop; meta l4proto { icmp, ipv6-icmp } drop; meta l4proto sctp drop
				udp dport 11 reject; tcp dport 12 reject with tcp reset
				udp sport 13 drop
			}
			chain post { type nat hook postrouting priority 100; oifname eth0 masquerade; }
		}`)
	both(func(f table.Family) {
		p1, p2 := n.Pods[0], n.Pods[1].Addr(f)
		n.Expect(t, Case{Want: Drop, Probe: p1.UDP(p2, 10)}, Case{Want: Drop, Probe: p1.TCP(p2, 10)},
			Case{Want: Drop, Probe: p1.Ping(p2)},
			Case{Want: Drop, Probe: p1.SCTP(p2, 10)}, Case{Want: Refuse, Probe: p1.UDP(p2, 11)},
			Case{Want: Refuse, Probe: p1.TCP(p2, 12)}, Case{Want: Arrive, Probe: p1.UDP(p2, 13)},
			Case{Want: Pass, Probe: p1.TCP(p2, 13)},
			Case{Want: Pass, Probe: p1.UDP(n.Outside.Addr(f), 1), SeenAs: n.Host.Addr(f)})
		o, err := n.Send(p1.UDP(p2, 13), 300*time.Millisecond, func(o Outcome) bool { return o.Answered })
		if err != nil || o.Answered {
			t.Errorf("the answer was dropped, yet: %v, %v", o, err)
		}
	})
}

// TestStream: a stream counts the packets that arrive and those that do not.
func TestStream(t *testing.T) {
	n := NewNet(t, Options{Pods: 2})
	s := n.Stream(t, n.Pods[0].UDP(n.Pods[1].Addr(table.IPv4), 9), 200*time.Microsecond)
	for s.Sent() < 100 {
		time.Sleep(time.Millisecond)
	}
	n.Host.command(t, "nft",
		"add table ip byhand; add chain ip byhand forwarded { type filter hook forward priority 0; policy drop; }")
	for at := s.Sent(); s.Sent() < at+100; {
		time.Sleep(time.Millisecond)
	}
	if sent, arrived := s.Stop(); arrived < 100 || arrived > sent-90 {
		t.Errorf("%d of %d arrived, though the first 100 could and the last 100 could not", arrived, sent)
	}
}

// TestNamesAtOnce: namespaces that are created at the same time have different names.
func TestNamesAtOnce(t *testing.T) {
	NeedRoot(t)
	const count = 8
	var wait sync.WaitGroup
	names, errs := make([]string, count), make([]error, count)
	for i := range count {
		wait.Go(func() {
			name, ns, err := makeNamespace(fmt.Sprintf("%s%d-%%d-atonce", namePrefix, os.Getpid()))
			if names[i], errs[i] = name, err; err == nil {
				errs[i] = ns.Close()
			}
		})
	}
	wait.Wait()
	for _, name := range names {
		if name != "" {
			defer func() { _ = nettest.Remove(name) }()
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != count {
		t.Errorf("names %v, want %d different ones", names, count)
	}
}
