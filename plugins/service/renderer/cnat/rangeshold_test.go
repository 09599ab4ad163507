package cnat_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
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

	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/internal/testbed"
	"contiv.dev/vswitch/internal/testbed/kubeapi"
)

const intruder = "intruder"

// vault is a backend that notes what intruders it hears of.
type vault struct {
	*machine
	mu    sync.Mutex
	heard []string // guarded by mu
}

// vaultIn makes a pod that is one.
func (w *world) vaultIn(node int, name string) *vault {
	w.t.Helper()
	w.must(w.api.Put(kubeapi.Pod(w.Nodes[node].Name, name, nil))) // a pod that the API server does not know starts closed
	p, err := w.Nodes[node].AddPod(w.ctx, name)
	w.must(err)
	w.t.Cleanup(func() { _ = p.Delete(context.WithoutCancel(w.ctx)) })
	v := &vault{machine: &machine{p.Namespace, name, p.IPs[1], w.Nodes[node].Name}}
	listen := netip.AddrPortFrom(v.ip, servePort).String()
	w.must(v.Do(func() error {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			return err
		}
		u, err := net.ListenPacket("udp", listen)
		if err != nil {
			return err
		}
		w.t.Cleanup(func() { _, _ = l.Close(), u.Close() })
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				go func() {
					defer conn.Close()
					line, _ := bufio.NewReader(conn).ReadString('\n')
					fmt.Fprintln(conn, v.note(line))
				}()
			}
		}()
		go func() {
			buf := make([]byte, 100)
			for n, from, err := u.ReadFrom(buf); err == nil; n, from, err = u.ReadFrom(buf) {
				_, _ = u.WriteTo([]byte(v.note(string(buf[:n]))+"\n"), from)
			}
		}()
		return nil
	}))
	return v
}

func (v *vault) note(line string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if strings.HasPrefix(line, intruder) { // else a friend's, or cut off by one who gave up
		v.heard = append(v.heard, fmt.Sprintf("%s at %s: %q", v.name, time.Now().Format("05.000"), line))
	}
	return v.name
}

// take takes the notes.
func (v *vault) take() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	heard := v.heard
	v.heard = nil
	return heard
}

// siege is intruders that try again and again. What gets through is an answer to them, or what a vault hears.
type siege struct {
	stop    context.CancelFunc
	work    sync.WaitGroup
	tries   atomic.Int64
	mu      sync.Mutex
	through []string // guarded by mu
}

func (w *world) besiege(from []*machine, to string) *siege {
	ctx, cancel := context.WithCancel(w.ctx)
	s := &siege{stop: cancel}
	for _, m := range from {
		for _, network := range []string{"tcp", "tcp", "tcp", "udp"} {
			timeout := 150 * time.Millisecond
			if network == "udp" {
				timeout /= 5 // the vault hears what comes through
			}
			s.work.Go(func() {
				for ctx.Err() == nil {
					s.tries.Add(1)
					name, err := m.say(network, to, intruder+" "+m.name, timeout)
					if err == nil {
						s.mu.Lock()
						s.through = append(s.through, fmt.Sprintf("%s by %s at %s: %q", m.name, network, time.Now().Format("05.000"), name))
						s.mu.Unlock()
					}
					time.Sleep(2 * time.Millisecond)
				}
			})
		}
	}
	return s
}

// say sends a line and has the answer. A TCP connection that comes about is an answer.
func (m *machine) say(network, to, what string, timeout time.Duration) (answer string, err error) {
	return answer, m.Do(func() error {
		conn, err := (&net.Dialer{Timeout: timeout}).Dial(network, to)
		if err != nil {
			return err
		}
		defer conn.Close()
		if tcp, ok := conn.(*net.TCPConn); ok && what != "friend" {
			answer = "connected"
			_ = tcp.SetLinger(0)
		}
		if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(conn, what); err != nil {
			return err
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil && answer == "" {
			return err
		}
		answer += line
		return nil
	})
}

// friendServed waits until friends are served, by a certain vault if one is given.
func (w *world) friendServed(when string, m *machine, to string, by *vault) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 40*time.Second)
	defer cancel()
	for _, network := range []string{"tcp", "udp"} {
		if err := testbed.Eventually(ctx, 10*time.Millisecond, func() error {
			name, err := m.say(network, to, "friend", 300*time.Millisecond)
			if err == nil && by != nil && name != by.name+"\n" {
				err = fmt.Errorf("%s answers", name)
			}
			return err
		}); err != nil {
			w.t.Fatalf("%s: %s by %s: %v", when, m.name, network, err)
		}
	}
}

