package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/traffic"
)

// flow is a stream that is opened again whenever it breaks.
type flow struct {
	name string
	from *netns.Namespace
	to   netip.AddrPort

	mu      sync.Mutex
	stream  *traffic.Stream // nil while it is broken
	before  int64           // bytes of streams that broke
	seen    [2]int64        // bytes at the last check, up and down
	quiet   [2]int          // checks without progress
	longest int
}

// bytes returns the number of bytes that have arrived so far.
func (f *flow) bytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stream == nil {
		return f.before
	}
	return f.before + f.stream.Arrived()
}

// directions returns a flow for each path of packets, in both families if both are in use.
func (s *soak) directions() []*flow {
	a, b, c, d := s.pods[0], s.pods[1], s.pods[2], s.pods[3]
	var all []*flow
	add := func(name string, from *netns.Namespace, to ...netip.AddrPort) {
		for _, addr := range to {
			family := map[bool]string{true: "4", false: "6"}[addr.Addr().Is4()]
			all = append(all, &flow{name: name + " " + family, from: from, to: addr})
		}
	}
	both := func(p podAt) []netip.AddrPort { return []netip.AddrPort{at(p.IPs[0]), at(p.IPs[1])} }
	host := func(i int) []netip.AddrPort {
		return []netip.AddrPort{at(s.HostAddrs(i)[0]), at(s.HostAddrs(i)[1])}
	}
	add("pod to pod of one node", a.Namespace, both(b)...)
	add("pod to pod of the other one", d.Namespace, both(c)...)
	add("pod to other node's pod", a.Namespace, both(c)...)
	add("the other way", d.Namespace, both(b)...)
	add("pod to its host", a.Namespace, host(0)...)
	add("host to its pod", s.Nodes[1].Namespace, both(d)...)
	add("host to other node's pod", s.Nodes[0].Namespace, both(c)...)
	add("pod to other node's host", b.Namespace, host(1)[0])
	add("pod to the outside", a.Namespace, at(s.OutsideAddr()))
	add("outside to a node port", s.Underlay, netip.AddrPortFrom(s.NodeAddr(0), nodePort))
	add("pod to a service", b.Namespace, steady.at()...)
	add("host to a service", s.Nodes[0].Namespace, steady.at()[0])
	return all
}

func (s *soak) startStreams() error {
	for _, f := range s.directions() {
		deadline := time.Now().Add(20 * time.Second) // until services work
		for {
			err := s.open(f)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return err
			}
			time.Sleep(200 * time.Millisecond)
		}
		s.streams = append(s.streams, f)
	}
	return nil
}

func (s *soak) open(f *flow) error {
	rate := s.opts.rate << 20
	stream, err := s.traffic.Stream(f.from, f.to, traffic.StreamOptions{
		Name: f.name, Up: true, Down: true, Rate: rate, Burst: 2 * rate,
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stream, f.seen, f.quiet = stream, [2]int64{}, [2]int{}
	return nil
}

// checkEvery is the interval of the checks. Checks are counted instead of time: when the whole machine is suspended, that is not a
// fault of the streams.
const checkEvery = time.Second

// watchStreams checks that all streams make progress, and opens broken streams again.
func (s *soak) watchStreams(ctx context.Context) {
	for s.sleep(ctx, checkEvery) {
		for _, f := range s.streams {
			s.checkStream(f)
		}
		for _, n := range s.Nodes {
			if n.VPP != nil && !n.VPP.Running() {
				s.fault("VPP has ended", "%s: %s", n.Name, n.VPP.Log())
				return
			}
		}
	}
}

func (s *soak) checkStream(f *flow) {
	f.mu.Lock()
	stream := f.stream
	f.mu.Unlock()
	if stream == nil {
		if err := s.open(f); err != nil {
			s.fault("stream cannot be opened", "%v", err)
		}
		return
	}
	if err := stream.Err(); err != nil {
		kind := "stream broken"
		if errors.Is(err, traffic.ErrCorrupted) {
			kind = "bytes corrupted"
		}
		s.fault(kind, "%v", err)
		_ = stream.Stop() // its error has been reported
		f.mu.Lock()
		defer f.mu.Unlock()
		f.before, f.stream = f.before+stream.Arrived(), nil
		return
	}
	for _, dir := range s.stalled(f, stream) {
		s.fault("stream stalled", "%s, %s", f.name, dir)
	}
}

// stalled counts the checks without progress, and returns the directions in which the limit has just been exceeded.
func (s *soak) stalled(f *flow, stream *traffic.Stream) (directions []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Between bursts two checks see no progress.
	most := int(s.opts.stall/checkEvery) + 2
	for dir, now := range []int64{stream.Up.Load(), stream.Down.Load()} {
		if now != f.seen[dir] {
			f.seen[dir], f.quiet[dir] = now, 0
			continue
		}
		f.quiet[dir]++
		f.longest = max(f.longest, f.quiet[dir])
		if f.quiet[dir] == most {
			directions = append(directions, [2]string{"up", "down"}[dir])
		}
	}
	return directions
}

// stopStreams ends the streams; an error at the end counts, too.
func (s *soak) stopStreams() {
	for _, f := range s.streams {
		f.mu.Lock()
		stream := f.stream
		f.mu.Unlock()
		if stream == nil {
			continue
		}
		if err := stream.Stop(); errors.Is(err, traffic.ErrCorrupted) {
			s.fault("bytes corrupted", "%v", err)
		} else if err != nil {
			s.fault("stream broken", "%v", err)
		}
	}
}

// progress returns the bytes of all streams, and the longest time without progress.
func (s *soak) progress() (bytes int64, longest time.Duration, which string) {
	for _, f := range s.streams {
		bytes += f.bytes()
		f.mu.Lock()
		if d := time.Duration(f.longest) * checkEvery; d > longest {
			longest, which = d, f.name
		}
		f.mu.Unlock()
	}
	return bytes, longest, which
}

func gigabytes(n int64) string { return fmt.Sprintf("%.1f GB", float64(n)/1e9) }
