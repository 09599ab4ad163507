package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
)

// random returns a generator whose seed is printed.
func random(t *testing.T) *rand.Rand {
	seed, err := strconv.ParseUint(os.Getenv("CONTIV_E2E_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("CONTIV_E2E_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// TestAgentKilled kills the agent at random times while pods are added, and restarts it at once.
func TestAgentKilled(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, veth, linux, iptables}, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name)
		pods := make([]*testbed.Pod, many(40))
		r := newRig(t, m, room(len(pods)))
		rng := random(t)
		for i := range pods {
			pods[i] = r.pod(fmt.Sprintf("p%d", i))
		}
		var mu sync.Mutex
		var alive []*testbed.Pod
		failed := 0
		done := make(chan error, 1)
		start := time.Now()
		go func() {
			done <- parallel(8, pods, func(p *testbed.Pod) error {
				if _, err := r.CNI.Add(r.ctx, p); err != nil {
					mu.Lock()
					failed++
					mu.Unlock()
					t.Logf("failed, and is deleted as a runtime would: %v", err)
					return r.CNI.Del(r.ctx, p)
				}
				mu.Lock()
				defer mu.Unlock()
				alive = append(alive, p)
				return nil
			})
		}()
		kills := r.killUntil(done, rng)
		t.Logf("%d pods added, %d failed, %d kills, %.2f s", len(alive), failed, kills, time.Since(start).Seconds())
		r.waitReady() // the last kill may have been very recent
		r.within(20*time.Second, "nothing but the pods is left", func() error { return r.findOthers(alive) })
		r.must(r.ring(20*time.Second, alive))
		r.restartsQuietly(alive)
	})
}

// killUntil kills and starts the agent until done delivers.
func (r *rig) killUntil(done <-chan error, rng *rand.Rand) (kills int) {
	r.t.Helper()
	for {
		ctx, cancel := context.WithTimeout(r.ctx, time.Duration(20+rng.IntN(250))*time.Millisecond)
		select {
		case err := <-done:
			cancel()
			r.must(err)
			return kills
		case <-ctx.Done(): // time for the next kill
			cancel()
		}
		if kills < 8 {
			r.must(r.Agent.Kill())
			r.must(r.LaunchAgent(r.ctx))
			kills++
			if kills%2 == 0 { // every other time the agent is killed while it starts
				r.waitReady()
			}
		}
		r.must(r.ctx.Err())
	}
}

func (r *rig) waitReady() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, 15*time.Second)
	defer cancel()
	r.must(r.WaitReady(ctx))
}

// restartsQuietly checks that an agent that finds its configuration in place changes nothing.
func (r *rig) restartsQuietly(pods []*testbed.Pod) {
	r.t.Helper()
	r.waitReady()
	r.quiet()
	var lost netns.PingResult
	pinged := make(chan error, 1)
	go func() {
		got, err := pods[0].Ping(r.ctx, pods[1].IPs[0].String(), 100, 10*time.Millisecond)
		lost = got
		pinged <- err
	}()
	took := r.restart()
	if n := r.writes(); n != 0 {
		r.t.Errorf("a restart with nothing changed makes %.0f writes to the dataplane\n%s", n, r.requests())
	}
	ops := r.executed()
	for i, op := range ops {
		if i < 15 {
			r.t.Errorf("a restart with nothing changed does: %s", op)
		}
	}
	r.must(<-pinged)
	r.t.Logf("restart with %d pods: ready after %d ms, %d operations, %s", len(pods), took.Milliseconds(), len(ops), lost)
	if lost.Lost() > 0 {
		r.t.Errorf("packets were lost: %s", lost)
	}
}

// TestAgentRestart checks that pods keep their connections.
func TestAgentRestart(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, veth, linux, iptables}, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name, fake.name)
		r := newRig(t, m)
		pods := r.add("a", "b", "c")
		r.must(r.ring(5*time.Second, pods))
		r.restartsQuietly(pods)
		r.onlyPods(pods)
		// The agent finds changes of pods that happen while it does not run when it starts.
		r.must(r.Agent.Kill())
		r.must(pods[2].Delete(r.ctx))
		r.start()
		r.within(10*time.Second, "the vanished pod is forgotten", func() error { return r.findOthers(pods[:2]) })
		r.reaches(pods[0].Namespace, pods[1].IPs[0].String())
	})
}
