package services

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/stack"
	"contiv.dev/vswitch/test/testbed/whoami"
)

// fakeNet carries packets between the stacks of pods, hosts and the outside, through the fakes of VPP. Delivery takes no time and nothing
// is lost: a packet has reached its end when carry returns.
type fakeNet struct {
	nodes      []*fakeNode
	kubeconfig string
	etcdDir    string

	mu    sync.Mutex                 // guards the fields below
	sites map[string]*fakeSite       // by name
	macs  map[netip.Addr]vppfake.MAC // of the network that connects the nodes
	ports map[fakePorts]uint16       // the last port that a client has used
}

// fakePorts are ports that are counted separately.
type fakePorts struct {
	network string
	ipv6    bool
}

// The ports of clients, below those that the hosts' stacks choose.
const firstPort, lastPort = 1024, 32767

// The interface of the nodes' network in VPP, and its tag.
const (
	fakeUplink    = "host-" + testbed.UplinkNIC
	fakeUplinkTag = "cv:" + fakeUplink
	outDevice     = "uplink"
)

// outMAC returns the MAC address of the client outside.
func outMAC() vppfake.MAC { return vppfake.MAC{2, 0, 0, 0, 0xff, 0xfa} }

// mostHops bounds how often a packet, together with all its answers, passes a stack or a VPP.
const mostHops = 60

// letter is a packet with its contents.
type letter struct {
	vppfake.Packet
	answer whoami.Answer
}

// carrying is the delivery of one packet and of all packets that follow from it.
type carrying struct {
	net   *fakeNet
	hops  int
	queue []func() error
	trail []string
}

// carry sends a packet of a site and delivers packets until none is left. It returns the path, one line for each step.
func (n *fakeNet) carry(from *fakeSite, l letter) (trail string, err error) {
	c := &carrying{net: n}
	c.send(from, l)
	for len(c.queue) > 0 && err == nil {
		next := c.queue[0]
		c.queue = c.queue[1:]
		if c.hops++; c.hops > mostHops {
			return c.text(), errors.New("a loop")
		}
		err = next()
	}
	return c.text(), err
}

func (c *carrying) text() string { return strings.Join(c.trail, "\n  ") }

func (c *carrying) report(format string, args ...any) {
	c.trail = append(c.trail, fmt.Sprintf(format, args...))
}

func (c *carrying) later(f func() error) { c.queue = append(c.queue, f) }

// send processes a packet that a site itself sends.
func (c *carrying) send(from *fakeSite, l letter) {
	c.later(func() error {
		c.report("%s sends %s", from.name, l.Packet)
		return c.outcome(from, from.Send(l.Packet), l.answer)
	})
}

// receive processes a packet that arrives on a device of a site.
func (c *carrying) receive(to *fakeSite, device string, l letter) {
	c.later(func() error {
		c.report("%s gets by %s %s", to.name, device, l.Packet)
		return c.outcome(to, to.Receive(device, l.Packet), l.answer)
	})
}

func (c *carrying) outcome(at *fakeSite, o stack.Outcome, answer whoami.Answer) error {
	l := letter{o.Packet, answer}
	switch {
	case o.Drop != "":
		c.report("dropped: %s", o.Drop)
		return nil
	case o.Local:
		for _, reply := range at.handle(l) {
			c.send(at, reply)
		}
		return nil
	case at.node == nil:
		return c.onUplink(o.To, l)
	case o.Device == testbed.MgmtNIC && at.Stack == at.node.kernel.host:
		return c.onMgmt(o.To, l)
	}
	vppIf, ok := at.node.kernel.behind(at.Stack, o.Device)
	if !ok {
		return fmt.Errorf("%s sends by %s, which leads nowhere", at.name, o.Device)
	}
	return c.intoVPP(at.node, "cv:"+vppIf, l)
}

// onUplink delivers a packet of the client outside to a neighbour.
func (c *carrying) onUplink(next netip.Addr, l letter) error {
	mac, ok := c.net.resolve(fakeUplink, next)
	if !ok {
		c.report("dropped: no node has %s", next)
		return nil
	}
	l.EthSrc, l.EthDst = outMAC(), mac
	return c.onWire(l)
}

// onWire delivers a frame on the network that connects the nodes.
func (c *carrying) onWire(l letter) error {
	if l.EthDst == outMAC() {
		c.receive(c.net.site("out"), outDevice, l)
		return nil
	}
	for _, n := range c.net.nodes {
		if mac, ok := n.fake.MAC(fakeUplinkTag); ok && mac == l.EthDst {
			return c.intoVPP(n, fakeUplinkTag, l)
		}
	}
	c.report("dropped: no interface has MAC %s", l.EthDst)
	return nil
}

// onMgmt delivers a packet between hosts, without VPP.
func (c *carrying) onMgmt(next netip.Addr, l letter) error {
	for _, n := range c.net.nodes {
		for _, addr := range n.mgmt {
			if addr == next {
				c.receive(c.net.site(n.host), testbed.MgmtNIC, l)
				return nil
			}
		}
	}
	c.report("dropped: no host has %s", next)
	return nil
}

// intoVPP walks a frame through a node's VPP.
func (c *carrying) intoVPP(n *fakeNode, tag string, l letter) error {
	r, err := n.fake.Send(tag, l.Packet)
	for _, line := range r.Walk {
		c.report("VPP of %s: %s", n.name, line)
	}
	if err != nil {
		return err
	}
	for _, d := range append(r.Out, r.Errors...) {
		at := letter{d.Packet, l.answer}
		switch {
		case d.Local:
			c.report("VPP of %s takes it", n.name)
		case d.Tag == fakeUplinkTag:
			if err := c.onWire(at); err != nil {
				return err
			}
		default:
			place, ok := n.kernel.tap(strings.TrimPrefix(d.Tag, "cv:"))
			if !ok {
				return fmt.Errorf("VPP of %s sends by %s (%q), which leads nowhere", n.name, d.Interface, d.Tag)
			}
			c.receive(c.net.of(place.Stack), place.device, at)
		}
	}
	return nil
}

// resolve returns what ARP and neighbour discovery would find.
func (n *fakeNet) resolve(ifName string, addr netip.Addr) (vppfake.MAC, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	mac, ok := n.macs[addr]
	return mac, ok && ifName == fakeUplink
}

func (n *fakeNet) setMAC(addr netip.Addr, mac vppfake.MAC) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.macs[addr] = mac
}

func (n *fakeNet) site(name string) *fakeSite {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sites[name]
}

func (n *fakeNet) of(s *stack.Stack) *fakeSite {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, site := range n.sites {
		if site.Stack == s {
			return site
		}
	}
	return &fakeSite{Stack: s, name: s.Name} // a pod that the test has not made
}

// nextPort returns a port that no client has used. The fake never removes connections, and a host masquerades the connections of others
// with its own address: with a port that another client had, a connection to another service with the same backend would be lost (letter
// H).
func (n *fakeNet) nextPort(network string, to netip.Addr) (uint16, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := fakePorts{network, to.Is6()}
	switch n.ports[key] {
	case 0:
		n.ports[key] = firstPort - 1
	case lastPort:
		return 0, fmt.Errorf("all ports of %s have been used", network)
	}
	n.ports[key]++
	return n.ports[key], nil
}

func (n *fakeNet) addSite(s *fakeSite) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.net = n
	n.sites[s.name] = s
}
