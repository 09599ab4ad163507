package hostports

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// aliasesTable is the name of the tables of aliases, which nobody else uses.
const aliasesTable = "contiv-aliases"

// Alias is an address and port that goes by another one for the host's own processes.
type Alias struct {
	At    netip.AddrPort
	Proto string // tcp or udp
	To    netip.AddrPort
}

// Aliases is what is wanted for a family; without aliases there is no table.
type Aliases struct {
	Aliases []Alias
	Link    string // the host's end of the link, by which aliases are routed
}

// SetAliases says what goes by other addresses from now on, for a family.
func (k *Keeper) SetAliases(ipv6 bool, a Aliases) {
	a.Aliases = slices.Clone(a.Aliases)
	k.want(4+index(ipv6), &a)
}

func (a *Aliases) table() string { return aliasesTable }

// script replaces the table. It goes before that of node ports: of two that change a connection's address the kernel takes the
// first. Others' connections, which are on their way through the host, keep the address.
func (a *Aliases) script(ipv6 bool) (script, mark string) {
	if len(a.Aliases) == 0 {
		return "", ""
	}
	ip := familyName(ipv6)
	addr := "ipv4_addr"
	if ipv6 {
		addr = "ipv6_addr"
	}
	var to, targets []string
	for _, e := range a.Aliases {
		to = append(to, fmt.Sprintf("%s . %s . %d : %s . %d", e.At.Addr(), e.Proto, e.At.Port(), e.To.Addr(), e.To.Port()))
		targets = append(targets, e.To.Addr().String())
	}
	slices.Sort(to)
	slices.Sort(targets)
	return finish(ip, aliasesTable, fmt.Sprintf(`	map to {
		type %[1]s . inet_proto . inet_service : %[1]s . inet_service
		elements = { %[2]s }
	}
	set targets {
		type %[1]s
		elements = { %[3]s }
	}
	chain own {
		type nat hook output priority -101
		dnat %[4]s to %[4]s daddr . meta l4proto . th dport map @to
	}
	chain out {
		type nat hook postrouting priority 101
		oifname %[5]q %[4]s daddr @targets ct status dnat masquerade
	}
`, addr, strings.Join(to, ", "), strings.Join(slices.Compact(targets), ", "), ip, a.Link))
}
