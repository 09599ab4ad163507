package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/netns"
)

// probes sends to pods from the client, and records the send time of each probe that arrived.
type probes struct {
	mu      sync.Mutex
	arrived []map[uint32]struct{} // by pod
	sent    [][]time.Time
}

func (n *policyNode) watch(pods []*testbed.Pod) (p *probes, stop func(), err error) {
	p = &probes{arrived: make([]map[uint32]struct{}, len(pods)), sent: make([][]time.Time, len(pods))}
	var conns []net.PacketConn
	var work sync.WaitGroup
	done := make(chan struct{})
	stop = func() {
		close(done)
		for _, c := range conns {
			_ = c.Close()
		}
		work.Wait()
	}
	open := func(ns *netns.Namespace, port int) (c net.PacketConn, err error) {
		err = ns.Do(func() (err error) {
			c, err = net.ListenPacket("udp4", fmt.Sprintf(":%d", port))
			return err
		})
		if err == nil {
			conns = append(conns, c)
		}
		return c, err
	}
	for i, pod := range pods {
		p.arrived[i] = map[uint32]struct{}{}
		in, err1 := open(pod.Namespace, policyProbePort)
		out, err2 := open(n.client.Namespace, 0)
		if err := errors.Join(err1, err2); err != nil {
			stop()
			return nil, nil, err
		}
		work.Go(func() { p.receive(in, i) })
		work.Go(func() { p.send(out, net.UDPAddrFromAddrPort(netip.AddrPortFrom(pod.IPs[0], policyProbePort)), i, done) })
	}
	return p, stop, nil
}

func (p *probes) receive(c net.PacketConn, i int) {
	for buf := make([]byte, 64); ; {
		size, _, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		if size == 4 {
			p.mu.Lock()
			p.arrived[i][binary.BigEndian.Uint32(buf)] = struct{}{}
			p.mu.Unlock()
		}
	}
}

func (p *probes) send(c net.PacketConn, to net.Addr, i int, done chan struct{}) {
	tick := time.NewTicker(policyProbe)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		id := uint32(len(p.sent[i]))
		p.sent[i] = append(p.sent[i], time.Now())
		p.mu.Unlock()
		_, _ = c.WriteTo(binary.BigEndian.AppendUint32(nil, id), to) // a denied probe may cause an error here
	}
}

// enforced returns how long after an event probes to any pod still had the old outcome, according to the last such probe of those sent
// before end.
func (p *probes) enforced(event, end time.Time, open bool) (longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, sent := range p.sent {
		first, _ := slices.BinarySearchFunc(sent, event, time.Time.Compare)
		for id := first; id < len(sent) && sent[id].Before(end); id++ {
			if _, arrived := p.arrived[i][uint32(id)]; arrived != open {
				longest = max(longest, sent[id].Sub(event))
			}
		}
	}
	return longest
}
