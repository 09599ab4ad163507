package nat44_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// changesVariable makes TestChangesUnderLoad longer: the number of changes of endpoints.
const changesVariable = "CONTIV_NAT_CHANGES"

// TestChangesUnderLoad: no connection to a service fails while its endpoints come and go, by VPP of one thread and of two.
func TestChangesUnderLoad(t *testing.T) {
	for workers, name := range []string{"OneThread", "Worker"} {
		t.Run(name, func(t *testing.T) { changesUnderLoad(t, workers) })
	}
}

func changesUnderLoad(t *testing.T, workers int) {
	changes := 40
	s := os.Getenv(changesVariable)
	if s == "" && workers > 0 && runtime.NumCPU() < 4 {
		t.Skipf("skipped: VPP gives up when its worker does not get a CPU; on fewer than 4 %s=40 runs it", changesVariable)
	}
	if s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s: %v", changesVariable, err)
		}
		changes = n
	}
	w := newWorld(t, 1, "", func(o *vpptest.Options) { o.Workers = workers })
	a, b, c, d := w.pod(0, "a"), w.pod(0, "b"), w.pod(0, "c"), w.pod(0, "d")
	client, outside := w.pod(0, "client"), w.outside()
	web := w.service("web", "10.96.0.10", nodePort(30080), a, b)
	w.reaches(client, "tcp", "10.96.0.10:80", a, b)
	w.reaches(outside, "tcp", "192.168.16.1:30080", a, b)
	cluster, node := w.press(client, "10.96.0.10:80"), w.press(outside, "192.168.16.1:30080")
	var other *corev1.Service
	steps := [][]*server{{a, b, c}, {b, c}, {b, c, d}, {c, d}, {a, c, d}, {a, d}, {a, b, d}, {a, b}}
	for i := range changes {
		w.endpoints(web, steps[i%len(steps)]...)
		switch i % 5 { // another service with the same backends comes and goes
		case 0:
			other = w.service("other", "10.96.0.11", nil, a, b)
		case 3:
			w.must(w.api.Delete(other))
		}
		time.Sleep(25 * time.Millisecond)
	}
	if strings.Contains(w.Nodes[0].VPP.Log(), "worker thread deadlock") {
		cluster.stop()
		node.stop()
		t.Skip("skipped: the machine is too busy for a VPP with a worker: the worker did not run for a second, and VPP gave up")
	}
	writes, err := w.Nodes[0].Metric(w.ctx, "contiv_vpp_writes_total")
	w.must(err)
	t.Logf("%d changes, %.0f writes in all", changes, writes)
	w.refused(client, "tcp", "10.96.0.11:80")
	w.reaches(client, "tcp", w.firstBackend("10.96.0.12", a), a)
	cluster.stop()
	node.stop()
	cluster.work.Wait()
	node.work.Wait()
	cluster.check(t, changes, 0)
	node.check(t, changes, workers) // a worker may see a packet to a node port between two requests
}

// firstBackend has a service without endpoints, at which connections are refused, get one. The result is where it is.
func (w *world) firstBackend(ip string, s *server) (to string) {
	w.t.Helper()
	svc := w.service("late", ip, nil)
	w.refused(s, "tcp", ip+":80")
	w.endpoints(svc, s)
	return ip + ":80"
}

// load is clients that connect again and again.
type load struct {
	to   string
	stop context.CancelFunc
	work sync.WaitGroup
	done atomic.Int64
	mu   sync.Mutex
	errs []error // guarded by mu
}

func (w *world) press(from *server, to string) *load {
	ctx, cancel := context.WithCancel(w.ctx)
	l := &load{to: to, stop: cancel}
	for range 4 {
		l.work.Go(func() {
			for ctx.Err() == nil {
				_, _, err := queryOnce(from.Namespace, "tcp", to)
				n := l.done.Add(1)
				if err != nil {
					l.mu.Lock()
					l.errs = append(l.errs, fmt.Errorf("connection %d: %w", n, err))
					l.mu.Unlock()
				}
			}
		})
	}
	return l
}

// check: there must have been enough load, and no failure but of so many in 1000.
func (l *load) check(t *testing.T, changes, tolerated int) {
	t.Helper()
	done, failed := int(l.done.Load()), len(l.errs)
	t.Logf("to %s: %d connections, %d failed", l.to, done, failed)
	if done < changes {
		t.Errorf("to %s: only %d connections during %d changes: that was no load", l.to, done, changes)
	}
	if failed > tolerated*(1+done/1000) {
		t.Errorf("to %s: %d of %d connections failed: %v", l.to, failed, done, errors.Join(l.errs[:min(5, failed)]...))
	}
}
