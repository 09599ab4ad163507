package idalloc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"contiv.dev/vswitch/internal/clusterdb/cas"
)

// compare runs the same random operations on two databases.
func compare(t *testing.T, a, b cas.Store) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4))
	key := func() string { return fmt.Sprintf("/compare/%d", random.IntN(4)) }
	carriedOut := 0
	for step := range 400 {
		var forA, forB []cas.Change
		for range 1 + random.IntN(3) {
			var ca, cb cas.Change
			for range random.IntN(3) {
				k := key()
				va, err := a.Get(t.Context(), k)
				if err != nil {
					t.Fatal(err)
				}
				vb, _ := b.Get(t.Context(), k)
				if string(va.Value) != string(vb.Value) || (va.Rev == 0) != (vb.Rev == 0) {
					t.Fatalf("step %d: %s is %q and %q", step, k, va.Value, vb.Value)
				}
				if random.IntN(3) == 0 { // a condition that does not hold
					va.Rev, vb.Rev = va.Rev+1, vb.Rev+1
				}
				ca.If, cb.If = append(ca.If, cas.Cond{Key: k, Rev: va.Rev}), append(cb.If, cas.Cond{Key: k, Rev: vb.Rev})
			}
			w := cas.Write{Key: key(), Value: []byte(fmt.Sprint(step))}
			if random.IntN(4) == 0 {
				w.Value = nil
			}
			ca.Do, cb.Do = []cas.Write{w}, []cas.Write{w}
			forA, forB = append(forA, ca), append(forB, cb)
		}
		ia, _, err := a.CommitFirst(t.Context(), forA...)
		if err != nil {
			t.Fatal(err)
		}
		ib, _, err := b.CommitFirst(t.Context(), forB...)
		if err != nil || ia != ib {
			t.Fatalf("step %d: change %d and %d, %v", step, ia, ib, err)
		}
		if ia != cas.None {
			carriedOut++
		}
	}
	ka, _, _ := a.Keys(t.Context(), "/compare/", 0)
	kb, _, _ := b.Keys(t.Context(), "/compare/", 0)
	same := slices.EqualFunc(ka, kb, func(x, y cas.Value) bool { return x.Key == y.Key && x.Value == nil && y.Value == nil })
	if !same || carriedOut == 0 || carriedOut == 400 {
		t.Errorf("keys %v and %v, %d of 400 carried out", ka, kb, carriedOut)
	}
}
