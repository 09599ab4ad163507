package hostports

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// placesTable is the name of the tables of places, which nobody else uses.
const placesTable = "contiv-places"

// Place is an address and port that only some clients may use, and what it becomes for them.
type Place struct {
	At    netip.AddrPort
	Proto string // tcp or udp
	To    netip.AddrPort
	From  []netip.Prefix
	// Own: the host itself may use it, whatever address it sends with.
	Own bool
}

// Places is what is wanted for a family; without places there is no table.
type Places struct {
	Places []Place
	Link   string     // the host's end of the link
	Via    netip.Addr // VPP's address there
}

func (p *Places) table() string { return placesTable }

// answers is the way of answers.
func (p *Places) answers(ipv6 bool) answers {
	a := answers{ipv6: ipv6, link: p.Link}
	if len(p.Places) > 0 {
		a.via = p.Via
	}
	return a
}

// script replaces the table. Who may use a place is decided before connections are tracked, for every packet, in the one
// transaction that also says where the place leads: there is no moment with only one of them.
func (p *Places) script(ipv6 bool) (script, mark string) {
	if len(p.Places) == 0 {
		return "", ""
	}
	ip, icmp := familyName(ipv6), "icmp"
	if ipv6 {
		icmp = "icmpv6"
	}
	var b strings.Builder
	p.sets(&b, ip)
	place := ip + " daddr . meta l4proto . th dport"
	others := fmt.Sprintf("%s @to %s . %s saddr != @allowed drop", place, place, ip)
	change := fmt.Sprintf("dnat %s to %s map @to", ip, place)
	chain := func(name, kind, hook string, priority int, rules ...string) {
		fmt.Fprintf(&b, "\tchain %s {\n\t\ttype %s hook %s priority %d\n\t\t%s\n\t}\n", name, kind, hook, priority,
			strings.Join(rules, "\n\t\t"))
	}
	chain("from", "filter", "prerouting", -250, others)
	chain("self", "filter", "output", -250, place+" @own accept", others)
	chain("answers", "filter", "prerouting", -150,
		fmt.Sprintf("iifname %q %s daddr @addresses ct state new ct mark set ct mark or %#x", p.Link, ip, answerMark),
		fmt.Sprintf("iifname %q ct direction reply ct mark & %#x != 0 meta mark set meta mark or %#[2]x", p.Link, answerMark))
	chain("in", "nat", "prerouting", -100, change)
	chain("away", "nat", "output", -100, change)
	// A port of its own for each connection: cnat knows answers by backend, client and port only (docs/adr/0010). It goes before
	// the chain of node ports, which would leave the client's.
	chain("out", "nat", "postrouting", 99, fmt.Sprintf(
		"oifname %q ct status dnat ct original %s daddr @addresses masquerade fully-random", p.Link, ip))
	// What VPP hands over must not be handed back as it is.
	chain("rest", "filter", "forward", 0, fmt.Sprintf("iifname %q %s daddr @addresses ct state invalid drop", p.Link, ip),
		fmt.Sprintf("iifname %q %s daddr @addresses reject with %s type admin-prohibited", p.Link, ip, icmp))
	return finish(ip, placesTable, b.String())
}

// sets writes what the chains look up.
func (p *Places) sets(b *strings.Builder, ip string) {
	var to, allowed, own, addrs []string
	for _, place := range p.Places {
		key := fmt.Sprintf("%s . %s . %d", place.At.Addr(), place.Proto, place.At.Port())
		to = append(to, fmt.Sprintf("%s : %s . %d", key, place.To.Addr(), place.To.Port()))
		for _, net := range disjoint(place.From) {
			allowed = append(allowed, key+" . "+net.String())
		}
		if place.Own {
			own = append(own, key)
		}
		addrs = append(addrs, place.At.Addr().String())
	}
	slices.Sort(addrs)
	addr := "ipv4_addr"
	if ip == "ip6" {
		addr = "ipv6_addr"
	}
	key := addr + " . inet_proto . inet_service"
	set := func(kind, name, typ string, elements []string) {
		fmt.Fprintf(b, "\t%s %s {\n\t\ttype %s\n", kind, name, typ)
		if len(elements) > 0 {
			slices.Sort(elements)
			fmt.Fprintf(b, "\t\telements = { %s }\n", strings.Join(elements, ", "))
		}
		b.WriteString("\t}\n")
	}
	set("map", "to", key+" : "+addr+" . inet_service", to)
	set("set", "allowed", key+" . "+addr+"\n\t\tflags interval", allowed)
	set("set", "own", key, own)
	set("set", "addresses", addr, slices.Compact(addrs))
}

// disjoint leaves out networks that are in others: nft takes none that overlap.
func disjoint(all []netip.Prefix) (out []netip.Prefix) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	for _, p := range all {
		if p = p.Masked(); !slices.ContainsFunc(out, func(wider netip.Prefix) bool { return wider.Overlaps(p) }) {
			out = append(out, p)
		}
	}
	return out
}
