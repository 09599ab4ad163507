package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/poll"
)

// scaleFigures are the measurements with one number of services.
type scaleFigures struct {
	services      int
	vppEmpty, vpp float64 // bytes
	setUp, known  float64 // clocks of contiv-ip4-input for a packet
	plain         float64 // for a packet to an address of no service
	agent         agentFigures
	oneChange     changeFigures
}

// agentFigures are the agent's memory and start times.
type agentFigures struct {
	empty, rss, peak      float64 // bytes
	cold, restart         time.Duration
	coldWork, restartWork time.Duration // processor time
	writes                float64       // writes of a restarted agent
}

// changeFigures are the cost of a change of one endpoint.
type changeFigures struct {
	took, work time.Duration // work: processor time of the agent
	messages   float64       // to VPP
}

// benchScale measures VPP with our plugin with different numbers of services, one after the other.
func benchScale(ctx context.Context, e *env) error {
	if !e.vpp {
		fmt.Println("   left out: there is no VPP")
		return nil
	}
	var all []scaleFigures
	for _, n := range e.services.scale {
		sizes := e.services
		sizes.services, sizes.among = n, n
		f, err := measureScale(ctx, sizes, &agentSide{env: e, dataplane: "vpp", plugin: true})
		if err != nil {
			return fmt.Errorf("%d services: %w", n, err)
		}
		all = append(all, f)
	}
	e.reportScale(all)
	return nil
}

// reportScale prints each figure as a line, and its growth.
func (e *env) reportScale(all []scaleFigures) {
	first := all[0]
	line := func(what, unit string, value func(f scaleFigures) float64) {
		var bars []bar
		text := fmt.Sprintf("   %-58s", what+", "+unit)
		for _, f := range all {
			text += fmt.Sprintf(" %10s", number(value(f)))
			bars = append(bars, bar{name: fmt.Sprintf("%d services", f.services), value: value(f)})
		}
		last := all[len(all)-1]
		if v := value(first); v > 0 && len(all) > 1 {
			text += fmt.Sprintf("   %.2fx", value(last)/v)
		}
		fmt.Println(text)
		e.record(what, unit, bars...)
	}
	milli := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	each := func(value float64, f scaleFigures) float64 { return value / float64(f.services) }
	line("services", "number", func(f scaleFigures) float64 { return float64(f.services) })
	line("a connection's first packet, contiv-ip4-input", "clocks", func(f scaleFigures) float64 { return f.setUp })
	line("its other packets, contiv-ip4-input", "clocks", func(f scaleFigures) float64 { return f.known })
	line("a packet of no service, contiv-ip4-input", "clocks", func(f scaleFigures) float64 { return f.plain })
	line("one endpoint changes, until connections go there", "ms", func(f scaleFigures) float64 { return milli(f.oneChange.took) })
	line("one endpoint changes, processor time of the agent", "ms", func(f scaleFigures) float64 { return milli(f.oneChange.work) })
	line("one endpoint changes, messages to VPP", "number", func(f scaleFigures) float64 { return f.oneChange.messages })
	line("cold start until services respond", "ms", func(f scaleFigures) float64 { return milli(f.agent.cold) })
	line("cold start, processor time of the agent, for a service", "us", func(f scaleFigures) float64 { return each(milli(f.agent.coldWork)*1000, f) })
	line("the same, started again after kill -9", "us", func(f scaleFigures) float64 { return each(milli(f.agent.restartWork)*1000, f) })
	line("ready again after kill -9", "ms", func(f scaleFigures) float64 { return milli(f.agent.restart) })
	line("writes to VPP of the agent started again", "number", func(f scaleFigures) float64 { return f.agent.writes })
	line("cold start, for a service", "us", func(f scaleFigures) float64 { return each(milli(f.agent.cold)*1000, f) })
	line("memory of the agent", "MB", func(f scaleFigures) float64 { return f.agent.rss / 1e6 })
	line("memory of the agent, most", "MB", func(f scaleFigures) float64 { return f.agent.peak / 1e6 })
	line("memory of the agent, for a service", "bytes", func(f scaleFigures) float64 { return each(f.agent.rss-f.agent.empty, f) })
	line("memory of VPP, for a service", "bytes", func(f scaleFigures) float64 { return each(f.vpp-f.vppEmpty, f) })
}

