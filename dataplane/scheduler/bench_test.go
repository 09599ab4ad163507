package scheduler

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
)

// flat is a value of the benchmarks.
type flat struct {
	*emptypb.Empty
	rev     int
	dep     string
	members []*member
}

type member struct{ key, iface string }

// noopRig returns a scheduler on a dataplane that does nothing.
func noopRig(t testing.TB) *Scheduler {
	t.Helper()
	jobs := lifecycle.NewGroup(context.Background(), quiet())
	s := New(Config{Jobs: jobs, History: HistoryLimits{Records: 10}}, quiet())
	base := Descriptor[*flat]{
		Name: "iface", Prefix: "if/", Rank: RankInterface,
		Equal:  func(_ string, d, a *flat) bool { return d.rev == a.rev && d.dep == a.dep },
		Create: func(op *Op, _ string, _ *flat) { op.Done(nil) },
		Update: func(op *Op, _ string, _, _ *flat) { op.Done(nil) },
		Delete: func(op *Op, _ string, _ *flat) { op.Done(nil) },
		Deps: func(_ string, v *flat, add func(string)) {
			if v.dep != "" {
				add(v.dep)
			}
		},
	}
	route, bd := base, base
	route.Name, route.Prefix, route.Rank = "route", "route/", RankRoute
	bd.Name, bd.Prefix, bd.Rank = "bd", "bd/", RankBridge
	bd.Derive = func(_ string, v *flat, put func(kind, itemKey string, it any)) {
		for _, m := range v.members {
			put("member", m.key, m)
		}
	}
	bd.DeriveDiff = diffMembers
	if err := Register(s, base); err != nil {
		t.Fatal(err)
	}
	if err := Register(s, route); err != nil {
		t.Fatal(err)
	}
	if err := Register(s, bd); err != nil {
		t.Fatal(err)
	}
	if err := Register(s, Descriptor[*member]{
		Name: "member", Rank: RankMember,
		Equal:  func(_ string, d, a *member) bool { return *d == *a },
		Create: func(op *Op, _ string, _ *member) { op.Done(nil) },
		Delete: func(op *Op, _ string, _ *member) { op.Done(nil) },
		Deps:   func(_ string, m *member, add func(string)) { add(m.iface) },
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	return s
}

// diffMembers skips the common beginning and end of both lists; versions share their members.
func diffMembers(_ string, from, to *flat, put func(kind, itemKey string, it any), del func(string)) {
	a, b := from.members, to.members
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	keep := map[string]bool{}
	for _, m := range b {
		keep[m.key] = true
		put("member", m.key, m)
	}
	for _, m := range a {
		if !keep[m.key] {
			del(m.key)
		}
	}
}

func mustCommit(t testing.TB, s *Scheduler, tx *txn.Txn) *txn.Record {
	rec, err := s.Commit(context.Background(), tx)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func flatTxn(n int, prefix, dep string) *txn.Txn {
	tx := &txn.Txn{Values: make([]txn.KV, n)}
	for i := range tx.Values {
		tx.Values[i] = txn.KV{Key: fmt.Sprintf("%stap-%d", prefix, i), Value: &flat{rev: 1, dep: dep}}
	}
	return tx
}

// report runs f n times, excluding the preparation, and reports time and allocations for one value.
func report(b *testing.B, n int, prepare func() *Scheduler, tx *txn.Txn) {
	b.ReportAllocs()
	var bytes, mallocs uint64
	for b.Loop() {
		b.StopTimer()
		s := prepare()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		mustCommit(b, s, tx)
		b.StopTimer()
		runtime.ReadMemStats(&after)
		bytes += after.TotalAlloc - before.TotalAlloc
		mallocs += after.Mallocs - before.Mallocs
		s.Close()
		b.StartTimer()
	}
	ops := float64(b.N * n)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/ops, "ns/value")
	b.ReportMetric(float64(bytes)/ops, "B/value")
	b.ReportMetric(float64(bytes)/float64(b.N)/1e6, "MB/commit")
	b.ReportMetric(float64(mallocs)/ops, "mallocs/value")
}

func BenchmarkPlan8000Interfaces(b *testing.B) {
	report(b, 8000, func() *Scheduler { return noopRig(b) }, flatTxn(8000, "if/", ""))
}

func Benchmark10kRoutes(b *testing.B) {
	report(b, 10_000, func() *Scheduler {
		s := noopRig(b)
		mustCommit(b, s, flatTxn(1, "if/", ""))
		return s
	}, flatTxn(10_000, "route/", "if/tap-0"))
}

// BenchmarkBDMember2000 adds and removes one member of a bridge domain with 2000 members.
func BenchmarkBDMember2000(b *testing.B) {
	s := noopRig(b)
	mustCommit(b, s, flatTxn(2001, "if/", ""))
	full := &flat{rev: 1}
	for i := range 2001 {
		full.members = append(full.members, &member{key: fmt.Sprintf("bd/0/tap-%d", i), iface: fmt.Sprintf("if/tap-%d", i)})
	}
	less := &flat{rev: 1, members: full.members[:2000]}
	mustCommit(b, s, &txn.Txn{Values: []txn.KV{{Key: "bd/0", Value: less}}})
	txns := [2]*txn.Txn{
		{Values: []txn.KV{{Key: "bd/0", Value: full}}},
		{Values: []txn.KV{{Key: "bd/0", Value: less}}},
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if rec := mustCommit(b, s, txns[i%2]); len(rec.Executed) != 1 {
			b.Fatalf("%d operations", len(rec.Executed))
		}
	}
}

// BenchmarkOneInterface adds and removes one interface among 8000.
func BenchmarkOneInterface(b *testing.B) {
	s := noopRig(b)
	mustCommit(b, s, flatTxn(8000, "if/", ""))
	txns := [2]*txn.Txn{
		{Values: []txn.KV{{Key: "if/new", Value: &flat{}}}},
		{Values: []txn.KV{{Key: "if/new"}}},
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		mustCommit(b, s, txns[i%2])
	}
}

// BenchmarkUnchangedResync8000 is an upstream resync of 8000 interfaces without a change.
func BenchmarkUnchangedResync8000(b *testing.B) {
	s := noopRig(b)
	tx := flatTxn(8000, "if/", "")
	tx.Kind = txn.UpstreamResync
	mustCommit(b, s, tx)
	b.ReportAllocs()
	for b.Loop() {
		if rec := mustCommit(b, s, tx); len(rec.Planned) != 0 {
			b.Fatal("not a no-op")
		}
	}
}
