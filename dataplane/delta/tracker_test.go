package delta

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// pendingOf is the reference model: the difference of two maps.
func pendingOf(desired, actual map[int]int) (updates, deletes map[int]int) {
	updates, deletes = map[int]int{}, map[int]int{}
	for k, v := range desired {
		if is, ok := actual[k]; !ok || is != v {
			updates[k] = v
		}
	}
	for k, v := range actual {
		if _, ok := desired[k]; !ok {
			deletes[k] = v
		}
	}
	return updates, deletes
}

// run interprets ops as operations on a tracker of up to space keys and on two plain maps, and compares them after each.
func run(t *testing.T, ops []byte, space int) {
	tr := NewComparable[int, int]()
	desired, actual := map[int]int{}, map[int]int{}
	var history strings.Builder
	for len(ops) >= 3 {
		op, k, v := ops[0]%9, int(ops[1])%space, int(ops[2]%4)
		ops = ops[3:]
		fmt.Fprintf(&history, "%d(%d,%d) ", op, k, v)
		updates, deletes := pendingOf(desired, actual)
		switch op {
		case 0, 1:
			tr.Desired().Set(k, v)
			desired[k] = v
		case 2:
			tr.Desired().Delete(k)
			delete(desired, k)
		case 3:
			tr.Dataplane().Set(k, v)
			actual[k] = v
		case 4:
			tr.Dataplane().Delete(k)
			delete(actual, k)
		case 5:
			listing := map[int]int{}
			for i := range k {
				listing[(i*7+v)%space] = (i + v) % 4
			}
			tr.Dataplane().ReplaceAll(maps.All(listing))
			actual = listing
		case 8:
			wanted := map[int]int{}
			for i := range k {
				wanted[(i*5+v)%space] = (i + v) % 4
			}
			tr.Desired().ReplaceAll(maps.All(wanted))
			desired = wanted
		case 6:
			seen := map[int]int{}
			tr.PendingUpdates().Apply(func(key, want int) Outcome {
				seen[key] = want
				if (key+v)%2 == 0 {
					return Keep
				}
				actual[key] = want
				return Done
			})
			if !maps.Equal(seen, updates) {
				t.Fatalf("%s: applied updates %v, want %v", &history, seen, updates)
			}
		case 7:
			seen := map[int]int{}
			tr.PendingDeletions().Apply(func(key, is int) Outcome {
				seen[key] = is
				if (key+v)%2 == 0 {
					return Keep
				}
				delete(actual, key)
				return Done
			})
			if !maps.Equal(seen, deletes) {
				t.Fatalf("%s: applied deletions %v, want %v", &history, seen, deletes)
			}
		}
		compare(t, tr, desired, actual, space, &history)
	}
}

func compare(t *testing.T, tr *Tracker[int, int], desired, actual map[int]int, space int, history fmt.Stringer) {
	t.Helper()
	updates, deletes := pendingOf(desired, actual)
	for _, c := range []struct {
		what      string
		got, want map[int]int
		n         int
	}{
		{"desired", maps.Collect(tr.Desired().Iter()), desired, tr.Desired().Len()},
		{"dataplane", maps.Collect(tr.Dataplane().Iter()), actual, tr.Dataplane().Len()},
		{"updates", maps.Collect(tr.PendingUpdates().Iter()), updates, tr.PendingUpdates().Len()},
		{"deletions", maps.Collect(tr.PendingDeletions().Iter()), deletes, tr.PendingDeletions().Len()},
	} {
		if !maps.Equal(c.got, c.want) || c.n != len(c.want) {
			t.Fatalf("%s: %s are %v (%d), want %v", history, c.what, c.got, c.n, c.want)
		}
	}
	if inSync := maps.Equal(desired, actual); tr.InSync() != inSync {
		t.Fatalf("%s: InSync %v, want %v", history, tr.InSync(), inSync)
	}
	for k := range space {
		d, ok := tr.Desired().Get(k)
		if want, wanted := desired[k]; d != want || ok != wanted {
			t.Fatalf("%s: Desired().Get(%d) = %d, %v", history, k, d, ok)
		}
		a, ok := tr.Dataplane().Get(k)
		if want, there := actual[k]; a != want || ok != there {
			t.Fatalf("%s: Dataplane().Get(%d) = %d, %v", history, k, a, ok)
		}
	}
}

func FuzzAgainstModel(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 1, 1, 6, 0, 0, 2, 1, 0, 7, 0, 1})
	f.Add([]byte{0, 1, 1, 5, 9, 2, 6, 0, 1, 7, 0, 0})
	f.Fuzz(func(t *testing.T, ops []byte) { run(t, ops, 16) })
}

func TestAgainstModel(t *testing.T) {
	for seed := range uint64(240) {
		rng := rand.New(rand.NewPCG(seed, 1))
		space := 16
		if seed%8 == 0 {
			space = 250 // enough for lists to shrink
		}
		ops := make([]byte, 3*200)
		for i := range ops {
			ops[i] = byte(rng.Uint32())
		}
		run(t, ops, space)
	}
}

