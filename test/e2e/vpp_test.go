package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestVPPKilled checks that after a crash of VPP its whole configuration is restored, and that pods lose only
// packets during the outage.
func TestVPPKilled(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, veth}, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name, fake.name)
		n := many(map[mode]int{tap: 100, veth: 30}[m])
		r := newRig(t, m, room(n))
		pods := r.addMany(n, 10)
		r.must(r.ring(20*time.Second, pods))
		before := r.identities(pods)
		for range 2 {
			killed := time.Now()
			r.VPP.Kill()
			r.must(r.VPP.Run(r.ctx))
			up := time.Now()
			r.within(30*time.Second, "the first pod reaches the last", func() error {
				return pods[0].PingOnce(r.ctx, pods[n-1].IPs[0].String(), 0)
			})
			first := time.Now()
			r.must(r.ring(30*time.Second, pods))
			t.Logf("VPP's API is up %.2f s after the kill; %d pods: the first reaches the last %.2f s later, all have reached "+
				"their neighbour %.2f s later (%.2f s after the kill)", up.Sub(killed).Seconds(), n, first.Sub(up).Seconds(),
				time.Since(up).Seconds(), time.Since(killed).Seconds())
		}
		for i, after := range r.identities(pods) {
			if after != before[i] {
				t.Errorf("%s was %s and is %s", pods[i].Name, before[i], after)
			}
		}
		r.reaches(pods[0].Namespace, r.hostIP())
		r.reaches(r.Namespace, pods[n-1].IPs[0].String())
		r.onlyPods(pods)
		r.restartsQuietly(pods)
	})
}

func (r *rig) identities(pods []*testbed.Pod) []string {
	r.t.Helper()
	out := make([]string, len(pods))
	for i, p := range pods {
		out[i] = r.identity(p)
	}
	return out
}

// TestVPPKilledWhilePodsCome checks that operations that were interrupted by the end of VPP are completed when
// it is back.
func TestVPPKilledWhilePodsCome(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, veth}, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name, fake.name)
		pods := make([]*testbed.Pod, many(20))
		r := newRig(t, m, room(len(pods)))
		for i := range pods {
			pods[i] = r.pod(fmt.Sprintf("p%d", i))
		}
		done := make(chan error, 1)
		go func() { done <- parallel(5, pods, r.addAtLast) }()
		for range 2 {
			// Some pods are complete, some are not.
			enough := len(r.allocations()) + 4
			r.within(time.Minute, "pods come", func() error {
				if n := len(r.allocations()); n < min(enough, len(pods)) {
					return fmt.Errorf("%d pods", n)
				}
				return nil
			})
			r.must(r.VPP.Restart(r.ctx))
		}
		r.must(<-done)
		r.within(20*time.Second, "nothing but the pods is left", func() error { return r.findOthers(pods) })
		r.must(r.ring(20*time.Second, pods))
		r.restartsQuietly(pods)
	})
}

// addAtLast retries an ADD that fails, as a runtime does.
func (r *rig) addAtLast(p *testbed.Pod) error {
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	return poll.Until(ctx, 200*time.Millisecond, func() error {
		_, err := r.CNI.Add(r.ctx, p)
		if err == nil {
			return nil
		}
		if code(err) != codeTryAgain {
			r.t.Errorf("code %d of an ADD while VPP is away, want %d: %.300v", code(err), codeTryAgain, err)
		}
		return errors.Join(brief(err), r.CNI.Del(r.ctx, p))
	})
}

// TestVPPFrozen checks that requests to a VPP that does not respond fail in bounded time, and that nothing is
// lost when it continues.
func TestVPPFrozen(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap}, func(t *testing.T, m mode) {
		r := newRig(t, m)
		pods := r.add("a", "b")
		late := r.pod("late")
		r.must(r.VPP.Freeze())
		start := time.Now()
		_, err := r.CNI.Add(r.ctx, late)
		took := time.Since(start)
		r.wantCode(err, codeTryAgain, "VPP")
		t.Logf("with a frozen VPP, ADD fails after %.1f s", took.Seconds())
		if took > 21*time.Second {
			t.Errorf("ADD took %s", took)
		}
		r.within(10*time.Second, "STATUS tells of VPP", func() error {
			if err := r.CNI.Status(r.ctx); code(err) != codeLimited {
				return fmt.Errorf("code %d: %v", code(err), err)
			}
			return nil
		})
		r.must(r.VPP.Thaw())
		r.within(15*time.Second, "the agent is ready again", func() error {
			_, err := r.Get(r.ctx, "/readiness")
			return err
		})
		r.must(r.ring(5*time.Second, pods))
		r.must(r.CNI.Del(r.ctx, late))
		r.within(15*time.Second, "nothing of the failed ADD is left", func() error { return r.findOthers(pods) })
		_, err = r.CNI.Add(r.ctx, late)
		r.must(err)
		r.must(r.ring(5*time.Second, append(pods, late)))
	})
}
