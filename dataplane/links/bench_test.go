package links

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/nb/linux/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
)

// lap measures the steps of a benchmark; each step is reported as a metric in µs per round.
type lap struct {
	b     *testing.B
	total map[string]time.Duration
	order []string
}

func newLap(b *testing.B) *lap { return &lap{b: b, total: map[string]time.Duration{}} }

func (l *lap) do(name string, f func() error) {
	start := time.Now()
	err := f()
	took := time.Since(start)
	if err != nil {
		l.b.Fatalf("%s: %v", name, err)
	}
	if _, ok := l.total[name]; !ok {
		l.order = append(l.order, name)
	}
	l.total[name] += took
}

func (l *lap) report() {
	for _, name := range l.order {
		l.b.ReportMetric(float64(l.total[name].Nanoseconds())/1000/float64(l.b.N), name+"-µs")
	}
	l.b.ReportMetric(0, "ns/op")
}

// wave starts operations and flushes them, as the scheduler does.
func (w *world) wave(start func(op func() *scheduler.Op)) error {
	var failed error
	start(func() *scheduler.Op {
		return scheduler.NewOp(func(err error) {
			if err != nil {
				failed = err
			}
		})
	})
	w.b.Flush(context.Background())
	return failed
}

// BenchmarkPod measures the waves of a pod's life: VETH pair, loopback, one IPv4 address, gateway neighbour, two routes.
func BenchmarkPod(b *testing.B) {
	w := newWorld(b)
	ns := w.netns("pod")
	link, up, addr, rt, ngh := w.b.linkDescriptor(), w.b.upDescriptor(), w.b.addrDescriptor(), w.b.routeDescriptor(), w.b.neighDescriptor()
	lo := w.loopback(ns)
	lo.IpAddresses = nil
	pod, host := w.pair(ns, "10.1.1.2/32")
	names := []string{lo.Name, pod.Name, host.Name}
	var addrs []*address
	w.b.deriveLink("", pod, func(_, _ string, item any) {
		if a, ok := item.(*address); ok {
			addrs = append(addrs, a)
		}
	})
	routes := []*linux_l3.Route{route(pod, "10.1.1.1/32", "", 0), route(pod, "0.0.0.0/0", "10.1.1.1", 0)}
	neigh := neighbour(pod, "10.1.1.1", "02:00:00:00:00:01")
	l := newLap(b)
	for b.Loop() {
		l.do("links", func() error {
			return w.wave(func(op func() *scheduler.Op) {
				for _, v := range []*linux_interfaces.Interface{lo, pod, host} {
					link.Create(op(), "", v)
				}
			})
		})
		l.do("up", func() error {
			return w.wave(func(op func() *scheduler.Op) {
				for _, n := range names {
					up.Create(op(), "", &linkUp{n})
				}
			})
		})
		l.do("addr", func() error { return w.wave(func(op func() *scheduler.Op) { addr.Create(op(), "", addrs[0]) }) })
		l.do("routes", func() error {
			return w.wave(func(op func() *scheduler.Op) {
				for _, r := range routes {
					rt.Create(op(), nb.LinuxRouteKey(r.DstNetwork, pod.Name), r)
				}
				ngh.Create(op(), "", neigh)
			})
		})
		l.do("unroute", func() error {
			return w.wave(func(op func() *scheduler.Op) {
				for _, r := range routes {
					rt.Delete(op(), nb.LinuxRouteKey(r.DstNetwork, pod.Name), r)
				}
				ngh.Delete(op(), "", neigh)
			})
		})
		l.do("unlink", func() error {
			return w.wave(func(op func() *scheduler.Op) {
				for _, v := range []*linux_interfaces.Interface{lo, pod, host} {
					link.Delete(op(), "", v)
				}
			})
		})
	}
	l.report()
}

// BenchmarkCommit measures a pod's life through the scheduler: the same pod with a VETH and with a TAP.
func BenchmarkCommit(b *testing.B) {
	w := newWorld(b)
	ns := w.netns("pod")
	pod, host := w.pair(ns, "10.1.1.2/32")
	veth := []proto.Message{
		w.loopback(ns), pod, host, neighbour(pod, "10.1.1.1", "02:00:00:00:00:01"),
		route(pod, "10.1.1.1/32", "", 0), route(pod, "0.0.0.0/0", "10.1.1.1", 0),
	}
	vpp, tap := w.tap(ns)
	taps := []proto.Message{
		w.loopback(ns), vpp, tap, neighbour(tap, "10.1.1.1", "02:00:00:00:00:01"),
		route(tap, "10.1.1.1/32", "", 0), route(tap, "0.0.0.0/0", "10.1.1.1", 0),
	}
	l := newLap(b)
	for b.Loop() {
		l.do("veth-add", func() error { w.put(veth...); return nil })
		l.do("veth-del", func() error { w.remove(veth...); return nil })
		l.do("tap-add", func() error { w.put(taps...); return nil })
		l.do("tap-del", func() error { w.remove(taps...); return nil })
	}
	l.report()
}

