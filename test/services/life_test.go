package services

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/test/testbed/whoami"
)

// TestLife checks connections while endpoints, agents and the API server change or restart.
func TestLife(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		if m == linuxIptables && os.Getenv(modesVariable) == "" {
			t.Skip("linux-iptables: skipped: shares what is tested here with linux-nft; CONTIV_SERVICES_MODES=linux-iptables runs it")
		}
		w := newWorld(t, m)
		for i, part := range []struct {
			name string
			ours bool // not for kube-proxy
			run  func(w *world, number int)
		}{
			{"Spread", false, (*world).spread},
			{"HealthCheckNodePort", false, (*world).healthCheck},
			{"RollingUpdate", false, (*world).rollingUpdate},
			{"BackendRemoved", false, (*world).backendRemoved},
			{"BackendTerminates", false, (*world).backendTerminates},
			{"SpecChanges", false, (*world).specChanges},
			{"PortUsedAgain", false, (*world).portUsedAgain},
			{"AffinityOverRestart", true, (*world).affinityOverRestart},
			{"KillUnderLoad", true, (*world).killUnderLoad},
			{"APIServerAway", true, (*world).apiServerAway},
		} {
			if part.ours && m == kubeProxy {
				continue
			}
			t.Run(part.name, func(t *testing.T) {
				w := w.in(t)
				w.apart(i)
				part.run(w, 100+i)
			})
		}
	})
}

// in returns the world for a part of a test.
func (w *world) in(t *testing.T) *world {
	part := *w
	part.t = t
	return &part
}

// apart gives the clients ports that they have not used in another part. NAT44 identifies an answer by the client's port and the backend's,
// also for some seconds after the end of a connection: a connection from the same port to another service with the same backend gets no
// answer. That is a fault with its own test, TestFaults of plugins/service/renderer/nat44.
func (w *world) apart(part int) {
	w.t.Helper()
	if w.mode != vpp {
		return
	}
	const first, each = 20000, 4500
	ports := fmt.Sprintf("net.ipv4.ip_local_port_range=%d %d", first+each*part, first+each*(part+1)-1)
	for _, client := range []string{"p1", "p2"} {
		w.run(w.spaces[client], "sysctl", "-qw", ports)
	}
}

// at returns the address of a service in a family.
func at(svc *corev1.Service, family int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(svc.Spec.ClusterIPs[family]), uint16(svc.Spec.Ports[0].Port))
}

// spread checks that connections are spread evenly. The limit of chi-square is exceeded once in 10 000 runs (3 degrees of freedom).
func (w *world) spread(number int) {
	const tries, limit = 800, 21.1
	svc := w.service("spread", number, nil)
	w.put(svc, "a", "b", "c", "d")
	w.waitEverywhere(svc, "p1 tcp cluster -> a,b,c,d")
	for f, family := range w.mode.families() {
		if w.mode == fakePlugin {
			w.t.Log("fake: not covered: even spread: the choice of a backend is the fake's own, and not VPP's")
			continue
		}
		counts, order := map[string]int{}, ""
		for range tries {
			server := w.query("p1", svc, f).Server
			counts[server]++
			order += server
		}
		chi, want := 0.0, float64(tries)/4
		for _, server := range []string{"a", "b", "c", "d"} {
			d := float64(counts[server]) - want
			chi += d * d / want
		}
		w.t.Logf("IPv%s: %v, chi-square %.1f", family, counts, chi)
		if chi > limit {
			w.t.Errorf("IPv%s: %d connections are spread as %v: chi-square %.1f is above %.1f; in this order: %s", family, tries, counts, chi, limit, order)
		}
	}
}

// query sends one request.
func (w *world) query(client string, svc *corev1.Service, family int) whoami.Answer {
	w.t.Helper()
	a, err := w.queryOnce(client, "tcp", at(svc, family), answered)
	w.must(err)
	return a
}

// healthCheck checks that load balancers can determine which nodes have endpoints.
func (w *world) healthCheck(number int) {
	if w.mode.isFake() {
		w.t.Log("fake: not covered: that health checks are answered at the hosts' addresses")
	}
	svc := w.service("health", number, func(s *corev1.Service) {
		loadBalancerLocal()(s, number)
		s.Spec.HealthCheckNodePort = 32000
	})
	w.put(svc, "a")
	for i, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		w.within(time.Minute, fmt.Sprintf("node %d answers the load balancer", i+1), func() error {
			status, err := w.members[i].health(32000)
			if err == nil && status != want {
				err = fmt.Errorf("status %d instead of %d", status, want)
			}
			return err
		})
	}
	w.must(w.api.Delete(svc))
}

