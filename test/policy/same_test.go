package policy

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	samePort  = 9
	sameCount = 50
)

// sameAllows are policies with the same effect: they allow both labels of the allowed pods, and UDP of all pods, also of the one that sameDenies
// deny.
var sameAllows = []string{
	`{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: blue}}}]},
		{from: [{podSelector: {matchLabels: {app: green}}}]}, {from: [{podSelector: {}}], ports: [{protocol: UDP, port: 9}]}]}`,
	`{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchExpressions: [{key: app, operator: In, values: [blue, green]}]}}]},
		{from: [{namespaceSelector: {}}], ports: [{protocol: UDP, port: 9}]}]}`,
	`{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: red}}}, {namespaceSelector: {matchLabels: {team: sad}}}]}]}`,
}

var sameDenies = []string{
	`{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [
		{action: Deny, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: black}}}}]},
		{action: Deny, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: grey}}}}]}]}`,
	`{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [
		{action: Deny, from: [{pods: {namespaceSelector: {}, podSelector: {matchExpressions: [{key: app, operator: In, values: [black, grey]}]}}}]}]}`,
	`{tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [
		{action: Deny, from: [{pods: {namespaceSelector: {matchLabels: {team: red}}, podSelector: {matchExpressions: [{key: app, operator: In, values: [black, grey]}]}}},
			{pods: {namespaceSelector: {matchLabels: {team: sad}}, podSelector: {matchExpressions: [{key: app, operator: In, values: [black, grey]}]}}}]}]}`,
}

// relabel gives a pod another label.
func (w *world) relabel(node, name, app string) {
	w.t.Helper()
	p := w.object(node, name)
	p.Labels["app"] = app
	w.must(w.api.Put(p))
}

// same changes the objects without a change of what is allowed.
func (w *world) same(i int) {
	w.t.Helper()
	one, two := w.Nodes[0].Name, w.Nodes[1].Name
	switch n := i / 5; i % 5 {
	case 0:
		w.relabel(one, "cli1", []string{"green", "blue"}[n%2])
		w.relabel(two, "cli2", []string{"green", "blue"}[n%2])
		w.relabel(one, "oth1", []string{"grey", "black"}[n%2])
	case 1:
		w.allow(sameAllows[(n+1)%len(sameAllows)])
	case 2:
		w.policy("denies", sameDenies[(n+1)%len(sameDenies)])
	case 3:
		team := []string{"sad", "red"}[n%2]
		w.must(w.api.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": team}}}))
	case 4:
		w.relabel(one, "web1", []string{"www", "web"}[n%2]) // another policy selects the server
	}
}

// allow puts the same policy for both labels of the server.
func (w *world) allow(spec string) {
	w.t.Helper()
	w.policy("allows-web", spec)
	w.policy("allows-www", strings.Replace(spec, "app: web", "app: www", 1))
}

// packets sends UDP packets, each from a new port, until it is stopped.
func (w *world) packets(from string, to netip.Addr) (sent *atomic.Int64, stop func()) {
	w.t.Helper()
	sent = &atomic.Int64{}
	done := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			conn, err := listenUDP(w.spaces[from], 0)
			if err != nil {
				continue
			}
			if _, err = conn.WriteTo([]byte(from), net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, samePort))); err == nil {
				sent.Add(1)
			}
			_ = conn.Close()
		}
	})
	return sent, func() {
		close(done)
		work.Wait()
	}
}

// count counts the packets that a server receives, by the name of their sender.
func (w *world) count(at string) map[string]*atomic.Int64 {
	w.t.Helper()
	conn, err := listenUDP(w.spaces[at], samePort)
	w.must(err)
	w.must(conn.(*net.UDPConn).SetReadBuffer(4 << 20))
	w.t.Cleanup(func() { _ = conn.Close() })
	got := map[string]*atomic.Int64{}
	for name := range w.pods {
		got[name] = &atomic.Int64{}
	}
	go func() {
		for buf := make([]byte, 100); ; {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if c := got[string(buf[:n])]; c != nil {
				c.Add(1)
			}
		}
	}()
	return got
}

// TestSameEffect changes labels of pods and of their namespace, and policies, such that the same is allowed as before, and kills the agent meanwhile:
// allowed pods lose no connection and no packet, and no packet of the denied pod passes.
func TestSameEffect(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		one, two := w.Nodes[0].Name, w.Nodes[1].Name
		w.relabel(one, "cli1", "blue")
		w.relabel(two, "cli2", "blue")
		w.relabel(one, "oth1", "black")
		w.allow(sameAllows[0])
		w.policy("denies", sameDenies[0])
		w.expect("+ cli1 web1 tcp 8080\n+ cli2 web1 tcp 8080\n- oth1 web1 tcp 8080")
		var streams []*stream
		for f, a := range w.addrs["web1"] {
			streams = append(streams, w.stream("cli1", "web1", a, 9000+f), w.stream("cli2", "web1", a, 9010+f))
		}
		got := w.count("web1")
		sent := map[string][]*atomic.Int64{}
		var stops []func()
		for _, from := range []string{"cli1", "cli2", "oth1"} {
			for _, a := range w.addrs["web1"] {
				n, stop := w.packets(from, a)
				sent[from] = append(sent[from], n)
				stops = append(stops, stop)
			}
		}
		for i := range sameCount {
			w.same(i)
			if i%10 == 9 {
				w.killAgent()
			}
			w.handled()
		}
		for _, stop := range stops {
			stop()
		}
		w.goOn(streams)
		for _, from := range []string{"cli1", "cli2", "oth1"} {
			all := sent[from][0].Load() + sent[from][1].Load()
			w.within(fmt.Sprintf("packets of %s", from), 2*time.Second, func() error {
				n := got[from].Load()
				if from == "oth1" && n > 0 || from != "oth1" && n < all {
					return fmt.Errorf("%d of %d arrived", n, all)
				}
				return nil
			})
			t.Logf("%s: %d of %d packets arrived", from, got[from].Load(), all)
		}
	}, onVPP)
}
