package vppfake

import (
	"errors"
	"fmt"

	"go.fd.io/govpp/binapi/interface_types"
)

// ErrNotUnderstood is wrapped by the error of a walk that reaches something that the fake does not model. The fake never guesses.
var ErrNotUnderstood = errors.New("not understood by the fake")

// maxSteps is the maximum number of steps of a walk, over all fakes.
const maxSteps = 200

// wireEnd is the other end of a wire.
type wireEnd struct {
	fake *Fake
	name string
}

// Wire connects an interface of one fake to an interface of another (or of the same) fake: frames that leave through one are received on the
// other. Interfaces are given by name or tag and need not exist yet; a wire survives crashes.
func Wire(a *Fake, ifA string, b *Fake, ifB string) {
	a.plug(ifA, wireEnd{b, ifB})
	b.plug(ifB, wireEnd{a, ifA})
}

// Unwire removes the wire from both ends.
func Unwire(a *Fake, ifA string, b *Fake, ifB string) {
	a.plug(ifA, wireEnd{})
	b.plug(ifB, wireEnd{})
}

func (f *Fake) plug(name string, end wireEnd) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if end.fake == nil {
		delete(f.wires, name)
		return
	}
	f.wires[name] = end
}

// Send injects a packet on an interface, given by name or tag, and follows it until it leaves through an interface without a wire, is for VPP
// itself, or is dropped. The error is about the walk itself: there is no such interface, or the walk reached something that the fake does not
// model (ErrNotUnderstood). Send may add MAC addresses to learning bridge domains, and changes nothing else.
func (f *Fake) Send(ifName string, p Packet) (Result, error) {
	return f.send(p, func(st *state) (*iface, error) {
		if i := st.named(ifName); i != nil {
			return i, nil
		}
		return nil, fmt.Errorf("vppfake: no interface %q", ifName)
	})
}

// SendIndex is like Send, with a sw_if_index.
func (f *Fake) SendIndex(index uint32, p Packet) (Result, error) {
	return f.send(p, func(st *state) (*iface, error) {
		if i := st.iface(interface_types.InterfaceIndex(index)); i != nil {
			return i, nil
		}
		return nil, fmt.Errorf("vppfake: no interface %d", index)
	})
}

// MAC returns the hardware address of the interface with the name or tag.
func (f *Fake) MAC(ifName string) (mac MAC, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.st == nil {
		return mac, false
	}
	if i := f.st.named(ifName); i != nil && i.hw.ethernet {
		return i.hw.mac, true
	}
	return mac, false
}

// Index returns the sw_if_index of the interface with the name or tag.
func (f *Fake) Index(ifName string) (index uint32, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.st == nil {
		return 0, false
	}
	if i := f.st.named(ifName); i != nil {
		return i.index, true
	}
	return 0, false
}

// flight is a packet on a wire.
type flight struct {
	to     *Fake
	find   func(*state) (*iface, error)
	packet Packet
}

func (f *Fake) send(p Packet, find func(*state) (*iface, error)) (Result, error) {
	if p.ARP == nil && (!p.Src.IsValid() || !p.Dst.IsValid()) {
		return Result{}, errors.New("vppfake: a packet needs an ARP message or IP addresses")
	}
	if p.TTL == 0 {
		p.TTL = 64
	}
	w := &walk{steps: maxSteps, flights: []flight{{f, find, p}}}
	for len(w.flights) > 0 && w.err == nil {
		next := w.flights[0]
		w.flights = w.flights[1:]
		w.land(next)
	}
	return w.result, w.err
}

// land continues a walk on the fake that a packet has reached. One fake is locked at a time.
func (w *walk) land(fl flight) {
	f := fl.to
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.life.turns > 0 && f.st != nil && !f.life.frozen && !f.life.closed {
		f.idle.Wait()
	}
	if f.st == nil || f.life.frozen {
		w.err = errDown
		return
	}
	i, err := fl.find(f.st)
	if err != nil {
		w.err = err
		return
	}
	w.state, w.fake = f.st, f
	if w.taken(i, &fl.packet) {
		w.input(i, fl.packet)
	}
	if w.dead != "" {
		f.crashLocked(w.dead)
	}
}

// walk is the path of one packet and its copies. It works on one fake at a time.
type walk struct {
	*state
	fake    *Fake
	steps   int
	over    bool    // ended early: too many steps
	lookups int     // since the packet was received on an interface
	rx      *iface  // the receiving interface
	answers [2]*fib // by family: the table that our plugin has selected for the packet; nil: that of the interface
	dead    string  // reason why VPP would have crashed on the packet
	flights []flight
	result  Result
	err     error
}

// step records a step; false: the walk is over.
func (w *walk) step(format string, args ...any) bool {
	if w.err != nil || w.over {
		return false
	}
	line := fmt.Sprintf(format, args...)
	w.result.Walk = append(w.result.Walk, line)
	if w.steps--; w.steps < 0 {
		if !w.over {
			w.drop("loop: more than %d steps", maxSteps)
		}
		w.over, w.flights = true, nil
		return false
	}
	return true
}

func (w *walk) drop(format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	w.result.Drops = append(w.result.Drops, reason)
	w.result.Walk = append(w.result.Walk, "drop: "+reason)
}

// unknown ends the walk, because it reached something that the fake does not model.
func (w *walk) unknown(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("vppfake: %s: %w", fmt.Sprintf(format, args...), ErrNotUnderstood)
	}
}

