package vppfake

import (
	"net/netip"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
)

// maxLookups is VPP's limit of FIB lookups for one packet, maxRecursion is our limit of recursive next hops.
const (
	maxLookups   = 4
	maxRecursion = 16
)

// layer3 implements ethernet-input: it accepts a frame with the interface's MAC.
func (w *walk) layer3(i *iface, p Packet) {
	if i.hw.ethernet && i.pipeOf() == nil && !isGroup(p.EthDst) && p.EthDst != i.hw.mac {
		w.drop("%s: MAC %s is not mine", i.label(), p.EthDst)
		return
	}
	w.network(i, p)
}

// network handles the packet above Ethernet.
func (w *walk) network(i *iface, p Packet) {
	if p.ARP != nil {
		if w.contivARP(i, &p) {
			w.arp(i, p)
		}
		return
	}
	fam := family(p.Dst)
	if i.ip[fam].toggled {
		w.unknown("sw_interface_ip4_enable_disable on %s", i.name)
		return
	}
	if !w.ipEnabled(i, fam) {
		w.drop("ip%d is not enabled on %s", []int{4, 6}[fam], i.label())
		return
	}
	if fam == ip4 && p.Extensions > 0 {
		w.drop("ip4-options: VPP punts packets with options")
		return
	}
	if p.Dst.IsMulticast() && w.multicast(i, &p) {
		return
	}
	if p.Dst.IsMulticast() {
		w.unknown("multicast to %s", p.Dst)
		return
	}
	for key := range w.features {
		if key.ifx == i.index && !isNATFeature(key) {
			w.unknown("feature %s of %s on %s", key.feature, key.arc, i.name)
			return
		}
	}
	w.rx = i
	table := i.ip[fam].table
	w.answers = [2]*fib{}
	if !w.contivInput(i, &p) {
		return
	}
	if !w.aclLets(w.acl.in[i.index], i, &p) {
		return
	}
	if fam == ip4 {
		var goOn bool
		if table, goOn = w.natInput(i, &p); !goOn {
			return
		}
	}
	if w.answers[fam] != nil {
		table = w.answers[fam]
	}
	w.lookup(i, p, table)
}

// ipEnabled reports whether the interface accepts IP packets: VPP accepts them only with an address, own or borrowed, or if IPv6 has been
// enabled.
func (w *walk) ipEnabled(i *iface, fam int) bool {
	return len(i.ip[fam].addrs) > 0 || i.unnumbered != none || fam == ip6 && i.link6.locks > 0
}

// lookup finds the entry for the destination and follows it. i is the receiving interface, nil for VPP's own packets.
func (w *walk) lookup(i *iface, p Packet, t *fib) {
	if w.lookups++; w.lookups > maxLookups {
		w.drop("more than %d lookups", maxLookups)
		return
	}
	e := t.lookup(p.Dst, (*fibEntry).installed)
	if e == nil {
		w.drop("table %d has no entry for %s", t.id, p.Dst)
		return
	}
	src, _ := e.best()
	if !w.step("table %d: %s is in %s (%s)", t.id, p.Dst, e.prefix, w.ip.sources[src].Name) {
		return
	}
	w.follow(i, p, e)
}

// follow follows one of the usable paths of an entry.
func (w *walk) follow(i *iface, p Packet, e *fibEntry) {
	_, paths := e.best()
	usable, total := w.usable(paths)
	if len(usable) == 0 {
		w.drop("%s has no usable path", e.prefix)
		return
	}
	pick := p.flow() % uint64(total)
	for n := range usable {
		weight := uint64(usable[n].weight)
		if pick < weight {
			if len(usable) > 1 {
				w.step("path %d of %d", n+1, len(usable))
			}
			w.take(i, p, e, usable[n])
			return
		}
		pick -= weight
	}
}

// usable returns the usable paths of the best preference, with the sum of their weights.
func (w *walk) usable(paths []path) (out []path, total int) {
	for _, p := range paths {
		if !p.linkUp() {
			continue
		}
		if p.class() == recursive && !p.resolves(maxRecursion) {
			continue
		}
		if len(out) > 0 && p.pref > out[0].pref {
			break
		}
		out = append(out, p)
		total += int(p.weight)
	}
	return out, total
}

