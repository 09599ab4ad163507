package policy

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
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

// sender sends UDP packets, each from a new port.
type sender struct {
	from  string
	to    netip.AddrPort
	every time.Duration
	mu    sync.Mutex
	sent  []time.Time
	got   []bool // by index in sent
}

func (s *sender) run(ctx context.Context, w *world, id int) {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		conn, err := listenUDP(w.spaces[s.from], 0)
		if err != nil {
			continue
		}
		s.mu.Lock()
		packet := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(id)), uint32(len(s.sent)))
		s.sent, s.got = append(s.sent, time.Now()), append(s.got, false)
		s.mu.Unlock()
		_, _ = conn.WriteTo(packet, net.UDPAddrFromAddrPort(s.to)) // a denied packet may cause an error here
		_ = conn.Close()
	}
}

// result returns the number of packets that arrived, and the times of the others.
func (s *sender) result() (arrived int, lost []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, got := range s.got {
		if got {
			arrived++
		} else {
			lost = append(lost, s.sent[i])
		}
	}
	return arrived, lost
}

// receive marks the packets that a server receives.
func (w *world) receive(at string, senders []*sender) {
	w.t.Helper()
	conn, err := listenUDP(w.spaces[at], samePort)
	w.must(err)
	w.must(conn.(*net.UDPConn).SetReadBuffer(4 << 20))
	var work sync.WaitGroup
	work.Go(func() {
		for buf := make([]byte, 100); ; {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if id := binary.BigEndian.Uint32(buf); n == 8 && int(id) < len(senders) {
				s := senders[id]
				s.mu.Lock()
				s.got[binary.BigEndian.Uint32(buf[4:])] = true
				s.mu.Unlock()
			}
		}
	})
	w.t.Cleanup(func() {
		_ = conn.Close()
		work.Wait()
	})
}

// since describes the position of a time among the changes.
func since(changes []time.Time, t time.Time) string {
	n, _ := slices.BinarySearchFunc(changes, t, time.Time.Compare)
	if n == 0 {
		return "before the first change"
	}
	return fmt.Sprintf("%v after change %d", t.Sub(changes[n-1]), n-1)
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
		var senders []*sender
		for f, a := range w.addrs["web1"] {
			streams = append(streams, w.stream("cli1", "web1", a, 9000+f), w.stream("cli2", "web1", a, 9010+f))
			for _, from := range []string{"cli1", "cli2", "oth1"} {
				every := 10 * time.Millisecond // on a busy machine the queue to the server must not overflow
				if from == "oth1" {
					every = time.Millisecond
				}
				senders = append(senders, &sender{from: from, to: netip.AddrPortFrom(a, samePort), every: every})
			}
		}
		w.receive("web1", senders)
		ctx, stop := context.WithCancel(w.ctx)
		var work sync.WaitGroup
		for id, s := range senders {
			work.Go(func() { s.run(ctx, w, id) })
		}
		var changes []time.Time
		for i := range sameCount {
			changes = append(changes, time.Now())
			w.same(i)
			if i%10 == 9 {
				w.killAgent()
			}
			w.handled()
		}
		stop()
		work.Wait()
		w.goOn(streams)
		for _, s := range senders {
			s.check(w, changes)
		}
	}, onVPP)
}

// check checks that all packets of a sender arrived, or none if it is the denied one.
func (s *sender) check(w *world, changes []time.Time) {
	w.t.Helper()
	denied := s.from == "oth1"
	w.within(fmt.Sprintf("packets of %s to %s", s.from, s.to), 2*time.Second, func() error {
		switch arrived, lost := s.result(); {
		case denied && arrived > 0:
			return fmt.Errorf("%d packets arrived", arrived)
		case !denied && len(lost) > 0:
			return fmt.Errorf("%d of %d packets were lost, the first %s, the last %s", len(lost), arrived+len(lost), since(changes, lost[0]),
				since(changes, lost[len(lost)-1]))
		}
		return nil
	})
	arrived, lost := s.result()
	w.t.Logf("%s to %s: %d of %d packets arrived", s.from, s.to, arrived, arrived+len(lost))
}