// input handles a packet that is received on an interface.
func (w *walk) input(i *iface, p Packet) {
	if !w.step("in %s: %s", i.label(), p) {
		return
	}
	w.lookups = 0
	if i.hw.wedge.receive {
		w.drop("%s: no reader of its frames", i.label())
		return
	}
	if !i.hw.owner.up {
		w.drop("%s is down", i.hw.owner.label())
		return
	}
	if i.sub == nil && len(p.VLAN) > 0 && i.l2.bd == nil {
		sub := w.subInterface(i, p.VLAN)
		if sub == nil {
			w.drop("no sub-interface of %s for vlan %v", i.label(), p.VLAN)
			return
		}
		i = sub
		w.step("vlan %v is %s", p.VLAN, i.label())
	}
	w.rx = i
	switch {
	case !i.up:
		w.drop("%s is down", i.label())
	case i.l2.xconn:
		w.crossConnect(i, p)
	case i.l2.bd != nil:
		w.bridge(i, p, i.l2.shg)
	default:
		if i.sub != nil {
			p.VLAN = nil
		}
		w.layer3(i, p)
	}
}

// subInterface returns the sub-interface of a port that accepts a frame with these tags.
func (w *walk) subInterface(port *iface, tags []uint16) *iface {
	for _, i := range w.live() {
		if i.hw != port.hw || i.sub == nil || i.sub.pipe {
			continue
		}
		if i.sub.flags&(interface_types.SUB_IF_API_FLAG_DEFAULT|interface_types.SUB_IF_API_FLAG_OUTER_VLAN_ID_ANY|
			interface_types.SUB_IF_API_FLAG_INNER_VLAN_ID_ANY|interface_types.SUB_IF_API_FLAG_DOT1AD) != 0 {
			w.unknown("sub-interface %s with flags %s", i.name, i.sub.flags)
			return nil
		}
		want := []uint16{i.sub.outer, i.sub.inner}[:i.sub.tags()]
		if len(want) == len(tags) && fmt.Sprint(want) == fmt.Sprint(tags) {
			return i
		}
	}
	return nil
}

// output handles a frame that leaves through an interface.
func (w *walk) output(i *iface, p Packet) {
	if !w.step("out %s: %s", i.label(), p) {
		return
	}
	if !i.up || !i.hw.owner.up {
		w.drop("%s is down", i.label())
		return
	}
	if pipe := i.pipeOf(); pipe != nil {
		w.input(pipe.other(i), p)
		return
	}
	if i.sub != nil && i.l2.bd == nil && !i.l2.xconn {
		p.VLAN = []uint16{i.sub.outer, i.sub.inner}[:i.sub.tags()]
	}
	switch detail := i.hw.driver.detail.(type) {
	case *vxlanTunnel:
		w.encapsulate(i, detail, p)
		return
	case *memifPort:
		if !i.hw.linkUp && w.wire(i).fake == nil {
			w.drop("%s is not connected", i.label())
			return
		}
	}
	if i.hw.wedge.transmit {
		i.hw.wedge.refused++
		w.drop("%s: tx frame not ready", i.label())
		return
	}
	switch i.hw.devType {
	case "Loopback", "BVI":
		w.loopBack(i, p)
	case "local":
		w.drop("local0 drops all")
	default:
		w.deliver(i, p)
	}
}

// loopBack handles frames that leave through a loopback: those of a BVI enter its bridge domain; those of any other loopback are received on it
// again.
func (w *walk) loopBack(i *iface, p Packet) {
	if b := i.l2.bd; b != nil && b.bvi == i {
		w.rx = i
		w.bridge(i, p, i.l2.shg)
		return
	}
	w.input(i, p)
}

func (w *walk) wire(i *iface) wireEnd {
	owner := i.hw.owner
	if end, ok := w.fake.wires[owner.name]; ok {
		return end
	}
	return w.fake.wires[owner.tag]
}

// deliver passes a frame to the wire or, without one, to the result.
func (w *walk) deliver(i *iface, p Packet) {
	fragments := p.ARP == nil && i.l2.bd == nil && !i.l2.xconn && p.segment().IPLen() > i.mtuFor(family(p.Dst))
	if !fragments {
		p = w.split(i, p)
	}
	if !fragments && !w.given(i, p) {
		return
	}
	if end := w.wire(i); end.fake != nil {
		if fragments {
			w.unknown("fragments on a wire")
			return
		}
		w.flights = append(w.flights, flight{end.fake, func(st *state) (*iface, error) {
			if peer := st.named(end.name); peer != nil {
				return peer.hw.owner, nil
			}
			return nil, fmt.Errorf("vppfake: wire ends at an interface %q that is not there", end.name)
		}, p})
		return
	}
	w.arrive(Delivery{Fake: w.fake, Interface: i.hw.owner.name, Tag: i.hw.owner.tag, Packet: p, Fragments: fragments})
}

// arrive ends a walk.
func (w *walk) arrive(d Delivery) {
	inner := &d.Packet
	for inner.VXLAN != nil {
		inner = &inner.VXLAN.Inner
	}
	if inner.Error != nil {
		w.result.Errors = append(w.result.Errors, d)
		return
	}
	w.result.Out = append(w.result.Out, d)
}

// mtuFor implements vnet_sw_interface_get_mtu.
func (i *iface) mtuFor(fam int) int {
	switch {
	case i.mtu[1+fam] > 0:
		return int(i.mtu[1+fam])
	case i.mtu[0] > 0:
		return int(i.mtu[0])
	}
	return 9000
}