// linkUp reports whether the path's interface exists and is up, if the path has one.
func (p *path) linkUp() bool {
	switch p.class() {
	case attachedNextHop, attachedOnly:
		return p.ifc != nil && !p.ifc.gone && p.ifc.up && p.ifc.hw.owner.up
	}
	return true
}

// resolves reports whether the next hop of a recursive path leads to a usable path that is not recursive.
func (p *path) resolves(depth int) bool {
	if depth == 0 {
		return false
	}
	e := p.table.lookup(p.nh, (*fibEntry).installed)
	if e == nil {
		return false
	}
	_, paths := e.best()
	for n := range paths {
		via := &paths[n]
		if via.linkUp() && (via.class() != special || via.rejects()) &&
			(via.class() != recursive || via.resolves(depth-1)) {
			return true
		}
	}
	return false
}

// rejects reports whether the path sends an ICMP error. Unlike a drop path, such a path can resolve a next hop.
func (p *path) rejects() bool {
	return p.kind == fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH || p.kind == fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT
}

// take follows one path.
func (w *walk) take(i *iface, p Packet, e *fibEntry, via path) {
	if len(via.labels) > 0 || via.flags != 0 {
		w.unknown("path %s with %d labels and flags %d", via, len(via.labels), via.flags)
		return
	}
	if !w.step("path: %s", via) {
		return
	}
	switch via.class() {
	case special:
		w.special(i, p, via)
	case receive:
		w.local(p, e.table)
	case attachedNextHop:
		w.adjacent(p, via.ifc, via.nh)
	case attachedOnly:
		w.adjacent(p, via.ifc, p.Dst)
	case recursive:
		next := via.table.lookup(via.nh, (*fibEntry).installed)
		w.step("table %d: next hop %s is in %s", via.table.id, via.nh, next.prefix)
		w.follow(i, p, next.towards(via.nh))
	case deag:
		if via.kind != fib_types.FIB_API_PATH_TYPE_NORMAL || fibProto(family(p.Dst)) != via.proto {
			w.unknown("path %s of type %s", via, via.kind)
			return
		}
		w.lookup(i, p, via.table)
	default:
		w.unknown("path %s", via)
	}
}

// towards returns the entry for a next hop: an attached entry is replaced by one with the next hop as neighbour.
func (e *fibEntry) towards(nh netip.Addr) *fibEntry {
	src, paths := e.best()
	if len(paths) != 1 || paths[0].class() != attachedOnly {
		return e
	}
	via := paths[0]
	via.nh = nh
	return &fibEntry{table: e.table, prefix: e.prefix, shown: e.shown, sources: []entrySource{{source: src, paths: []path{via}}}}
}

func (w *walk) special(i *iface, p Packet, via path) {
	switch via.kind {
	case fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH, fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT:
		w.reject(p, via.kind)
	case kindLinkLocal:
		if i != nil && i.link6.locks > 0 && p.Dst == i.link6.local {
			w.local(p, i.ip[ip6].table)
			return
		}
		w.unknown("link-local destination %s", p.Dst)
	default:
		w.drop("drop route")
	}
}

// local handles a packet for VPP itself: for a tunnel, or for a listener.
func (w *walk) local(p Packet, t *fib) {
	if w.cfg.Plugin && p.Frag != nil && p.Dst.Is6() {
		w.contivDrop(nil, "IPv6 fragment to an address of VPP")
		return
	}
	if w.decapsulate(p, t) {
		return
	}
	w.step("local: %s", p)
	w.arrive(Delivery{Fake: w.fake, Local: true, Packet: p})
}

// adjacent sends a packet to a neighbour on the link of an interface.
func (w *walk) adjacent(p Packet, out *iface, nh netip.Addr) {
	if p.TTL <= 1 && !p.own {
		w.drop("ttl expired")
		return
	}
	if !p.own {
		p.TTL--
	}
	p.own = false
	fam := family(p.Dst)
	if out.hw.ethernet && out.pipeOf() == nil {
		mac, ok := w.neighbor(out, nh)
		if !ok {
			w.drop("no adjacency: %s on %s is not resolved", nh, out.label())
			return
		}
		p.EthSrc, p.EthDst = out.hw.mac, mac
	}
	if n := p.segment().IPLen(); n > out.mtuFor(fam) && (fam == ip6 || p.DF) {
		w.drop("packet of %d bytes is too big for %s with mtu %d", n, out.label(), out.mtuFor(fam))
		return
	}
	p.VLAN = nil
	if w.natOutput(out, &p) && w.aclLets(w.acl.out[out.index], out, &p) {
		w.output(out, p)
	}
}

