package plugin_test

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/traffic"
)

const (
	asked    = "questions for the delay of a TAP"
	answered = "answers to these questions"
	marked   = "packets marked to slow a sender"
	removed  = "segments removed to slow a sender"
)

// backlogLoad is a pod whose streams fill the queue of its TAP.
type backlogLoad struct {
	*rig
	traffic *traffic.Traffic
	a, b    *port
}

func newBacklogLoad(t *testing.T, from, to string, opts vpptest.Options) *backlogLoad {
	t.Helper()
	opts.Vhostshim, opts.Buffers = true, 16384
	r := newRig(t, opts)
	options := fmt.Sprintf("gso num-rx-queues %d", max(1, opts.Workers))
	l := &backlogLoad{rig: r, traffic: traffic.New(), a: r.tap(from, options), b: r.tap(to, options)}
	t.Cleanup(l.traffic.Close)
	_, err := l.traffic.Serve(l.b.Namespace, bulkPort)
	r.do(nil, err)
	r.reach(l.a, l.b.v4)
	r.reach(l.a, l.b.v6)
	return l
}

// wait returns how long requests wait, in the median, while streams send as much as they can. No byte is wrong.
func (l *backlogLoad) wait(to netip.Addr) time.Duration {
	l.Helper()
	server := netip.AddrPortFrom(to, bulkPort)
	var streams []*traffic.Stream
	for i := range 12 {
		s, err := l.traffic.Stream(l.a.Namespace, server, traffic.StreamOptions{Name: fmt.Sprintf("stream %d to %s", i, server), Up: true})
		l.do(nil, err)
		streams = append(streams, s)
	}
	settles := 1500 * time.Millisecond
	if to.Is6() {
		settles += 3 * time.Second // the plugin does not ask earlier for an IPv6 address
	}
	start := time.Now()
	_, err := l.traffic.Query(l.a.Namespace, server, 100, settles)
	l.do(nil, err)
	q, err := l.traffic.Query(l.a.Namespace, server, 100, 1500*time.Millisecond)
	l.do(nil, err)
	var bytes int64
	for _, s := range streams {
		bytes += s.Arrived()
		if err := s.Stop(); err != nil {
			l.Error(err)
		}
	}
	l.Logf("%s: %.1f Gb/s, requests wait for %s", to, float64(bytes)*8/1e9/time.Since(start).Seconds(), q.Percentile(50))
	return q.Percentile(50)
}

// counts returns the counters of questions, answers, marked packets and removed segments.
func (l *backlogLoad) counts() [4]int {
	var n [4]int
	for i, reason := range []string{asked, answered, marked, removed} {
		n[i] = l.counter("contiv-offload-input", reason)
	}
	return n
}

// drops returns the number of dropped packets of a pod.
func (l *backlogLoad) drops(p *port) int {
	for line := range strings.Lines(l.cli("show interface %s", p.device)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "drops" {
			n, err := strconv.Atoi(f[1])
			l.do(nil, err)
			return n
		}
	}
	return 0
}

// long is a wait that shows that the queue is full. On a machine with much other work packets wait elsewhere: then there is nothing to control.
const long = 40 * time.Millisecond

// TestBacklog: streams that fill the queue of a TAP in the kernel do not delay other packets of the pod for long: VPP asks the kernel how long its
// packets wait, and slows streams. The same load without this control is the comparison. Both families.
func TestBacklog(t *testing.T) {
	l := newBacklogLoad(t, "a", "b", vpptest.Options{})
	without := newBacklogLoad(t, "c", "d", vpptest.Options{Config: "contiv { no-backlog-control }"})
	for _, family := range []struct{ to, compare netip.Addr }{{l.b.v4, without.b.v4}, {l.b.v6, without.b.v6}} {
		for attempt := range 3 {
			before := l.counts()
			now, then := l.wait(family.to), without.wait(family.compare)
			after := l.counts()
			t.Logf("questions, answers, marked, removed: %v to %v", before, after)
			if after[0] == before[0] || after[1]-before[1] < (after[0]-before[0])/2 {
				t.Errorf("%s: %d questions and %d answers", family.to, after[0]-before[0], after[1]-before[1])
			}
			if after[2] != 0 {
				t.Errorf("%s: %d packets marked", family.to, after[2])
			}
			removed := after[3] - before[3]
			if removed > 0 && (now < then/2 || max(now, then) < long) {
				break
			} else if attempt == 2 {
				t.Errorf("%s: %d segments removed; requests wait for %s, without control for %s", family.to, removed, now, then)
			}
		}
	}
	want := regexp.MustCompile(`tap1, thread 0: \d+ questions for ` + l.a.v6.String() + `, .* kB waited for .* ms; \d+ signals`)
	if out := l.cli("show contiv backlogs"); !want.MatchString(out) {
		t.Errorf("show contiv backlogs:\n%s\ndoes not match %s", out, want)
	}
	if n := without.counts(); n != [4]int{} {
		t.Errorf("control is off, but: %v", n)
	}
	// Questions and answers change no neighbour table, and no answer counts as a dropped packet of the pod.
	for _, p := range []*port{l.a, l.b} {
		out, err := p.Run(t.Context(), "ip", "neigh")
		l.do(nil, err)
		if strings.Contains(out, "lladdr 02:c7:") { // the start: VPP's random addresses may have it elsewhere
			t.Errorf("neighbours of %s:\n%s", p.Name, out)
		}
	}
	if drops, answers := l.drops(l.a), l.counts()[1]; drops > answers/4 {
		t.Errorf("%d dropped packets of the pod, %d answers", drops, answers)
	}
}

// TestBacklogECN: packets of streams whose ends use ECN are marked.
func TestBacklogECN(t *testing.T) {
	l := newBacklogLoad(t, "a", "b", vpptest.Options{})
	for _, p := range []*port{l.a, l.b} {
		_, err := p.Run(t.Context(), "sysctl", "-qw", "net.ipv4.tcp_ecn=1")
		l.do(nil, err)
	}
	for _, to := range []netip.Addr{l.b.v4, l.b.v6} {
		before := l.counts()
		l.wait(to)
		after := l.counts()
		// A segment that is sent again does not use ECN (RFC 3168, 6.1.5), so it can be removed.
		if marked, removed := after[2]-before[2], after[3]-before[3]; marked == 0 || removed > marked/4 {
			t.Errorf("%s: %d packets marked, %d segments removed", to, marked, removed)
		}
	}
}

// TestBacklogQueues: a TAP has two queues, which two threads receive. Both ask, and the answers do not enter the graph, whichever thread receives them.
func TestBacklogQueues(t *testing.T) {
	l := newBacklogLoad(t, "a", "b", vpptest.Options{Workers: 2})
	for _, to := range []netip.Addr{l.b.v4, l.b.v6} {
		before := l.counts()
		l.wait(to)
		after := l.counts()
		questions, answers := after[0]-before[0], after[1]-before[1]
		t.Logf("%s: %d questions, %d answers, %d segments removed", to, questions, answers, after[3]-before[3])
		if questions == 0 || answers < questions*9/10 {
			t.Errorf("%s: %d questions and %d answers", to, questions, answers)
		}
	}
	out := l.cli("show contiv backlogs")
	t.Log(out)
	for _, thread := range []string{"tap1, thread 1: ", "tap1, thread 2: "} {
		if !strings.Contains(out, thread) {
			t.Errorf("show contiv backlogs has no %q", thread)
		}
	}
}
