package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
)

// nothing returns a scheduler with a dataplane in which everything succeeds at once: only the scheduler costs time.
func nothing(ctx context.Context) (*scheduler.Scheduler, func(), error) {
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(ctx, log)
	s := scheduler.New(scheduler.Config{Jobs: jobs}, log)
	err := scheduler.Register(s, scheduler.Descriptor[*vpp_interfaces.Interface]{
		Name: "interface", Prefix: nb.VppInterfacePrefix, Rank: scheduler.RankInterface,
		Equal:  func(_ string, a, b *vpp_interfaces.Interface) bool { return a == b || proto.Equal(a, b) },
		Create: func(op *scheduler.Op, _ string, _ *vpp_interfaces.Interface) { op.Done(nil) },
		Delete: func(op *scheduler.Op, _ string, _ *vpp_interfaces.Interface) { op.Done(nil) },
	})
	if err == nil {
		err = registerBridge(s)
	}
	if err == nil {
		err = s.Start()
	}
	return s, func() { s.Close(); _ = jobs.Stop(time.Second) }, err
}

// registerBridge registers bridge domains whose members are derived items, with the same optimization as the real kind:
// members that are also in the previous value are skipped.
func registerBridge(s *scheduler.Scheduler) error {
	type put = func(kind, itemKey string, item any)
	err := scheduler.Register(s, scheduler.Descriptor[*vpp_l2.BridgeDomain]{
		Name: "bridge", Prefix: nb.BridgeDomainPrefix, Rank: scheduler.RankBridge,
		Equal:  func(_ string, a, b *vpp_l2.BridgeDomain) bool { return a.Flood == b.Flood && a.Learn == b.Learn },
		Create: func(op *scheduler.Op, _ string, _ *vpp_l2.BridgeDomain) { op.Done(nil) },
		Delete: func(op *scheduler.Op, _ string, _ *vpp_l2.BridgeDomain) { op.Done(nil) },
		Derive: func(_ string, v *vpp_l2.BridgeDomain, put put) {
			for _, m := range v.Interfaces {
				put("member", nb.BDInterfaceKey(v.Name, m.Name), m)
			}
		},
		DeriveDiff: func(_ string, from, to *vpp_l2.BridgeDomain, put put, del func(string)) {
			i := 0
			for i < len(from.Interfaces) && i < len(to.Interfaces) && from.Interfaces[i] == to.Interfaces[i] {
				i++
			}
			for _, m := range from.Interfaces[i:] {
				del(nb.BDInterfaceKey(from.Name, m.Name))
			}
			for _, m := range to.Interfaces[i:] {
				put("member", nb.BDInterfaceKey(to.Name, m.Name), m)
			}
		},
	})
	if err != nil {
		return err
	}
	return scheduler.Register(s, scheduler.Descriptor[*vpp_l2.BridgeDomain_Interface]{
		Name: "member", Rank: scheduler.RankMember,
		Equal:  func(_ string, a, b *vpp_l2.BridgeDomain_Interface) bool { return a == b || proto.Equal(a, b) },
		Create: func(op *scheduler.Op, _ string, _ *vpp_l2.BridgeDomain_Interface) { op.Done(nil) },
		Delete: func(op *scheduler.Op, _ string, _ *vpp_l2.BridgeDomain_Interface) { op.Done(nil) },
	})
}

// benchPlan measures the scheduler alone.
func benchPlan(ctx context.Context, e *env) error {
	if err := planFlat(ctx, e); err != nil {
		return err
	}
	return planMember(ctx, e)
}

// planFlat commits 8 000 interfaces without dependencies.
func planFlat(ctx context.Context, e *env) error {
	const n = 8000
	values := make([]txn.KV, n)
	for i := range values {
		v := &vpp_interfaces.Interface{Name: fmt.Sprintf("if-%d", i), Type: vpp_interfaces.Interface_SOFTWARE_LOOPBACK}
		values[i] = txn.KV{Key: nb.VppInterfaceKey(v.Name), Value: v}
	}
	floor := mapFloor(values)
	var took []time.Duration
	var bytes uint64
	for range 5 {
		s, stop, err := nothing(ctx)
		if err != nil {
			return err
		}
		before := allocated()
		start := time.Now()
		_, err = s.Commit(ctx, &txn.Txn{Values: values})
		took = append(took, time.Since(start))
		bytes = allocated() - before
		stop()
		if err != nil {
			return err
		}
	}
	slices.Sort(took)
	fmt.Printf("   %d interfaces planned and run on a dataplane that does nothing: %s, %.1f MB allocated (aim < 30 ms, < 20 MB)\n",
		n, ms(took[len(took)/2]), float64(bytes)/1e6)
	e.ratio("8 000 values, to filling one Go map with them", milliseconds("scheduler", took[len(took)/2]), milliseconds("Go map", floor))
	return nil
}

// mapFloor returns the time to put the values into a map.
func mapFloor(values []txn.KV) time.Duration {
	start := time.Now()
	m := map[string]proto.Message{}
	for _, kv := range values {
		m[kv.Key] = kv.Value
	}
	runtime.KeepAlive(m)
	return time.Since(start)
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// planMember adds one member to bridge domains of 20 and of 2 000.
func planMember(ctx context.Context, e *env) error {
	small, err := memberTime(ctx, 20)
	if err != nil {
		return err
	}
	large, err := memberTime(ctx, 2000)
	if err != nil {
		return err
	}
	fmt.Printf("   one more member of a bridge domain: %s with 2 000 members, %s with 20 (aim < 20 µs)\n", large, small)
	e.ratio("one more member: among 2 000 to among 20", milliseconds("2 000 members", large), milliseconds("20 members", small))
	return nil
}

func memberTime(ctx context.Context, members int) (time.Duration, error) {
	s, stop, err := nothing(ctx)
	if err != nil {
		return 0, err
	}
	defer stop()
	bd := &vpp_l2.BridgeDomain{Name: "bd"}
	for i := range members {
		bd.Interfaces = append(bd.Interfaces, &vpp_l2.BridgeDomain_Interface{Name: fmt.Sprintf("if-%d", i)})
	}
	key := nb.BridgeDomainKey(bd.Name)
	if _, err := s.Commit(ctx, &txn.Txn{Values: []txn.KV{{Key: key, Value: bd}}}); err != nil {
		return 0, err
	}
	var took []time.Duration
	for i := range 200 {
		next := &vpp_l2.BridgeDomain{Name: bd.Name, Interfaces: append(slices.Clone(bd.Interfaces),
			&vpp_l2.BridgeDomain_Interface{Name: fmt.Sprintf("more-%d", i)})}
		start := time.Now()
		if _, err := s.Commit(ctx, &txn.Txn{Values: []txn.KV{{Key: key, Value: next}}}); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
		bd = next
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
