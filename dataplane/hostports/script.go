package hostports

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

// tableName is the name of the tables, which nobody else uses.
const tableName = "contiv-nodeports"

// Port is a node port.
type Port struct {
	Proto string // tcp or udp
	Port  uint16
}

// Ports is what is wanted for a family.
type Ports struct {
	Ports []Port
	At    []netip.Addr // addresses of the host
	To    netip.Addr   // VPP's address on the link
	Link  string       // the host's end of the link
	// Own is the host's address on the link. What VPP hands back with it as the source gets Alias, which is nobody's and is routed
	// to VPP. Both, or none.
	Own, Alias netip.Addr
}

func familyName(ipv6 bool) string {
	if ipv6 {
		return "ip6"
	}
	return "ip"
}

// script replaces the table.
func (p *Ports) script(ipv6 bool) (script, mark string) {
	ip := familyName(ipv6)
	var b strings.Builder
	chain := func(name, kind, hook string, priority int, rule string) {
		fmt.Fprintf(&b, "\tchain %s {\n\t\ttype %s hook %s priority %d\n\t\t%s\n\t}\n", name, kind, hook, priority, rule)
	}
	if p.To.IsValid() {
		p.sets(&b, ipv6)
		match := fmt.Sprintf("fib daddr type local %s daddr @addresses meta l4proto . th dport @ports dnat to %s", ip, p.To)
		chain("in", "nat", "prerouting", -100, fmt.Sprintf("iifname != %q %s", p.Link, match))
		chain("own", "nat", "output", -100, match)
		chain("out", "nat", "postrouting", 100, fmt.Sprintf("oifname %q %s daddr %s ct status dnat masquerade", p.Link, ip, p.To))
	}
	if p.Own.IsValid() && p.Alias.IsValid() { // before connections are tracked, and after
		chain("back", "filter", "prerouting", -300,
			fmt.Sprintf("iifname %q %s saddr %s %s saddr set %s", p.Link, ip, p.Own, ip, p.Alias))
		chain("away", "filter", "postrouting", 300,
			fmt.Sprintf("oifname %q %s daddr %s %s daddr set %s", p.Link, ip, p.Alias, ip, p.Own))
	}
	return finish(ip, tableName, b.String())
}

func (p *Ports) table() string { return tableName }

// finish makes a script that replaces a table. A chain without rules has a hash as its name, so that one that is there already
// is known.
func finish(ip, table, content string) (script, mark string) {
	sum := sha256.Sum256([]byte(content))
	mark = "v" + hex.EncodeToString(sum[:12])
	return fmt.Sprintf("table %[1]s %[2]s {}\ndelete table %[1]s %[2]s\ntable %[1]s %[2]s {\n%[3]s\tchain %[4]s {}\n}\n",
		ip, table, content, mark), mark
}

// sets writes the sets of ports and of the host's addresses.
func (p *Ports) sets(b *strings.Builder, ipv6 bool) {
	var ports, addrs []string
	for _, port := range p.Ports {
		ports = append(ports, fmt.Sprintf("%s . %d", port.Proto, port.Port))
	}
	for _, addr := range p.At {
		addrs = append(addrs, addr.String())
	}
	set := func(name, kind string, elements []string) {
		fmt.Fprintf(b, "\tset %s {\n\t\ttype %s\n", name, kind)
		if len(elements) > 0 {
			fmt.Fprintf(b, "\t\telements = { %s }\n", strings.Join(elements, ", "))
		}
		b.WriteString("\t}\n")
	}
	kind := "ipv4_addr"
	if ipv6 {
		kind = "ipv6_addr"
	}
	set("ports", "inet_proto . inet_service", ports)
	set("addresses", kind, addrs)
}
