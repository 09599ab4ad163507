package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/diag"
)

// drift checks that what a node has programmed exists in the dataplane and is in the right state.
func (s *state) drift(n *node) {
	for _, v := range n.Values {
		switch v.State {
		case "FAILED", "RETRYING", "INVALID", "UNIMPLEMENTED":
			s.find(n.Node, "value", v.Key, "is "+v.State+"; contiv-netctl events shows why")
		case "PENDING":
			s.find(n.Node, "value", v.Key, "waits for something that it depends on")
		}
	}
	for _, dst := range n.Check.TypedRoutes {
		s.find(n.Node, "route", dst, "this route was added at VPP's command line, in the table of pods; it takes precedence over the "+
			"agent's: remove it there (ip route del)")
	}
	of := map[string][]diag.Repair{}
	for _, r := range n.Check.Repairs {
		of[n.podOf(r.Key)] = append(of[n.podOf(r.Key)], r)
	}
	for _, pod := range slices.Sorted(maps.Keys(of)) {
		if list := of[pod]; pod != "" && len(list) > 1 {
			s.podDrift(n, pod, list)
			continue
		}
		for _, r := range of[pod] {
			if isUp(r) {
				s.find(n.Node, "drift", r.Key, fmt.Sprintf("interface%s is down; %s", ofPod(pod), n.resync()))
				continue
			}
			s.find(n.Node, "drift", r.Key, fmt.Sprintf("%s%s %s; %s", object(r.Key), ofPod(pod), actionText(r.Action), n.resync()))
		}
	}
}

func (n *node) resync() string { return "contiv-netctl resync " + n.Node + " repairs it" }

func actionText(action string) string {
	switch action {
	case "create":
		return "is missing in the dataplane"
	case "update":
		return "differs from its desired state"
	case "delete":
		return "is in the dataplane and should not be"
	}
	return "differs (" + action + " is due)"
}

func ofPod(pod string) string {
	if pod == "" {
		return ""
	}
	return " of pod " + pod
}

// podDrift reports one finding for differences that mostly have one cause: if a pod's interface is removed, its addresses, routes and
// neighbours are, too.
func (s *state) podDrift(n *node, pod string, list []diag.Repair) {
	f := Finding{Node: n.Node, About: "drift", Object: "pod " + pod}
	down := false
	var words []string
	for _, r := range list {
		f.Keys = append(f.Keys, r.Key)
		down = down || isUp(r)
		if word := object(r.Key); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if down {
		f.Text = "its interface is down: "
	}
	slices.Sort(words)
	f.Text += fmt.Sprintf("%d of its values differ from their desired state (%s); %s", len(list), strings.Join(words, ", "),
		n.resync())
	s.findings = append(s.findings, f)
}

// isUp reports whether the repair is that of an interface that is down.
func isUp(r diag.Repair) bool {
	return r.Action == "create" && (strings.HasPrefix(r.Key, "linux/interface/state/") || strings.HasPrefix(r.Key,
		"vpp/interface/") && strings.HasSuffix(r.Key, "/link-state/UP"))
}

// idInNames is the least number of characters of a container's ID that the names of its interfaces contain.
const idInNames = 28

// podOf returns the pod that a value belongs to, by the container's ID in its key; empty: none.
func (n *node) podOf(key string) (pod string) {
	longest := 0
	for i := range n.Pods {
		id := n.Pods[i].ContainerID
		id = id[:min(len(id), idInNames)]
		if len(id) > longest && strings.Contains(key, id) {
			longest, pod = len(id), n.Pods[i].id()
		}
	}
	return pod
}

// object returns the kind of object that a key identifies.
func object(key string) string {
	for _, k := range []struct{ part, word string }{
		{"/address/static/", "address"}, {"/workload-up/", "endpoint"},
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