// BenchmarkSteps measures single requests to the kernel.
func BenchmarkSteps(b *testing.B) {
	w := newWorld(b)
	path := w.netns("pod")
	pod, host := w.pair(path, "10.1.1.2/32")
	l := newLap(b)
	for b.Loop() {
		var h, agent *nsHandle
		l.do("enter", func() (err error) { h, err = w.b.enter(path); return err })
		agent, _ = w.b.enter("")
		p, o := &vethEnd{name: pod.Name, peer: host.Name, v: pod, h: h}, &vethEnd{name: host.Name, peer: pod.Name, v: host, h: agent}
		l.do("pair-in-ns", func() error { return w.b.makePair(agent, p, o) })
		l.do("tag", func() error {
			tag := tagOf(pod.Name)
			return h.sock.exec(setLink(linkSpec{name: "eth0", nsFD: -1, alias: &tag}))
		})
		var li linkInfo
		l.do("find", func() (err error) { li, err = h.sock.link("eth0"); return err })
		l.do("offloads", func() error { return updateOffloads(h, "eth0", pod, offloads{true, true}) })
		l.do("sysctls", func() error { return w.b.prepareIPv6(h, "eth0") })
		l.do("del-pair", func() error { return h.sock.exec(delLink(li.index)) })

		// The same pair, created in the agent's namespace and then moved.
		spare := &vethEnd{name: pod.Name, h: agent}
		l.do("pair-here", func() error { return w.b.makePair(agent, o, spare) })
		li, err := agent.sock.link(spare.device())
		if err != nil {
			b.Fatal(err)
		}
		l.do("move", func() error { return w.b.place(pod, agent, li, "eth0", h, nil) })
		li, _ = h.sock.link("eth0")
		l.do("move-back", func() error { return w.b.moveBack(h, li.index, "", spareName(pod.Name)) })
		w.b.removeDevice(pod.Name)
		li, _ = agent.sock.link(spareName(pod.Name))
		l.do("del-pair2", func() error { return agent.sock.exec(delLink(li.index)) })
		l.do("leave", func() error { w.b.leaveAll(); return nil })
	}
	l.report()
}

// BenchmarkWorkers compares creating pairs in different namespaces one after another and on two goroutines.
func BenchmarkWorkers(b *testing.B) {
	w := newWorld(b)
	const pods = 8
	type job struct {
		b         *Backend
		pod, host *linux_interfaces.Interface
	}
	var jobs []job
	for i := range pods {
		path := w.netns(fmt.Sprint(i))
		pod := w.veth(fmt.Sprintf("p%d-", i), fmt.Sprintf("h%d-", i), path, "eth0", "10.1.1.2/32")
		host := w.veth(fmt.Sprintf("h%d-", i), fmt.Sprintf("p%d-", i), "", w.dev(fmt.Sprintf("h%d", i)))
		be := NewBackend(Config{})
		b.Cleanup(be.Close)
		jobs = append(jobs, job{be, pod, host})
	}
	wave := func(j job, c func(k scheduler.Descriptor[*iface]) func(*scheduler.Op, string, *iface)) {
		do := c(j.b.linkDescriptor())
		done := scheduler.NewOp(func(err error) {
			if err != nil {
				b.Error(err)
			}
		})
		do(done, "", j.pod)
		do(done, "", j.host)
		j.b.Flush(context.Background())
	}
	create := func(k scheduler.Descriptor[*iface]) func(*scheduler.Op, string, *iface) { return k.Create }
	remove := func(k scheduler.Descriptor[*iface]) func(*scheduler.Op, string, *iface) { return k.Delete }
	l := newLap(b)
	for b.Loop() {
		for _, workers := range []int{1, 2, 4} {
			l.do(fmt.Sprint("create", workers), func() error { return spread(workers, pods, func(i int) { wave(jobs[i], create) }) })
			l.do(fmt.Sprint("remove", workers), func() error { return spread(workers, pods, func(i int) { wave(jobs[i], remove) }) })
		}
	}
	l.report()
}

// spread runs do for each of n indices on the given number of goroutines.
func spread(workers, n int, do func(i int)) error {
	var wg sync.WaitGroup
	for first := range workers {
		wg.Go(func() {
			for i := first; i < n; i += workers {
				do(i)
			}
		})
	}
	wg.Wait()
	return nil
}

// BenchmarkResync measures the cost of a restart without changes, with 50 single-stack pods.
func BenchmarkResync(b *testing.B) {
	w := newWorld(b)
	var values []proto.Message
	for i := range 50 {
		path := w.netns(fmt.Sprint(i))
		pod := w.veth(fmt.Sprintf("p%d-", i), fmt.Sprintf("h%d-", i), path, "eth0", fmt.Sprintf("10.1.1.%d/32", i+2))
		host := w.veth(fmt.Sprintf("h%d-", i), fmt.Sprintf("p%d-", i), "", w.dev(fmt.Sprintf("h%d", i)))
		values = append(values, pod, host, route(pod, "10.1.1.1/32", "", 0), neighbour(pod, "10.1.1.1", "02:00:00:00:00:01"))
	}
	w.put(values...)
	l := newLap(b)
	link := w.b.linkDescriptor()
	for b.Loop() {
		for range 20 {
			l.do("20-resyncs", func() error { _, err := w.commit(3, nil); return err })
		}
		links := func(do func(op *scheduler.Op, key string, v *iface)) error {
			return w.wave(func(op func() *scheduler.Op) {
				for _, v := range values {
					if v, ok := v.(*linux_interfaces.Interface); ok {
						do(op(), "", v)
					}
				}
			})
		}
		l.do("remove-all", func() error { return links(link.Delete) })
		l.do("create-all", func() error { return links(link.Create) })
		if _, err := w.commit(3, nil); err != nil {
			b.Fatal(err)
		}
	}
	l.report()
}
