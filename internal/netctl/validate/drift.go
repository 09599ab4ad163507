package validate

import (
	"fmt"
	"strings"
)

// drift: what a node has programmed is there, and in the state it should be in.
func (s *state) drift(n *node) {
	for _, v := range n.Values {
		switch v.State {
		case "FAILED", "RETRYING", "INVALID", "UNIMPLEMENTED":
			s.find(n.Node, "value", v.Key, "is "+v.State+"; contiv-netctl events tells why")
		case "PENDING":
			s.find(n.Node, "value", v.Key, "waits for something that it depends on")
		}
	}
	for _, r := range n.Check.Repairs {
		what := map[string]string{
			"create": "is missing in the dataplane", "update": "is other than programmed", "delete": "is in the dataplane and " +
				"should not be",
		}[r.Action]
		if what == "" {
			what = "differs (" + r.Action + " is due)"
		}
		s.find(n.Node, "drift", r.Key, fmt.Sprintf("%s %s; POST /scheduler/downstream-resync repairs it", object(r.Key), what))
	}
}

// object says what a key stands for.
func object(key string) string {
	for _, k := range []struct{ part, word string }{
		{"/arp/", "ARP entry"}, {"/l2/v2/fib/", "forwarding entry"}, {"/route/", "route"}, {"bridge-domain", "bridge domain"},
		{"/interfaces/vxlan", "tunnel end"}, {"vpp/bd/", "bridge domain's member"}, {"/interface", "interface"}, {"/nat",
			"NAT entry"},
		{"vrf-table", "routing table"},
	} {
		if strings.Contains(key, k.part) {
			return k.word
		}
	}
	return "value"
}
