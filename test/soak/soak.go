package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/lab"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
	"contiv.dev/vswitch/test/testbed/traffic"
)

// soak is a run: a lab, and the load on it.
type soak struct {
	*lab.Lab
	opts    options
	out     io.Writer
	traffic *traffic.Traffic
	begin   time.Time
	pods    []podAt // pods that exist from start to end
	empty   inventory
	work    sync.WaitGroup

	streams     []*flow
	connections connections
	churn       podChurn
	services    services
	kills       kills
	memory      memory
	faults      faults

	inspected       sync.Mutex
	inspectionsDone int // guarded by inspected
}

// podAt is a pod and its node (from 0).
type podAt struct {
	*testbed.Pod
	name string
	node int
}

func newSoak(ctx context.Context, o options, out io.Writer) (*soak, error) {
	l, err := lab.New(ctx, lab.Options{
		Name: o.name, BinDir: o.bin, Dataplane: o.dataplane, Config: o.config,
		// The sanitizer's quarantine has to be full in the first third of the run: until then memory grows.
		VPP: vpptest.Options{HeapMB: 512, Buffers: 32768, Plugin: o.plugin, Sanitize: o.sanitize, QuarantineMB: 8},
	})
	if err != nil {
		return nil, err
	}
	s := &soak{Lab: l, opts: o, out: out, traffic: traffic.New(), faults: faults{out: out}}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *soak) isVPP() bool { return s.opts.dataplane == "vpp" }

// close stops and removes everything.
func (s *soak) close(ctx context.Context) error {
	s.traffic.Close()
	return s.Lab.Close(ctx)
}

// port is the port of all servers.
const port = 7000

func (s *soak) prepare(ctx context.Context) error {
	if err := s.settled(ctx); err != nil {
		return err
	}
	var err error
	if s.empty, err = s.takeInventory(ctx); err != nil {
		return err
	}
	for i, name := range []string{"a", "b", "c", "d"} {
		p, err := s.Pod(ctx, i/2, name)
		if err != nil {
			return err
		}
		s.pods = append(s.pods, podAt{p, name, i / 2})
		if _, err := s.traffic.Serve(p.Namespace, port); err != nil {
			return err
		}
	}
	for _, ns := range []*netns.Namespace{s.Nodes[0].Namespace, s.Nodes[1].Namespace, s.Underlay} {
		if _, err := s.traffic.Serve(ns, port); err != nil {
			return err
		}
	}
	return s.putServices(ctx)
}

// settled waits until the agents have no work left, so that the inventory can be compared with that at the end.
func (s *soak) settled(ctx context.Context) error {
	last, since := inventory{}, time.Now()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return poll.Until(ctx, 200*time.Millisecond, func() error {
		now, err := s.takeInventory(ctx)
		if err != nil {
			return err
		}
		if diff := last.diff(now); diff != "" {
			last, since = now, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return errors.New("the nodes are still being made")
		}
		return nil
	})
}

// run runs the load for the requested time, reports every minute, and checks the results at the end.
func (s *soak) run(ctx context.Context) error {
	s.begin = time.Now()
	fmt.Fprintf(s.out, "soak: %s, two nodes, %s; load average %s\n", s.opts.dataplane, s.opts.duration, loadAverage())
	if err := s.startStreams(); err != nil {
		return err
	}
	during, cancel := context.WithTimeout(ctx, s.opts.duration)
	defer cancel()
	for _, job := range []func(context.Context){
		s.watchStreams, s.connect, s.changeServices, s.killAgents, s.sampleMemory, s.report,
	} {
		s.work.Go(func() { job(during) })
	}
	for node := range s.Nodes {
		s.work.Go(func() { s.churnPods(during, node) })
	}
	s.work.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	s.stopStreams()
	s.checkMemory()
	s.checkLeftovers(ctx)
	s.summary()
	return s.faults.err()
}

// ended reports whether the run has to stop early.
func (s *soak) ended(ctx context.Context) bool {
	return ctx.Err() != nil || !s.opts.keepGoing && s.faults.count() > 0
}

// sleep waits for d, and returns false when the run is over.
func (s *soak) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return !s.ended(ctx)
	}
}

// fault records a fault.
func (s *soak) fault(kind, format string, args ...any) {
	s.faults.add(time.Since(s.begin), kind, fmt.Sprintf(format, args...))
	s.inspect()
}

// faults are the recorded faults.
type faults struct {
	out io.Writer

	mu    sync.Mutex
	kinds []string
	of    map[string]int // guarded by mu, as kinds
}

// shownOfAKind is how many faults of each kind are printed.
const shownOfAKind = 20

func (f *faults) add(at time.Duration, kind, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[string]int{}
	}
	if f.of[kind] == 0 {
		f.kinds = append(f.kinds, kind)
	}
	if f.of[kind]++; f.of[kind] <= shownOfAKind {
		fmt.Fprintf(f.out, "FAULT %6.1fs %s: %s\n", at.Seconds(), kind, text)
	}
}

func (f *faults) count() (sum int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.of {
		sum += n
	}
	return sum
}

func (f *faults) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, kind := range f.kinds {
		errs = append(errs, fmt.Errorf("%s: %d", kind, f.of[kind]))
	}
	return errors.Join(errs...)
}

// at returns the address and port of a server.
func at(addr netip.Addr) netip.AddrPort { return netip.AddrPortFrom(addr, port) }
