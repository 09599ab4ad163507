package policy

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type drop struct {
	Time                                    time.Time
	Count                                   uint64
	Direction, Pod, Source, SourcePod, Dest string
	DestPod, Protocol, Policy, Rule         string
	Port                                    uint16
	Because                                 string
}

// drops waits until node 1 reports denied flows, one for each text: "direction pod from to protocol port". A pod is given by its name.
func (w *world) drops(want ...string) {
	w.t.Helper()
	short := func(pod, address string) string {
		if pod == "" {
			return address
		}
		return strings.TrimPrefix(pod, "default/")
	}
	w.within("denied flows", time.Minute, func() error {
		var rows []drop
		if err := w.Nodes[0].GetJSON(w.ctx, "/contiv/v1/policy/drops", &rows); err != nil {
			return err
		}
		have := map[string]bool{}
		for _, r := range rows {
			have[fmt.Sprintf("%s %s %s %s %s %d", r.Direction, short(r.Pod, ""), short(r.SourcePod, r.Source), short(r.DestPod, r.Dest), r.Protocol, r.Port)] = true
		}
		for _, text := range want {
			if !have[text] {
				return fmt.Errorf("%q is not among %v", text, have)
			}
		}
		return nil
	})
}

// cpuTime returns the processor time that the agent of node 1 has used.
func (w *world) cpuTime() time.Duration {
	w.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.Nodes[0].Agent.PID()))
	w.must(err)
	_, rest, _ := strings.Cut(string(data), ") ")
	var ticks int
	for _, field := range strings.Fields(rest)[11:13] {
		n, err := strconv.Atoi(field)
		w.must(err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// burst sends UDP packets as fast as possible, each to another port.
func (w *world) burst(from string, to netip.Addr, d time.Duration) (sent int64) {
	w.t.Helper()
	conn, err := listenUDP(w.spaces[from], 0)
	w.must(err)
	defer conn.Close()
	for end := time.Now().Add(d); time.Now().Before(end); sent++ {
		_, _ = conn.WriteTo([]byte("x"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, uint16(sent%60000+1000)))) // errors do not stop the flood
	}
	return sent
}

// TestDrops checks that the agent reports the connections that policy denies, with pods, in both directions and families. A pod that
// floods costs the agent very little, does not fill the log, and does not hide other denied connections.
func TestDrops(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		w.policy("web", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: oth}}}], ports: [{port: 81}]}]}`)
		w.policy("cli", `{podSelector: {matchLabels: {app: cli}}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: web}}}]}]}`)
		w.expect("- cli1 web1 tcp 8080\n- cli2 web1 udp 8080\n- oth1 web1 icmp\n- cli1 out tcp 8080\n- out web1 tcp 8080")
		w.drops("ingress web1 cli1 web1 TCP 8080", "ingress web1 cli2 web1 UDP 8080", "ingress web1 oth1 web1 ICMP 0", "ingress web1 oth1 web1 ICMPv6 0",
			"egress cli1 cli1 192.168.16.250 TCP 8080", "egress cli1 cli1 fd00:16::fa TCP 8080", "ingress web1 192.168.16.250 web1 TCP 8080")
		var rows []drop
		w.must(w.Nodes[0].GetJSON(w.ctx, "/contiv/v1/policy/drops?pod=default/web1", &rows))
		for _, r := range rows {
			if !strings.Contains(r.Because, "default/web") {
				t.Errorf("%+v", r)
			}
		}
		w.flooded()
	})
}

func (w *world) flooded() {
	w.t.Helper()
	const length = 4 * time.Second
	lines := func() int { return strings.Count(w.Nodes[0].LogTail(100000), "network policy denied") }
	linesBefore, before, begin := lines(), w.cpuTime(), time.Now()
	var work sync.WaitGroup
	var sent atomic.Int64
	for _, from := range []string{"cli1", "cli2"} {
		for _, to := range w.addrs["web1"] {
			work.Go(func() { sent.Add(w.burst(from, to, length)) })
		}
	}
	time.Sleep(length / 2)
	_ = w.query("oth1", "tcp", w.addrs["web1"][0], dbPort) // denied
	work.Wait()
	used := w.cpuTime() - before
	w.t.Logf("%d packets denied in %v: the agent used %v of CPU time and wrote %d lines", sent.Load(), length, used, lines()-linesBefore)
	took := time.Since(begin) // longer on a busy machine
	if used > took/5 {
		w.t.Errorf("the agent used %v of CPU time in %v", used, took)
	}
	if n := lines() - linesBefore; n > int(10*took.Seconds()) {
		w.t.Errorf("%d lines were logged in %v", n, took)
	}
	var rows []drop
	w.must(w.Nodes[0].GetJSON(w.ctx, "/contiv/v1/policy/drops", &rows))
	if len(rows) > 200 {
		w.t.Errorf("%d flows are remembered", len(rows))
	}
	w.within("a flow beside the flood is told of", time.Minute, func() error {
		if err := w.query("oth1", "tcp", w.addrs["web1"][0], dbPort); err == nil {
			return fmt.Errorf("it was answered")
		}
		w.must(w.Nodes[0].GetJSON(w.ctx, "/contiv/v1/policy/drops?pod=default/oth1", &rows))
		for _, r := range rows {
			if r.Port == dbPort && r.Protocol == "TCP" {
				return nil
			}
		}
		return fmt.Errorf("it is not among %+v", rows)
	})
}
