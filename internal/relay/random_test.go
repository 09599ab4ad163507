package relay

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb"
)

// TestRandomFaults runs two replicas, two agents and an operator that causes faults. In the end etcd and the agents have exactly the
// state, and agents have never received the removal of a service that has always existed.
func TestRandomFaults(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	e := newEtcd(t)
	settle := func(d *Deps) { d.Settle = 300 * time.Millisecond }
	replicas := []*replica{newReplica(t, e, "a", settle), newReplica(t, e, "b", settle)}
	want := services(20)
	for _, r := range replicas {
		r.report(t, want)
	}
	operator, _ := e.client()
	var nodes []*node
	for range 2 {
		db, _ := e.client()
		nodes = append(nodes, newNode(t, db, nil))
	}
	converged := func() bool {
		for _, n := range nodes {
			if _, err := n.watch.Incomplete(); err != nil || !n.has(want) {
				return false
			}
		}
		return replicas[0].settled() || replicas[1].settled()
	}
	until(t, "agents have all", converged)
	for range 12 {
		fault(t, rnd, e, operator)
		time.Sleep(time.Duration(rnd.IntN(50)) * time.Millisecond) // so that faults occur in all phases of a recovery
		for range rnd.IntN(10) {
			i := 10 + rnd.IntN(15) // the first ten are never removed
			var value proto.Message
			if rnd.IntN(3) > 0 {
				value = service(i, rnd.IntN(100))
				want[serviceKey(i)] = value
			} else {
				delete(want, serviceKey(i))
			}
			for _, r := range replicas {
				r.change(t, serviceKey(i), value)
			}
		}
		if rnd.IntN(2) == 0 {
			for _, r := range replicas {
				r.report(t, maps.Clone(want))
			}
		}
	}
	until(t, "agents have all in the end", converged)
	if got, marked, _ := inEtcd(t, operator); !marked || !maps.EqualFunc(got, want, proto.Equal) {
		t.Errorf("etcd has %d values instead of %d, complete: %t", len(got), len(want), marked)
	}
	for _, n := range nodes {
		_, changes := n.reported()
		for _, c := range changes {
			for i := range 10 {
				if strings.HasPrefix(c, serviceKey(i)) && strings.HasSuffix(c, "->false") {
					t.Errorf("the event loop was told %q", c)
				}
			}
		}
	}
}

// fault causes a fault, and removes its cause.
func fault(t *testing.T, rnd *rand.Rand, e *etcd, operator *clusterdb.DB) {
	switch rnd.IntN(5) {
	case 0:
		wipe(t, operator, statePrefix)
	case 1:
		wipe(t, operator, electionPrefix)
	case 2:
		write(t, operator, serviceKey(10+rnd.IntN(20)), []byte("garbage"))
	case 3: // all connections break
		target := strings.TrimPrefix(e.server.Endpoint(), "unix://")
		for _, l := range e.lines {
			l.setTarget(target)
		}
	case 4:
		e.loseData()
	}
	until(t, "the operator is back", func() bool { // the first request after a broken connection may fail
		_, _, err := operator.Keys(t.Context(), statePrefix, 0)
		return err == nil
	})
}
