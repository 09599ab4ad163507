package hostports

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
)

// portsTable is the name of the tables of node ports. No other program uses it.
const portsTable = "contiv-nodeports"

func familyName(f linux_nodeports.Family) string {
	if f == linux_nodeports.Family_IPV6 {
		return "ip6"
	}
	return "ip"
}

// validatePorts rejects values that nft would reject, or that would change the meaning of the script.
func validatePorts(v *linux_nodeports.NodePorts) error {
	errs := []error{checkAddress("to", v.To, v.Family), checkDevice(v.Device)}
	for _, a := range v.Addresses {
		errs = append(errs, checkAddress("addresses", a, v.Family))
	}
	for _, p := range v.Ports {
		if p.Port == 0 || p.Port > 65535 {
			errs = append(errs, fmt.Errorf("ports: %d is not a port", p.Port))
		}
	}
	return errors.Join(errs...)
}

func checkAddress(field, text string, f linux_nodeports.Family) error {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || a.Is4() != (f == linux_nodeports.Family_IPV4) || a.Is4In6() {
		return fmt.Errorf("%s: %q is not an address of family %s", field, text, f)
	}
	return nil
}

func checkDevice(name string) error {
	if name == "" || len(name) > 15 || strings.ContainsAny(name, " \t\n/\"") {
		return fmt.Errorf("device: %q is not the name of a device", name)
	}
	return nil
}

// portsScript replaces the table of node ports.
func portsScript(v *linux_nodeports.NodePorts) (script, mark string) {
	ip := familyName(v.Family)
	var b strings.Builder
	chain := func(name, hook string, priority int, rule string) {
		fmt.Fprintf(&b, "\tchain %s {\n\t\ttype nat hook %s priority %d\n\t\t%s\n\t}\n", name, hook, priority, rule)
	}
	var ports, kept []string
	for _, p := range v.Ports {
		one := fmt.Sprintf("%s . %d", strings.ToLower(p.Protocol.String()), p.Port)
		if ports = append(ports, one); p.KeepClient {
			kept = append(kept, one)
		}
	}
	writeSet(&b, "ports", "inet_proto . inet_service", ports)
	writeSet(&b, "kept", "inet_proto . inet_service", kept)
	writeSet(&b, "addresses", map[string]string{"ip": "ipv4_addr", "ip6": "ipv6_addr"}[ip], v.Addresses)
	match := fmt.Sprintf("fib daddr type local %s daddr @addresses meta l4proto . th dport @ports dnat to %s", ip, v.To)
	chain("in", "prerouting", -100, fmt.Sprintf("iifname != %q %s", v.Device, match))
	chain("own", "output", -100, match)
	// If several chains change the source, the first one counts: this one runs before the chains that hide clients, ours and those of other
	// programs.
	chain("keep", "postrouting", 98, fmt.Sprintf(
		"oifname %q %s daddr %s ct status dnat fib saddr type != local meta l4proto . th dport @kept snat to %s saddr", v.Device, ip, v.To, ip))
	chain("out", "postrouting", 100, fmt.Sprintf("oifname %q %s daddr %s ct status dnat masquerade", v.Device, ip, v.To))
	return finish(ip, portsTable, b.String())
}

// finish returns a script that replaces a table. mark is the name of a chain without rules that is unique to this content, so that an existing
// table can be recognized.
func finish(ip, table, content string) (script, mark string) {
	sum := sha256.Sum256([]byte(content))
	mark = "v" + hex.EncodeToString(sum[:12])
	return fmt.Sprintf("table %[1]s %[2]s {}\ndelete table %[1]s %[2]s\ntable %[1]s %[2]s {\n%[3]s\tchain %[4]s {}\n}\n",
		ip, table, content, mark), mark
}

func writeSet(b *strings.Builder, name, kind string, elements []string) {
	fmt.Fprintf(b, "\tset %s {\n\t\ttype %s\n", name, kind)
	if len(elements) > 0 {
		fmt.Fprintf(b, "\t\telements = { %s }\n", strings.Join(elements, ", "))
	}
	b.WriteString("\t}\n")
}
