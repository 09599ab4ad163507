package idalloc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/clusterdb/castest"
)

func clients(t *testing.T, etcd *castest.Cluster, n int) (out []*store) {
	t.Helper()
	for i := range n {
		db := etcd.Open()
		for !db.Connected() {
			time.Sleep(5 * time.Millisecond)
		}
		out = append(out, &store{
			db: db, owner: fmt.Sprintf("node-%d", i), quarantine: time.Second, log: slog.New(slog.DiscardHandler),
		})
	}
	return out
}

// TestHundredsAtOnce: 400 allocators, of which two always request the same label, share a pool that has exactly enough IDs for the labels,
// and one that has many more.
func TestHundredsAtOnce(t *testing.T) {
	etcd := castest.NewCluster(t, 1)
	stores := clients(t, etcd, 20)
	const labels = 200
	for _, max := range []uint32{labels, 1 << 24} {
		p, err := newPool(fmt.Sprintf("pool-%d", max), Range{1, max}, nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		got := make([]uint32, 2*labels)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
				defer cancel()
				var a Allocation
				err := errors.New("not tried")
				for err != nil && ctx.Err() == nil { // on a busy machine a call may take too long; the worker repeats it, too
					a, err = stores[i%len(stores)].allocate(ctx, p, fmt.Sprintf("label-%d", i%labels), 0)
				}
				if err != nil {
					t.Errorf("allocator %d: %v", i, err)
				}
				got[i] = a.ID
			})
		}
		wg.Wait()
		t.Logf("%d allocators have %d IDs of %d after %s", 2*labels, labels, max, time.Since(began))
		stored := consistent(t, stores[0].db, p.name)
		for i, id := range got {
			if label := fmt.Sprintf("label-%d", i%labels); stored[label] != id {
				t.Errorf("allocator %d was told that %s has %d; it has %d", i, label, id, stored[label])
			}
		}
		if len(stored) != labels {
			t.Errorf("%d labels have an ID, want %d", len(stored), labels)
		}
		if max == labels {
			if _, err := stores[0].allocate(t.Context(), p, "one more", 0); !errors.Is(err, ErrExhausted) {
				t.Errorf("one more: %v", err)
			}
		}
	}
}

// TestQuarantineOfEtcd checks that etcd measures the time of the quarantine, and that a restart of etcd does not shorten it.
func TestQuarantineOfEtcd(t *testing.T) {
	etcd := castest.NewCluster(t, 1)
	s := clients(t, etcd, 1)[0]
	s.quarantine = 3 * time.Second
	p, err := newPool("p", Range{1, 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.allocate(t.Context(), p, "x", 0); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.release(t.Context(), p, "x", s.owner); err != nil {
		t.Fatal(err)
	}
	etcd.StopAll()
	etcd.StartAll()
	for {
		a, err := s.allocate(t.Context(), p, "y", 0)
		if err == nil {
			if took := time.Since(began); a.ID != 1 || took < s.quarantine {
				t.Errorf("ID %d after %s", a.ID, took)
			}
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("still in quarantine: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestMemoryIsLikeEtcd checks that the database of the other tests behaves like etcd.
func TestMemoryIsLikeEtcd(t *testing.T) {
	etcd := castest.NewCluster(t, 1)
	real := clients(t, etcd, 1)[0].db.(*clusterdb.DB)
	compare(t, real, castest.NewMemory())
}