// TestEqual tests that the tracker uses its equal function for changes of either side.
func TestEqual(t *testing.T) {
	tr := New[string](func(desired, actual []int) bool { return len(desired) == len(actual) })
	tr.Desired().Set("a", []int{1})
	tr.Dataplane().Set("a", []int{2})
	if !tr.InSync() {
		t.Error("equal values are pending")
	}
	tr.Dataplane().Set("a", []int{2, 3})
	if tr.InSync() || tr.PendingUpdates().Len() != 1 {
		t.Error("drift is not pending")
	}
	tr.Desired().Set("a", []int{4, 5})
	if !tr.InSync() {
		t.Error("the drift became desired and is still pending")
	}
}

// TestEarlyEnd tests that the caller may stop an iterator before its end.
func TestEarlyEnd(t *testing.T) {
	tr := NewComparable[int, int]()
	for i := range 10 {
		tr.Desired().Set(i, i)
		tr.Dataplane().Set(100+i, i)
	}
	n := 0
	for range tr.PendingUpdates().Iter() {
		n++
		break
	}
	for range tr.PendingDeletions().Iter() {
		n++
		break
	}
	if n != 2 {
		t.Errorf("%d iterations, want 2", n)
	}
}

// filled returns a tracker that is in sync with n objects.
func filled(n int) *Tracker[int, int] {
	tr := NewComparable[int, int]()
	for i := range n {
		tr.Desired().Set(i, i)
		tr.Dataplane().Set(i, i)
	}
	return tr
}

// TestCostIsTheDifference counts comparisons and calls: with 100,000 objects one change costs as much as with ten.
func TestCostIsTheDifference(t *testing.T) {
	cost := func(n int) (compared, written int, allocs float64) {
		tr := New[int](func(a, b int) bool { compared++; return a == b })
		for i := range n {
			tr.Desired().Set(i, i)
			tr.Dataplane().Set(i, i)
		}
		compared = 0
		v := -1
		allocs = testing.AllocsPerRun(10, func() {
			v--
			tr.Desired().Set(3, v)
			tr.PendingUpdates().Apply(func(int, int) Outcome { written++; return Done })
			tr.PendingDeletions().Apply(func(int, int) Outcome { written++; return Done })
		})
		return compared, written, allocs
	}
	c10, w10, a10 := cost(10)
	c100k, w100k, a100k := cost(100_000)
	if c10 != c100k || w10 != w100k || a10 != a100k || w10 != 11 {
		t.Errorf("10 objects: %d comparisons, %d writes, %v allocations; 100,000: %d, %d, %v", c10, w10, a10, c100k, w100k, a100k)
	}
}

// TestWalkAfterColdStart: 100,000 writes were pending once and one of them never succeeds; a walk over that one costs no more than if the
// others had never been pending.
func TestWalkAfterColdStart(t *testing.T) {
	tr := NewComparable[int, int]()
	for i := range 100_000 {
		tr.Desired().Set(i, i)
		tr.Dataplane().Set(-1-i, i)
	}
	tr.PendingUpdates().Apply(func(k, _ int) Outcome { return Outcome(k != 7) })
	tr.PendingDeletions().Apply(func(k, _ int) Outcome { return Outcome(k != -7) })
	small := NewComparable[int, int]()
	small.Desired().Set(7, 7)
	small.Dataplane().Set(-7, 6)
	if !maps.Equal(maps.Collect(tr.PendingUpdates().Iter()), maps.Collect(small.PendingUpdates().Iter())) ||
		!maps.Equal(maps.Collect(tr.PendingDeletions().Iter()), maps.Collect(small.PendingDeletions().Iter())) {
		t.Fatal("the wrong objects are pending")
	}
	walk := func(tr *Tracker[int, int]) time.Duration {
		shortest := time.Hour
		for range 100 {
			begin := time.Now()
			for range 10 {
				tr.PendingUpdates().Apply(func(int, int) Outcome { return Keep })
				tr.PendingDeletions().Apply(func(int, int) Outcome { return Keep })
			}
			shortest = min(shortest, time.Since(begin))
		}
		return shortest
	}
	if large, little := walk(tr), walk(small); large > 20*little {
		t.Errorf("ten walks take %s, of a small tracker %s", large, little)
	}
}

// BenchmarkOneChange adds one object and writes it, then removes it, among n objects that a cold start has written.
func BenchmarkOneChange(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tr := NewComparable[int, int]()
			for i := range n {
				tr.Desired().Set(i, i)
			}
			tr.PendingUpdates().Apply(func(int, int) Outcome { return Done })
			b.ReportAllocs()
			for b.Loop() {
				tr.Desired().Set(-1, 1)
				tr.PendingUpdates().Apply(func(int, int) Outcome { return Done })
				tr.Desired().Delete(-1)
				tr.PendingDeletions().Apply(func(int, int) Outcome { return Done })
			}
		})
	}
}

// BenchmarkReplaceAll is a full listing without a change.
func BenchmarkReplaceAll(b *testing.B) {
	tr := filled(100_000)
	listing := maps.Collect(tr.Dataplane().Iter())
	for b.Loop() {
		tr.Dataplane().ReplaceAll(maps.All(listing))
	}
}