func measureScale(ctx context.Context, sizes serviceSizes, s *agentSide) (f scaleFigures, err error) {
	f.services = sizes.services
	w, end, err := newServicesWorld(ctx, sizes, s)
	defer end()
	if err != nil {
		return f, err
	}
	if f.agent.empty, err = w.memoryWhenEmpty(ctx, s); err != nil {
		return f, err
	}
	f.vppEmpty, _ = memoryOf(s.node.VPP.PID())
	if err := w.fill(0, sizes.services, sizes.endpoints); err != nil {
		return f, err
	}
	begin := time.Now()
	p, err := s.start(ctx)
	if err != nil {
		return f, err
	}
	defer func() { _ = s.node.Agent.Kill() }()
	if f.agent.cold, err = w.awaitSome(ctx, begin, sizes.services); err != nil {
		return f, err
	}
	if err := calm(ctx, s.node); err != nil {
		return f, err
	}
	f.agent.coldWork = processorTime(p.PID())
	f.agent.rss, f.agent.peak = memory(p)
	f.vpp, _ = memoryOf(s.node.VPP.PID())
	fmt.Printf("   %d services with %d endpoints each: they respond %s after the start; agent %.0f MB (peak %.0f MB, empty %.0f MB), VPP %.0f MB more\n",
		f.services, sizes.endpoints, ms(f.agent.cold), f.agent.rss/1e6, f.agent.peak/1e6, f.agent.empty/1e6, (f.vpp-f.vppEmpty)/1e6)
	if err := w.scaleChanges(ctx, s, &f); err != nil {
		return f, err
	}
	if err := w.scaleClocks(ctx, s, &f); err != nil {
		return f, err
	}
	if f.agent.restart, f.agent.writes, err = restart(ctx, s.node); err != nil {
		return f, err
	}
	if err := calm(ctx, s.node); err != nil {
		return f, err
	}
	f.agent.restartWork = processorTime(s.node.Agent.PID())
	f.agent.writes, err = s.node.Metric(ctx, writesMetric)
	return f, err
}

const writesMetric = "contiv_vpp_writes_total"

// awaitSome waits until a sample of the services answers.
func (w *world) awaitSome(ctx context.Context, begin time.Time, n int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	for i := 0; i < n; i += max(1, n/sampled) {
		if err := poll.Until(ctx, 2*time.Millisecond, func() error {
			_, err := w.query(ctx, clusterIP(i))
			return err
		}); err != nil {
			return 0, fmt.Errorf("service %d does not respond: %w\n%s", i, err, w.where())
		}
	}
	return time.Since(begin), nil
}

// calm waits until the agent has not written to VPP for a second.
func calm(ctx context.Context, n *testbed.Node) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	last, since := -1.0, time.Now()
	return poll.Until(ctx, 100*time.Millisecond, func() error {
		now, err := n.Metric(ctx, writesMetric)
		if err != nil {
			return err
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < time.Second {
			return fmt.Errorf("the agent writes: %.0f by now", now)
		}
		return nil
	})
}

// scaleChanges measures the cost of a change of one endpoint.
func (w *world) scaleChanges(ctx context.Context, s *agentSide, f *scaleFigures) (err error) {
	w.sizes.services = w.sizes.among // all of them exist already
	once := *w
	once.sizes.changes = 1 // this change creates the service
	if _, err := once.measureChanges(ctx, fmt.Sprint(f.services)); err != nil {
		return err
	}
	if err := idle(ctx, s.node.Agent.PID()); err != nil {
		return err
	}
	written, err := s.node.Metric(ctx, writesMetric)
	if err != nil {
		return err
	}
	before := processorTime(s.node.Agent.PID())
	if f.oneChange.took, err = w.measureChanges(ctx, fmt.Sprint(f.services)); err != nil {
		return err
	}
	after := processorTime(s.node.Agent.PID())
	now, err := s.node.Metric(ctx, writesMetric)
	changes := float64(w.sizes.changes + 1)
	f.oneChange.work = time.Duration(float64(after-before) / changes)
	f.oneChange.messages = (now - written) / changes
	return err
}

