package policy

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	flipPort   = 7
	flipEvery  = 20 * time.Millisecond // between packets of a flow
	flipFlows  = 6                     // flows of each sender to each address
	flipCount  = 30
	flipPolicy = `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: oth}}}]}]}`
	// cutPackets is how many packets of a flow may pass after the agent has put the policy into the dataplane: 100 ms, measured in packet intervals.
	cutPackets = int(100 * time.Millisecond / flipEvery)
)

// flow is a UDP flow whose packets contain their send time.
type flow struct {
	from string
	kept bool // allowed by all policies
	sent []time.Time
	got  map[uint32]time.Time // by index in sent
	errs map[uint32]error     // errors of the sender's kernel, by index in sent
}

// period is a time span in which the state of the dataplane is known: from the time when the agent has applied the state to the time when the next
// change begins.
type period struct {
	begin, end time.Time
	denied     bool
}

// flips are many flows to web1 while a policy is repeatedly added and deleted.
type flips struct {
	*world
	mu      sync.Mutex
	flows   []*flow
	begin   time.Time // of the current period
	denied  bool
	periods []period
	away    []period // periods in which VPP did not run
	// counters are VPP's counters of drops and other events at the begin of each period, to explain lost packets.
	counters []map[string]int
}

// start starts to send: from cli1 and cli2, which the policy denies, and from oth1, which it allows.
func (f *flips) start() (stop func()) {
	f.t.Helper()
	conn, err := listenUDP(f.spaces["web1"], flipPort)
	f.must(err)
	f.must(conn.(*net.UDPConn).SetReadBuffer(4 << 20))
	done := make(chan struct{})
	var senders, receiver sync.WaitGroup
	receiver.Go(func() { f.receive(conn) })
	for _, from := range []string{"cli1", "cli2", "oth1"} {
		for _, to := range f.addrs["web1"] {
			for range flipFlows {
				out, err := listenUDP(f.spaces[from], 0)
				f.must(err)
				fl := &flow{from: from, kept: from == "oth1", got: map[uint32]time.Time{}, errs: map[uint32]error{}}
				f.flows = append(f.flows, fl)
				id := uint32(len(f.flows) - 1)
				senders.Go(func() {
					defer out.Close()
					f.send(out, netip.AddrPortFrom(to, flipPort), id, done)
				})
			}
		}
	}
	f.begin = time.Now()
	return func() {
		close(done)
		senders.Wait()
		time.Sleep(100 * time.Millisecond) // time for packets in flight; later ones count as lost at the end, which is not a fault
		_ = conn.Close()
		receiver.Wait()
	}
}

func (f *flips) send(conn net.PacketConn, to netip.AddrPort, id uint32, done chan struct{}) {
	f.mu.Lock()
	fl := f.flows[id]
	f.mu.Unlock()
	tick := time.NewTicker(flipEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		f.mu.Lock()
		n := uint32(len(fl.sent))
		fl.sent = append(fl.sent, time.Now())
		packet := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, id), n)
		f.mu.Unlock()
		if _, err := conn.WriteTo(packet, net.UDPAddrFromAddrPort(to)); err != nil { // a denied packet may cause it
			f.mu.Lock()
			fl.errs[n] = err
			f.mu.Unlock()
		}
	}
}

func (f *flips) receive(conn net.PacketConn) {
	for buf := make([]byte, 100); ; {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if n != 8 {
			continue
		}
		id, at := binary.BigEndian.Uint32(buf), binary.BigEndian.Uint32(buf[4:])
		f.mu.Lock()
		f.flows[id].got[at] = time.Now()
		f.mu.Unlock()
	}
}

// flip adds or deletes the policy; during runs while the change is delivered to the agent. The agent of web1's node handles one change after the
// other: when it has handled a later one, this one is in the dataplane.
func (f *flips) flip(during func()) {
	f.t.Helper()
	f.count()
	f.periods = append(f.periods, period{f.begin, time.Now(), f.denied})
	if f.denied = !f.denied; f.denied {
		f.policy("flip", flipPolicy)
	} else {
		f.policy("flip", "")
	}
	if during != nil {
		during()
	}
	f.handled()
	f.begin = time.Now()
}

// count records the counters of VPP on web1's node.
func (f *flips) count() {
	n := map[string]int{}
	f.counters = append(f.counters, n)
	if !f.onVPP {
		return
	}
	out, err := f.Nodes[0].VPP.CLI("show errors")
	f.must(err)
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 2 {
			if c, err := strconv.Atoi(fields[0]); err == nil {
				n[strings.Join(fields[1:], " ")] += c
			}
		}
	}
}

// counted returns the events of VPP around a time: between the begins of the periods before and after it.
func (f *flips) counted(when time.Time) string {
	at := 0
	for at < len(f.counters)-2 && f.periods[at].end.Before(when) {
		at++
	}
	var all []string
	for from := max(0, at-1); from < min(at+1, len(f.counters)-1); from++ {
		for _, name := range slices.Sorted(maps.Keys(f.counters[from+1])) {
			if d := f.counters[from+1][name] - f.counters[from][name]; d != 0 {
				all = append(all, fmt.Sprintf("%d %s", d, name))
			}
		}
		all = append(all, "then")
	}
	return strings.Join(all, ", ")
}