// load is a number of clients that connect repeatedly, each waiting for its answer.
type load struct {
	stop     context.CancelFunc
	work     sync.WaitGroup
	families int
	done     [2]atomic.Int64 // by family
	mu       sync.Mutex
	failed   [2][]error // guarded by mu
	seen     string     // guarded by mu: state of the dataplane at the first failure
}

// press starts load on a service in all families, from both pods.
func (w *world) press(svc *corev1.Service) *load {
	var to []netip.AddrPort
	for f := range w.mode.families() {
		to = append(to, at(svc, f))
	}
	return w.pressAt(to...)
}

// pressAt starts load on addresses, one for each family in order.
func (w *world) pressAt(to ...netip.AddrPort) *load {
	ctx, cancel := context.WithCancel(w.ctx)
	l := &load{stop: cancel, families: len(to)}
	for _, client := range []string{"p1", "p2"} {
		for f := range to {
			l.work.Go(func() {
				for ctx.Err() == nil {
					_, err := w.queryOnce(client, "tcp", to[f], answered)
					if l.count(f, err) {
						l.look(w)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
	}
	return l
}

// underLoad waits for a time, or on the fake for a number of connections in each family.
func (w *world) underLoad(l *load, d time.Duration, number int64) {
	w.t.Helper()
	if !w.mode.isFake() {
		time.Sleep(d)
		return
	}
	var before [2]int64
	for f := range before {
		before[f] = l.done[f].Load()
	}
	w.within(time.Minute, "load", func() error {
		for f, family := range families[:l.families] {
			if n := l.done[f].Load() - before[f]; n < number {
				return fmt.Errorf("IPv%s: %d connections", family, n)
			}
		}
		return nil
	})
}

// count counts a connection. It reports whether this is the first one that failed.
func (l *load) count(family int, err error) (first bool) {
	n := l.done[family].Add(1)
	if err == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first = len(l.failed[0])+len(l.failed[1]) == 0
	l.failed[family] = append(l.failed[family], fmt.Errorf("%s, connection %d: %w", time.Now().Format("05.000"), n, err))
	return first
}

// look records the current counters of the dataplanes.
func (l *load) look(w *world) {
	seen := w.counters()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = seen
}

// end stops the load; no connection may have failed.
func (w *world) end(l *load) {
	w.t.Helper()
	w.underLoad(l, 0, 100)
	l.stop()
	l.work.Wait()
	for f, family := range families[:l.families] {
		done, failed := l.done[f].Load(), l.failed[f]
		w.t.Logf("IPv%s: %d connections, %d failed", family, done, len(failed))
		if done < 100 {
			w.t.Errorf("IPv%s: only %d connections: that was no load", family, done)
		}
		if len(failed) > 0 {
			w.t.Errorf("IPv%s: %d of %d connections failed: %v\nAt the first failure:\n%s", family, len(failed), done,
				errors.Join(failed[:min(5, len(failed))]...), l.seen)
		}
	}
}

// rollingUpdate replaces pods one by one, as a Deployment does: the new pod becomes ready, the old one terminates (it still serves) and is
// removed. No connection fails.
func (w *world) rollingUpdate(number int) {
	svc := w.service("rolling", number, nil)
	w.put(svc, "a", "c")
	w.waitEverywhere(svc, "p1,p2 tcp cluster -> a,c")
	l := w.press(svc)
	step := func(endpoints ...string) {
		w.putEndpoints(svc, endpoints...)
		w.underLoad(l, 300*time.Millisecond, 4)
	}
	for range setting(w.t, roundsVariable, 3) {
		step("a", "c", "b")
		step("a:terminating", "c", "b")
		step("c", "b")
		step("c", "b", "d")
		step("c:terminating", "b", "d")
		step("b", "d")
		step("a", "b", "d")
		step("a", "b:terminating", "d")
		step("a", "c", "d")
		step("a", "c", "d:terminating")
		step("a", "c")
	}
	w.end(l)
	w.waitEverywhere(svc, "p1,p2 tcp cluster -> a,c")
}

// backendRemoved checks that UDP clients of a removed backend are served by another one, and that connections to other backends are kept.
func (w *world) backendRemoved(number int) {
	svc := w.service("removed", number, nil)
	for f, family := range w.mode.families() {
		w.put(svc, "a", "c")
		w.waitEverywhere(svc, "p1 any cluster -> a,c")
		kept := w.connectTo("tcp", "p1", at(svc, f), "c")
		moving := w.connectTo("udp", "p1", at(svc, f), "a")
		w.putEndpoints(svc, "c")
		w.within(time.Minute, "IPv"+family+": a UDP client is served by the other backend", func() error {
			a, err := moving.Query()
			if err == nil && a.Server != "c" {
				err = fmt.Errorf("%s answers", a.Server)
			}
			return err
		})
		if a, err := kept.Query(); err != nil || a.Server != "c" {
			w.t.Errorf("IPv%s: the connection to the other backend: %s, %v", family, a.Server, err)
		}
		w.must(errors.Join(kept.Close(), moving.Close()))
	}
}

// backendTerminates checks that a UDP client stays with a backend that terminates and still serves, although new clients get other
// backends, and moves when the backend does not serve any more.
func (w *world) backendTerminates(number int) {
	const tries, pause = 25, 100 * time.Millisecond // longer than any dataplane takes to end a connection
	svc := w.service("terminates", number, nil)
	for f, family := range w.mode.families() {
		if w.mode.isVPP() && !w.mode.hasPlugin() {
			w.t.Log("otherwise than kube-proxy: NAT44 ends the sessions of a backend that gets no new connections")
			continue
		}
		w.put(svc, "a", "c")
		w.waitEverywhere(svc, "p1 any cluster -> a,c")
		flow := w.connectTo("udp", "p1", at(svc, f), "a")
		w.putEndpoints(svc, "a:terminating", "c")
		w.waitEverywhere(svc, "p1 any cluster -> c")
		for range tries {
			if a, err := flow.Query(); err != nil || a.Server != "a" {
				w.t.Fatalf("IPv%s: the flow to the backend that terminates: %q, %v", family, a.Server, err)
			}
			<-time.After(pause)
		}
		w.putEndpoints(svc, "a:dead", "c")
		w.within(time.Minute, "IPv"+family+": the UDP client moves to the other backend", func() error {
			a, err := flow.Query()
			if err == nil && a.Server != "c" {
				err = fmt.Errorf("%s answers", a.Server)
			}
			return err
		})
		w.must(flow.Close())
	}
}

// portUsedAgain checks that a client that uses a port again is not sent to its earlier backend if that has been removed since, whether the
// earlier connection was closed before or ended later. An open connection continues until then.
func (w *world) portUsedAgain(number int) {
	svc := w.service("again", number, func(s *corev1.Service) { nodePort(s, number) })
	const closed, open = 19001, 19002 // no other part uses these ports
	for f, family := range w.mode.families() {
		if w.mode.isVPP() && !w.mode.hasPlugin() {
			w.t.Log("otherwise than kube-proxy: NAT44 keeps the session of a closed connection")
			continue
		}
		w.put(svc, "a")
		w.waitEverywhere(svc, "p1,h1 tcp cluster -> a", "out tcp node1 -> a")
		places := map[string]netip.AddrPort{}
		for client, place := range map[string]string{"p1": "cluster", "h1": "cluster", "out": "node1"} {
			to, err := w.destination(svc, place, f)
			w.must(err)
			places[client] = to
		}
		stays := map[string]talk{}
		for client, to := range places {
			if a, err := w.queryFrom(client, closed, to); err != nil || a.Server != "a" {
				w.t.Fatalf("IPv%s: %s is served by %q: %v", family, client, a.Server, err)
			}
			c, err := w.sites[client].dialFrom(w.ctx, open, to, answered)
			w.must(err)
			stays[client] = c
		}
		w.putEndpoints(svc, "c")
		w.waitEverywhere(svc, "p1,h1 tcp cluster -> c", "out tcp node1 -> c")
		time.Sleep(againAfter)
		for client, to := range places {
			w.mustMove(family, client, closed, to)
			if a, err := stays[client].Query(); err != nil || a.Server != "a" {
				w.t.Errorf("IPv%s: the open connection of %s is served by %q: %v", family, client, a.Server, err)
			}
			w.must(stays[client].Close())
		}
		time.Sleep(againAfter)
		for client, to := range places {
			w.mustMove(family, client, open, to)
		}
	}
}

// againAfter is the minimum time for which a backend serves after it was removed from its service: during this time a client's port that is
// used again may lead to it.
const againAfter = 4 * time.Second

// mustMove sends a request from a port; c must answer.
func (w *world) mustMove(family, client string, port uint16, to netip.AddrPort) {
	w.t.Helper()
	if a, err := w.queryFrom(client, port, to); err != nil || a.Server != "c" {
		w.t.Errorf("IPv%s: %s, from port %d as before, is served by %q: %v", family, client, port, a.Server, err)
	}
}

// queryFrom connects from a port, sends one request and closes.
func (w *world) queryFrom(client string, port uint16, to netip.AddrPort) (whoami.Answer, error) {
	c, err := w.sites[client].dialFrom(w.ctx, port, to, answered)
	if err != nil {
		return whoami.Answer{}, err
	}
	defer c.Close()
	return c.Query()
}

// connectTo connects until a given server answers.
func (w *world) connectTo(network, client string, to netip.AddrPort, server string) talk {
	w.t.Helper()
	for range 100 {
		c, err := w.sites[client].dial(w.ctx, network, to, answered)
		w.must(err)
		a, err := c.Query()
		w.must(err)
		if a.Server == server {
			return c
		}
		w.must(c.Close())
	}
	w.t.Fatalf("%s never answers %s at %s", server, client, to)
	return nil
}

// affinityOverRestart checks that a client keeps its backend, also after a restart of the agent.
func (w *world) affinityOverRestart(number int) {
	svc := w.service("affinity", number, func(s *corev1.Service) { affinity(s, number) })
	w.put(svc, "a", "b", "c", "d")
	w.waitEverywhere(svc, "p1 tcp cluster -> one of a,b,c,d")
	var before [2]string
	for f := range w.mode.families() {
		before[f] = w.query("p1", svc, f).Server
	}
	w.must(w.members[0].restart(w.ctx))
	for f, family := range w.mode.families() {
		for range 30 {
			if server := w.query("p1", svc, f).Server; server != before[f] {
				w.t.Fatalf("IPv%s: the client of %s is served by %s after a restart of the agent", family, before[f], server)
			}
		}
	}
}

// killUnderLoad kills and restarts agents; no connection fails and nothing is written. It does the same for clients inside of the cluster
// of a service that has local backends for clients outside.
func (w *world) killUnderLoad(number int) {
	svc := w.service("killed", number, nil)
	w.put(svc, "a", "b", "c")
	w.waitEverywhere(svc, "p1,p2 tcp cluster -> a,b,c")
	local := w.service("killed-local", number+20, func(s *corev1.Service) { loadBalancerLocal()(s, number+20) })
	w.put(local, "d") // the other service does not have this backend: letter H
	to := lbAt(local)
	if w.mode.isVPP() && !w.mode.hasPlugin() {
		to = nil // letter C: p1 has no local backend
	}
	for f := range to {
		for _, client := range []string{"p1", "p2"} {
			w.within(time.Minute, "the load balancer's address from "+client, func() error {
				_, err := w.queryOnce(client, "tcp", to[f], retryWait)
				return err
			})
		}
	}
	w.calm()
	l, inCluster := w.press(svc), w.pressAt(to...)
	for i, n := range w.members {
		w.must(n.restart(w.ctx))
		w.synced(n)
		w.underLoad(l, time.Second, 60)
		writes, err := n.writes(w.ctx)
		w.must(err)
		if writes != 0 {
			w.t.Errorf("node %d: a new agent with nothing to do has written %.0f times", i+1, writes)
		}
	}
	w.end(l)
	w.end(inCluster)
}

// calm waits until no agent has written for a while: then everything that was put is complete, not only served.
func (w *world) calm() {
	w.t.Helper()
	for _, n := range w.members {
		last, same := -1.0, 0
		w.within(time.Minute, "calm", func() error {
			now, err := n.writes(w.ctx)
			if err != nil {
				return err
			}
			if now != last {
				last, same = now, 0
			}
			if same++; same < 10 { // for 10 polls of 20 ms
				return fmt.Errorf("an agent writes: %.0f by now", now)
			}
			return nil
		})
	}
}

// lbAt returns the addresses of a load balancer's service.
func lbAt(svc *corev1.Service) (out []netip.AddrPort) {
	for _, in := range svc.Status.LoadBalancer.Ingress {
		out = append(out, netip.AddrPortFrom(netip.MustParseAddr(in.IP), uint16(svc.Spec.Ports[0].Port)))
	}
	return out
}

func (w *world) writesMetric() string {
	if w.mode.realVPP() {
		return "contiv_vpp_writes_total"
	}
	return "contiv_linux_writes_total"
}

// synced waits until a restarted agent has the current state of the API server.
func (w *world) synced(n member) {
	w.t.Helper()
	w.within(time.Minute, "the agent knows the services", func() error {
		services, err := n.known(w.ctx)
		if want := len(w.api.Objects("services")); err == nil && services < want {
			err = fmt.Errorf("%d services instead of %d", services, want)
		}
		return err
	})
}

// apiServerAway checks that, without the API server, a restarted agent serves the services of its local copy, and follows changes when the
// server is back.
func (w *world) apiServerAway(number int) {
	svc := w.service("away", number, nil)
	w.put(svc, "a")
	w.waitEverywhere(svc, "p1,p2 any cluster -> a")
	time.Sleep(time.Second) // the local copy is written with a short delay
	w.api.Cut()
	w.putEndpoints(svc, "c")
	l := w.press(svc)
	w.must(w.members[0].restart(w.ctx))
	w.synced(w.members[0])
	w.waitEverywhere(svc, "p1,p2 any cluster -> a")
	w.api.Restore()
	w.waitEverywhere(svc, "p1,p2 any cluster -> c")
	w.end(l)
}