// idle waits until a process uses less than a tenth of a processor for two seconds: after its start the agent writes its local copy.
func idle(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	before := time.Duration(0)
	return poll.Until(ctx, 2*time.Second, func() error {
		used := processorTime(pid) - before
		before += used
		if used > 200*time.Millisecond {
			return fmt.Errorf("the agent is busy: %s in 2 s", used)
		}
		return nil
	})
}

// processorTime returns the processor time of a process, user and system.
func processorTime(pid int) time.Duration {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// scaleFlows is the number of connections for the measurement of clocks, and the maximum number of services among which they are
// spread.
const scaleFlows = 10_000

// scaleClocks measures the clocks of packets to services in the plugin's node. The packets seem to come from the host.
func (w *world) scaleClocks(ctx context.Context, s *agentSide, f *scaleFigures) error {
	c := &clockWorld{dir: s.dir}
	host, source, err := hostEnd(ctx, s.node)
	if err != nil {
		return err
	}
	// The endpoints' kernel must not affect the measurement, and its answers would close the connections.
	if _, err := w.far.Run(ctx, "nft", "add table inet sink; add chain inet sink in { type filter hook prerouting priority -400; policy drop; }"); err != nil {
		return err
	}
	defer w.far.Run(context.WithoutCancel(ctx), "nft", "delete table inet sink")
	toServices := flows{src: source, n: scaleFlows, tcpFlags: tcpSYN}
	for i := 0; i < f.services && len(toServices.dst) < scaleFlows; i += max(1, f.services/scaleFlows) {
		toServices.dst = append(toServices.dst, netip.AddrPortFrom(clusterIP(i), servicePort))
	}
	toServices.perPort = len(toServices.dst)
	known := toServices
	known.tcpFlags = tcpACK
	noService := flows{src: source, n: scaleFlows, dst: []netip.AddrPort{netip.AddrPortFrom(endpointIP(1), 9)}}
	vpp := s.node.VPP
	// This feature leads to ethernet-input, and the generated packets have no Ethernet header.
	const offload = "set interface feature %s contiv-offload-input arc device-input%s"
	if out, err := cliOf(vpp, offload, host, " disable"); err != nil || strings.TrimSpace(out) != "" {
		return fmt.Errorf("take the node of offloads off %s: %w %s", host, err, out)
	}
	defer cliOf(vpp, offload, host, "")
	for range clockRounds {
		if _, err := vpp.CLI("clear contiv connections"); err != nil {
			return err
		}
		for _, m := range []struct {
			flows flows
			limit int
			into  *float64
		}{{toServices, scaleFlows, &f.setUp}, {known, measured, &f.known}, {noService, measured, &f.plain}} {
			clocks, err := c.inputClocks(ctx, vpp, host, m.flows, m.limit)
			if err != nil {
				return err
			}
			if *m.into == 0 || clocks < *m.into {
				*m.into = clocks
			}
		}
	}
	return nil
}

// clockRounds is how often clocks are measured; the minimum counts, because other processes on the machine can only increase them.
const clockRounds = 7

// hostEnd returns VPP's interface to the host, and the host's address there.
func hostEnd(ctx context.Context, n *testbed.Node) (ifc string, addr netip.Addr, err error) {
	out, err := n.VPP.CLI("show contiv endpoints")
	if err != nil {
		return "", netip.Addr{}, err
	}
	for line := range strings.Lines(out) {
		name, rest, found := strings.Cut(line, ": host ")
		if !found {
			continue
		}
		for _, word := range strings.Fields(rest) {
			if a, err := netip.ParseAddr(word); err == nil && a.Is4() {
				return name, a, nil
			}
		}
	}
	return "", netip.Addr{}, errors.New("VPP has no interface to the host:\n" + out)
}