// neighbor returns the MAC of a next hop: that of a known neighbour, or the result of ARP or ND.
func (w *walk) neighbor(out *iface, nh netip.Addr) (MAC, bool) {
	if n := w.ip.neighbors[family(nh)][neighborKey{out.index, nh}]; n != nil {
		return n.mac, true
	}
	if w.cfg.Resolve == nil {
		return MAC{}, false
	}
	return w.cfg.Resolve(out.name, nh)
}

// arp answers a request, and drops a reply, since the fake does not resolve.
func (w *walk) arp(i *iface, p Packet) {
	if !w.ipEnabled(i, ip4) {
		w.drop("ARP is not enabled on %s", i.label())
		return
	}
	if p.ARP.Reply {
		w.drop("ARP replies are not learned")
		return
	}
	reason := w.answerable(i, p)
	if reason == "" || reason[0] == '?' && w.proxied(i, p.ARP.TargetIP) {
		a := *p.ARP
		reply := Packet{EthSrc: i.hw.mac, EthDst: p.EthSrc, ARP: &ARP{Reply: true, SenderMAC: i.hw.mac, SenderIP: a.TargetIP,
			TargetMAC: a.SenderMAC, TargetIP: a.SenderIP}}
		w.step("answer ARP for %s", a.TargetIP)
		w.output(i, reply)
		return
	}
	w.drop("ARP for %s: %s", p.ARP.TargetIP, reason)
}

// answerable implements arp-reply: it returns "" if VPP answers, otherwise the reason why not. A reason that starts with a question mark leaves
// the request to proxy ARP.
func (w *walk) answerable(i *iface, p Packet) string {
	t := i.ip[ip4].table
	target := t.lookup(p.ARP.TargetIP, nil)
	sender, isLocal := senderEntry(t, p.ARP.SenderIP)
	conn := target.resolving()
	switch {
	case isLocal:
		return "? the sender's address is ours"
	case sender == nil && !w.borrows(i, conn):
		return "the sender is not on a link"
	case target.source(srcAdjacency) != nil:
		return "? a neighbour's address"
	case target.anyFlags()&connected == 0:
		return "? not connected"
	case p.EthSrc != p.ARP.SenderMAC:
		return "MAC addresses differ"
	case target.anyFlags()&local == 0:
		return "? not ours"
	case (conn != i.index || sender == nil || sender.resolving() != i.index) && !w.borrows(i, conn):
		return "the address is another interface's"
	case p.ARP.SenderIP == p.ARP.TargetIP:
		return "gratuitous"
	}
	return ""
}

// senderEntry returns the most specific entry that puts the sender on a link.
func senderEntry(t *fib, sender netip.Addr) (e *fibEntry, isLocal bool) {
	for bits := sender.BitLen(); bits >= 0; {
		e := t.longest(sender, bits, nil)
		if e == nil {
			return nil, false
		}
		flags := e.anyFlags()
		if flags&local != 0 {
			return nil, true
		}
		if flags&(attached|connected) != 0 {
			return e, false
		}
		bits = e.prefix.Bits() - 1
	}
	return nil, false
}

// anyFlags returns the flags of all sources.
func (e *fibEntry) anyFlags() entryFlags {
	var flags entryFlags
	for _, s := range e.sources {
		flags |= s.flags
	}
	return flags
}

// resolving returns the index of the interface to which the entry leads.
func (e *fibEntry) resolving() uint32 {
	if _, paths := e.best(); len(paths) > 0 {
		return paths[0].ifx
	}
	return none
}

// borrows reports whether the interface uses the addresses of the interface lender.
func (w *walk) borrows(i *iface, lender uint32) bool {
	return i.unnumbered != none && i.unnumbered == lender && w.iface(interface_types.InterfaceIndex(lender)) != nil
}

func (w *walk) proxied(i *iface, target netip.Addr) bool {
	if !w.ip.proxyOn[i.index] {
		return false
	}
	for _, r := range w.ip.proxies {
		if r.table == i.ip[ip4].table && r.low.Compare(target) <= 0 && target.Compare(r.top) <= 0 {
			return true
		}
	}
	return false
}