// press is a friend that connects again and again.
type press struct {
	cancel       context.CancelFunc
	ended        chan struct{}
	done, failed atomic.Int64
}

func (w *world) press(m *machine, to string) *press {
	ctx, cancel := context.WithCancel(w.ctx)
	p := &press{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			if _, err := m.say("tcp", to, "friend", time.Second); err != nil {
				p.failed.Add(1)
			}
			p.done.Add(1)
		}
	}()
	p.more(50)
	return p
}

// more waits for some more connections.
func (p *press) more(n int64) {
	for until := p.done.Load() + n; p.done.Load() < until; {
		select {
		case <-p.ended:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// end says how many of how many failed, of those before it and 50 more.
func (p *press) end() string {
	p.more(50)
	p.cancel()
	<-p.ended
	return fmt.Sprintf("%d of %d", p.failed.Load(), p.done.Load())
}

// rangesHold: whatever happens to the service, its ranges and endpoints, to agents, VPP and the host's tables, at no moment
// does anything of those get through who may not use the address.
func (w *world) rangesHold(outside *machine) {
	t := w.t
	a, b := w.vaultIn(0, "va"), w.vaultIn(1, "vb")
	f1, f2, i1, i2 := w.pod(0, "f1", 1), w.pod(1, "f2", 1), w.pod(0, "i1", 1), w.pod(1, "i2", 1)
	hosts := []*machine{{Namespace: w.Nodes[0].Namespace, name: "h1"}, {Namespace: w.Nodes[1].Namespace, name: "h2"}}
	to := at(guarded(0x40), 80)
	put := func(from ...string) *corev1.Service {
		s := kubeapi.Service("vault", []netip.Addr{netip.MustParseAddr(vip(0x40))}, kubeapi.Port(corev1.ProtocolTCP, 80),
			kubeapi.Port(corev1.ProtocolUDP, 80))
		balancer(guarded(0x40), from...)(s)
		w.must(w.api.Put(s))
		return s
	}
	friends := []string{f1.ip.String() + "/128", f2.ip.String() + "/128"}
	svc := put()
	w.endpoints(svc, a.machine)
	served := func(when string, by *vault) {
		t.Helper()
		w.friendServed(when, f1, to, by)
		w.friendServed(when, f2, to, by)
	}
	served("without ranges", a)
	p := w.press(f1, to)
	put(friends...)
	w.shut(b.machine, to)
	t.Logf("ranges where there were none: of connections of those who may %s failed", p.end())
	a.take() // of when it was open
	s := w.besiege(append(hosts, i1, i2, outside), to)
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("CONTIV_RANGES_ROUNDS"), "3"))
	w.must(err)
	for range rounds {
		w.endpoints(svc, b.machine)
		served("other endpoint", b)
		w.endpoints(svc)
		put("192.0.2.0/24", "2001:db8:77::/64")
		w.endpoints(svc, a.machine)
		put(append(friends, "2001:db8:77::/64", "2001:db8:77:0:1::/80")...)
		served("other ranges", a)
		w.must(w.api.Delete(svc))
		svc = put(friends...)
		served("deleted and made again", a)
	}
	w.agentsKilled(put, friends, func() { served("agents killed", a) })
	w.vppKilled(func() { served("VPP killed", a) })
	for _, n := range w.Nodes {
		w.run(n.Namespace, "nft", "flush", "ruleset")
	}
	put(append(friends, "2001:db8:78::/64")...) // the agent looks at its tables
	served("the hosts' tables flushed", a)
	s.end(t, a, b)
	w.left(svc)
	put(friends...)
	served("made again", a)
	p = w.press(f1, to)
	put()
	w.friendServed("without ranges again", b.machine, to, a)
	t.Logf("no ranges where there were some: of connections of those who may %s failed", p.end())
}

// end ends the siege; nothing may have got through.
func (s *siege) end(t testing.TB, vaults ...*vault) {
	t.Helper()
	s.stop()
	s.work.Wait()
	t.Logf("%d tries, %d got through", s.tries.Load(), len(s.through))
	if s.tries.Load() < 500 {
		t.Error("that was no siege")
	}
	for _, v := range vaults {
		s.through = append(s.through, v.take()...)
	}
	if len(s.through) > 0 {
		t.Errorf("%d: %v", len(s.through), s.through[:min(5, len(s.through))])
	}
}

// shut waits until somebody who may not use an address cannot.
func (w *world) shut(m *machine, to string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	for _, network := range []string{"tcp", "udp"} {
		w.must(testbed.Eventually(ctx, 10*time.Millisecond, func() error {
			if _, err := m.say(network, to, intruder, 300*time.Millisecond); err == nil {
				return errors.New("it is served to everybody")
			}
			return nil
		}))
	}
}

// agentsKilled kills agents while they have something to do.
func (w *world) agentsKilled(put func(...string) *corev1.Service, friends []string, served func()) {
	w.t.Helper()
	for i := range 4 {
		put(append(friends, fmt.Sprintf("2001:db8:%d::/64", i+1))...)
		time.Sleep(time.Duration(i) * 3 * time.Millisecond) // a moment somewhere in between
		for _, n := range w.Nodes {
			w.must(n.Agent.Kill())
		}
		if i == 3 {
			put(friends...)
		}
		for _, n := range w.Nodes {
			w.start(n)
		}
		served()
	}
	tables := func() (out string) {
		for _, n := range w.Nodes {
			table, err := n.Run(w.ctx, "nft", "-a", "list", "table", "ip6", "contiv-places")
			w.must(err)
			out += table
		}
		return out
	}
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	w.must(testbed.Eventually(ctx, 20*time.Millisecond, func() error { // what was put while there was no agent
		if has := tables(); strings.Contains(has, "2001:db8:3::") || strings.Contains(has, "2001:db8:4::") {
			return errors.New("the hosts' tables have former ranges")
		}
		return nil
	}))
	before := tables()
	for _, n := range w.Nodes {
		w.must(n.Agent.Kill())
		w.start(n)
	}
	served()
	if after := tables(); after != before {
		w.t.Errorf("agents with nothing to do have written the hosts' tables:\n%s\nbefore:\n%s", after, before)
	}
	for _, n := range w.Nodes {
		if writes, err := n.Metric(w.ctx, "contiv_vpp_writes_total"); err != nil || writes != 0 {
			w.t.Errorf("%s: an agent with nothing to do has written %v times, %v", n.Name, writes, err)
		}
	}
}

// vppKilled kills VPP, with and without an agent that sees it.
func (w *world) vppKilled(served func()) {
	w.t.Helper()
	for _, alone := range []bool{false, true} {
		for _, n := range w.Nodes {
			if alone {
				w.must(n.Agent.Kill())
			}
			n.VPP.Kill()
			w.must(n.VPP.Restart(w.ctx))
			if alone {
				w.start(n)
			}
		}
		served()
	}
	for _, n := range w.Nodes { // answers to clients that the host has no route to
		out, err := n.Run(w.ctx, "ip", "-6", "route", "get", farIP, "mark", "0x10000000")
		if err != nil || !strings.Contains(out, "dev vpp1") {
			w.t.Errorf("%s: the way of answers after a restart of VPP: %s, %v", n.Name, out, err)
		}
	}
}

// left deletes the service and looks what is left of it.
func (w *world) left(svc *corev1.Service) {
	w.t.Helper()
	w.must(w.api.Delete(svc))
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	for _, n := range w.Nodes {
		w.must(testbed.Eventually(ctx, 50*time.Millisecond, func() error {
			out, err := n.Run(w.ctx, "sh", "-c", "nft list tables; ip -6 rule; ip -6 route show table all")
			if err != nil {
				return err
			}
			fib, err := n.VPP.CLI("show ip6 fib " + guarded(0x40) + "/128")
			if err != nil {
				return err
			}
			acls, err := n.VPP.CLI("show acl-plugin acl")
			for _, rest := range []string{guarded(0x40)} {
				for _, where := range []string{out, fib, acls} {
					if err == nil && strings.Contains(where, rest) {
						err = fmt.Errorf("%s: %s is in %s", n.Name, rest, where)
					}
				}
			}
			return err
		}))
	}
}
