package cluster

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPause checks that pods lose no packet when VPP's main thread stands still, as it does while it makes interfaces on a node with much work.
// After the pause VPP sends all packets of this time in one burst, which the rings of the pods must hold.
func TestPause(t *testing.T) {
	w := newWorld(t, defaultVPP, 2)
	pods := append(w.podPerNode(), w.pod(w.Nodes[0], "beside"))
	w.mesh(pods)
	const every, pauses, pause = 2 * time.Millisecond, 3, 350 * time.Millisecond
	var pings sync.WaitGroup
	for _, to := range pods[1:] {
		for _, ip := range to.IPs {
			pings.Go(func() {
				result, err := pods[0].Ping(w.ctx, ip.String(), int(2*pauses*pause/every), every)
				t.Logf("%s: %s", ip, result)
				if err != nil || result.Lost() > 0 || result.Max < pause/2 {
					t.Errorf("%s: %s, %v; want no loss, and delays by the pauses", ip, result, err)
				}
			})
		}
	}
	for range pauses {
		time.Sleep(pause)
		w.must(pauseThread(w.Nodes[0].VPP.PID(), pause))
	}
	pings.Wait()
	if t.Failed() {
		w.logDrops(pods)
	}
}

// pauseThread stops one thread of a process; the other ones continue.
func pauseThread(tid int, pause time.Duration) error {
	runtime.LockOSThread() // the thread that stops another one must also continue it
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(tid); err != nil {
		return fmt.Errorf("trace thread %d: %w", tid, err)
	}
	if err := unix.PtraceInterrupt(tid); err != nil {
		return fmt.Errorf("stop thread %d: %w", tid, err)
	}
	if _, err := unix.Wait4(tid, nil, unix.WALL, nil); err != nil {
		return fmt.Errorf("wait for thread %d: %w", tid, err)
	}
	time.Sleep(pause)
	if err := unix.PtraceDetach(tid); err != nil {
		return fmt.Errorf("continue thread %d: %w", tid, err)
	}
	return nil
}
