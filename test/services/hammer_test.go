package services

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// hammerVariable is the number of connections that TestHammer makes, and rateVariable the number per second, from both clients in both
// families.
const (
	hammerVariable = "CONTIV_SERVICES_HAMMER"
	rateVariable   = "CONTIV_SERVICES_RATE"
)

// TestHammer replaces backends one after the other while clients connect, with ports that they use repeatedly. Agents are killed and
// restarted during this, once between two changes, when they must not write, and once while changes continue. No connection fails. Then a
// VPP is killed: services work again when the pods are connected again. `make hammer` makes 200,000 connections.
func TestHammer(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		if !m.hasPlugin() {
			t.Skipf("%s: skipped: TestLife has its rolling updates and its killed agents", m)
		}
		mainly(t, vppPlugin)
		w := newWorld(t, m)
		h := &hammer{world: w, svc: w.service("hammer", 1, nil), total: int64(setting(t, hammerVariable, 1500)), rate: setting(t, rateVariable, 370)}
		h.reusePorts()
		w.put(h.svc, "a", "c")
		w.waitEverywhere(h.svc, "p1,p2 tcp cluster -> a,c")
		w.calm()
		h.press()
		for quarter := range int64(4) {
			h.roll((quarter + 1) * h.total / 4)
			if quarter < 3 {
				h.restart(int(quarter)%2, quarter > 0)
			}
		}
		h.end(h.load)
		h.killVPP()
	})
}

// hammer is a world with a load of connections.
type hammer struct {
	*world
	svc   *corev1.Service
	total int64
	rate  int
	step  int // step of the rolling update
	load  *load
}

// reusePorts gives clients few ports, so that each port is used again after some seconds.
func (h *hammer) reusePorts() {
	h.t.Helper()
	if h.mode.isFake() {
		return // its clients use one port after the other
	}
	for _, client := range []string{"p1", "p2"} {
		h.run(h.spaces[client], "sysctl", "-qw", "net.ipv4.ip_local_port_range=20000 21999", "net.ipv4.tcp_tw_reuse=1")
	}
}

// hammerClients is the number of loops of each client in a family.
const hammerClients = 3

// press starts the connections, at the configured rate over all loops together.
func (h *hammer) press() {
	ctx, cancel := context.WithCancel(h.ctx)
	var to []netip.AddrPort
	for f := range h.mode.families() {
		to = append(to, at(h.svc, f))
	}
	l := &load{stop: cancel, families: len(to)}
	each := time.Second * time.Duration(2*len(to)*hammerClients) / time.Duration(h.rate)
	begin := time.Now()
	var loops atomic.Int64
	for _, client := range []string{"p1", "p2"} {
		for f := range to {
			for range hammerClients {
				first := begin.Add(time.Duration(loops.Add(1)) * each / time.Duration(2*len(to)*hammerClients))
				l.work.Go(func() {
					for due := first; ctx.Err() == nil; due = due.Add(each) {
						select { // a late connection is caught up
						case <-time.After(time.Until(due)):
						case <-ctx.Done():
							return
						}
						_, err := h.queryOnce(client, "tcp", to[f], answered)
						if l.count(f, err) {
							l.look(h.world)
						}
					}
				})
			}
		}
	}
	h.load = l
}

func (h *hammer) made() int64 { return h.load.done[0].Load() + h.load.done[1].Load() }

// rolling is one round of a rolling update, as in rollingUpdate.
var rolling = [][]string{
	{"a", "c", "b"}, {"a:terminating", "c", "b"}, {"c", "b"}, {"c", "b", "d"}, {"c:terminating", "b", "d"}, {"b", "d"}, {"a", "b", "d"},
	{"a", "b:terminating", "d"}, {"a", "c", "d"}, {"a", "c", "d:terminating"}, {"a", "c"},
}

// roll replaces backends until the given number of connections has been made.
func (h *hammer) roll(until int64) {
	h.t.Helper()
	for h.made() < until {
		h.next()
	}
}

func (h *hammer) next() {
	h.t.Helper()
	h.putEndpoints(h.svc, rolling[h.step%len(rolling)]...)
	h.step++
	h.underLoad(h.load, 300*time.Millisecond, 4)
}

// restart kills the agent of a node and starts another one: while backends change, or between two changes. In the latter case it must not
// write.
func (h *hammer) restart(node int, changing bool) {
	h.t.Helper()
	n, before := h.members[node], h.made()
	if changing {
		ctx, cancel := context.WithCancel(h.ctx)
		var changes sync.WaitGroup
		changes.Go(func() {
			for ctx.Err() == nil {
				h.next()
			}
		})
		err := n.restart(h.ctx)
		cancel()
		changes.Wait()
		h.must(err)
		h.t.Logf("the agent of node %d was killed while backends changed; %d connections meanwhile", node+1, h.made()-before)
		return
	}
	h.calm()
	h.must(n.restart(h.ctx))
	h.synced(n)
	h.calm()
	writes, err := n.writes(h.ctx)
	h.must(err)
	if writes != 0 {
		h.t.Errorf("node %d: a new agent with nothing to do has written %.0f times", node+1, writes)
	}
	h.t.Logf("the agent of node %d was killed between two changes: %.0f writes, %d connections meanwhile", node+1, writes, h.made()-before)
}

// killVPP kills the first node's VPP. Its services must work again when its pods are connected again.
func (h *hammer) killVPP() {
	h.t.Helper()
	h.waitEverywhere(h.svc, "p1,p2 tcp cluster -> "+backendsOf(rolling[(h.step-1)%len(rolling)]))
	h.calm()
	begin := time.Now()
	if h.mode.isFake() {
		h.fakes.nodes[0].fake.Kill()
		h.must(h.fakes.nodes[0].fake.Boot())
	} else {
		h.must(h.Nodes[0].VPP.Restart(h.ctx))
	}
	up := time.Since(begin)
	pods := h.back(func(f int) error {
		_, err := h.queryOnce("p1", "tcp", netip.AddrPortFrom(h.addrs["c"][f], targetPort), retryWait)
		return err
	})
	services := h.back(func(f int) error {
		_, err := h.queryOnce("p1", "tcp", at(h.svc, f), retryWait)
		return err
	})
	h.t.Logf("VPP of node 1 was killed: it answers after %s, pods reach other nodes after %s, services serve after %s",
		up.Round(time.Millisecond), (up + pods).Round(time.Millisecond), (up + pods + services).Round(time.Millisecond))
	if limit := time.Second; services > limit {
		h.t.Errorf("services serve %s after the pods are connected, which is more than %s", services, limit)
	}
}

// back waits until try succeeds in all families, and returns how long that took.
func (h *hammer) back(try func(family int) error) time.Duration {
	h.t.Helper()
	begin := time.Now()
	for f, family := range h.mode.families() {
		h.within(time.Minute, "IPv"+family, func() error { return try(f) })
	}
	return time.Since(begin)
}

// backendsOf returns the names of the endpoints that serve; endpoints are in the notation of slices.
func backendsOf(endpoints []string) (names string) {
	for _, e := range endpoints {
		if len(e) == 1 {
			names += "," + e
		}
	}
	return names[1:]
}