func (f *flips) hold() { time.Sleep(time.Duration(50+rand.IntN(150)) * time.Millisecond) }

// at returns the period that contains a time; nil: a change was in progress.
func at(list []period, when time.Time) *period {
	i := slices.IndexFunc(list, func(p period) bool { return !when.Before(p.begin) && when.Before(p.end) })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// evaluate finds packets that passed or were dropped wrongly.
func (f *flips) evaluate() {
	f.t.Helper()
	f.count()
	f.periods = append(f.periods, period{f.begin, time.Now(), f.denied})
	passed, denied, late := 0, 0, 0
	for i, fl := range f.flows {
		after := map[*period]int{} // packets sent in a period in which they are denied
		for n, sent := range fl.sent {
			got, arrived := fl.got[uint32(n)]
			p := at(f.periods, sent)
			switch {
			case arrived:
				passed++
			default:
				denied++
			}
			if p == nil || fl.kept || !p.denied {
				continue
			}
			after[p]++
			if !arrived || got.After(p.end) {
				continue
			}
			if late = max(late, after[p]); after[p] > cutPackets {
				f.t.Errorf("flow %d of %s: a packet passed %v after its policy was in force, the %d. since", i, fl.from, sent.Sub(p.begin), after[p])
			}
		}
		f.dropped(i, fl)
	}
	f.t.Logf("%d changes, %d flows: %d packets passed, %d did not; of a flow that was cut, at most %d packets passed later", len(f.periods)-1,
		len(f.flows), passed, denied, late)
	if passed == 0 || denied == 0 {
		f.t.Error("nothing passed, or everything")
	}
}

// dropped finds allowed packets that were lost between others of the same flow and period that arrived: the last packets of a period may have been in
// flight when the policy changed.
func (f *flips) dropped(i int, fl *flow) {
	f.t.Helper()
	var lost []time.Time
	var errs []error
	var in *period
	for n, sent := range fl.sent {
		p := at(f.periods, sent)
		if p != nil && p.denied && !fl.kept {
			p = nil
		}
		if p != in && !fl.kept {
			in, lost, errs = p, nil, nil
		}
		if p == nil && !fl.kept || at(f.away, sent) != nil {
			continue
		}
		if _, arrived := fl.got[uint32(n)]; !arrived {
			lost, errs = append(lost, sent), append(errs, fl.errs[uint32(n)])
			continue
		}
		if len(lost) > 0 {
			f.t.Errorf("flow %d of %s: %d packets that are allowed were lost, the first %s; the kernel's errors: %v; VPP's counters: %s", i, fl.from, len(lost),
				f.when(lost[0]), errs, f.counted(lost[0]))
			lost, errs = nil, nil
		}
	}
}

// when describes the position of a time among the changes.
func (f *flips) when(t time.Time) string {
	n := 0
	for n < len(f.periods)-1 && f.periods[n+1].begin.Before(t) {
		n++
	}
	p := f.periods[n]
	if t.Before(p.end) {
		return fmt.Sprintf("%v after change %d (denied %t) was in the dataplane", t.Sub(p.begin), n, p.denied)
	}
	return fmt.Sprintf("%v after change %d (denied %t) began", t.Sub(p.end), n+1, !p.denied)
}

// killVPP kills VPP: while VPP does not run, packets are lost, but no denied packet may pass.
func (f *flips) killVPP() {
	f.t.Helper()
	begin := time.Now().Add(-time.Second / 2) // includes packets in VPP
	n := f.Nodes[0]
	n.VPP.Kill()
	f.must(n.VPP.Run(f.ctx))
	f.within("packets pass a new VPP", 60*time.Second, func() error {
		for _, to := range f.addrs["web1"] {
			if err := f.query("oth1", "udp", to, httpPort); err != nil {
				return err
			}
		}
		return nil
	})
	f.handled()
	f.away = append(f.away, period{begin: begin, end: time.Now()})
}

// TestFlips adds and deletes a policy under many flows, and kills agent, API server and VPP during this. No denied packet passes, and no allowed
// packet is lost except while VPP does not run.
func TestFlips(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		f := &flips{world: w}
		stop := f.start()
		stream := w.stream("oth1", "web1", w.addrs["web1"][0], 9000)
		for range flipCount {
			f.flip(nil)
			f.hold()
		}
		for range 4 {
			f.flip(f.killAgent)
			f.hold()
		}
		for range 4 { // denied and allowed, and a change during the outage
			w.api.Cut()
			f.hold()
			w.api.Restore()
			f.hold()
			w.api.Cut()
			f.flip(func() { f.hold(); w.api.Restore() })
		}
		before := stream.bytes.Load()
		w.within("a stream that is allowed goes on", 10*time.Second, func() error {
			if stream.bytes.Load() == before {
				return fmt.Errorf("nothing was read")
			}
			return nil
		})
		if w.onVPP {
			for range 2 {
				f.killVPP()
				f.flip(nil)
				f.hold()
			}
		}
		stop()
		f.evaluate()
	}, onVPP)
}
