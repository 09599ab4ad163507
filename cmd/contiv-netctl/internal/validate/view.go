package validate

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/kubepods"
	"contiv.dev/vswitch/plugins/nodesync"
)

// View is what one agent reports.
type View struct {
	Node        string                `json:"node"`
	Error       string                `json:"error,omitempty"` // why the view is missing or incomplete
	Info        diag.AgentInfo        `json:"agent"`
	Nodes       []nodesync.NodeReport `json:"nodes"`
	Stale       string                `json:"stale,omitempty"` // why Nodes is stored data; empty: it is current
	Pods        []Pod                 `json:"pods"`
	Allocations Allocations           `json:"allocations"`
	Kube        kubepods.List         `json:"kubernetes"`
	Values      []Value               `json:"values"`
	Check       diag.CheckReply       `json:"check"`
	Kernel      *diag.Kernel          `json:"kernel,omitempty"` // without VPP
	// NotCompared is why Check is missing: the request needs full access.
	NotCompared string `json:"notCompared,omitempty"`
}

// Pod is an attachment.
type Pod struct {
	Namespace   string         `json:"namespace"`
	Name        string         `json:"name"`
	ContainerID string         `json:"containerID"`
	Interface   string         `json:"interface"`
	Addresses   []netip.Prefix `json:"addresses"`
	Current     bool           `json:"current"`
}

func (p *Pod) id() string { return p.Namespace + "/" + p.Name }

// Allocations holds the addresses that a node has allocated to pods.
type Allocations struct {
	Pods []struct {
		PodID     struct{ Name, Namespace string }
		IPs       []netip.Addr
		Container string
	}
	Subnets []struct {
		Subnet     netip.Prefix
		Used, Free int
	}
}

// Value is a value of the scheduler's dump.
type Value struct {
	Key     string          `json:"key"`
	Kind    string          `json:"kind"`
	State   string          `json:"state"`
	Applied json.RawMessage `json:"applied,omitempty"`
}

// Finding is a fault.
type Finding struct {
	Node string `json:"node"`
	// About is the kind of object with the fault: node, etcd, value, drift, tunnel, arp, fib, route, pod, address.
	About  string `json:"about"`
	Object string `json:"object"`
	Text   string `json:"text"`
	// Keys lists the values that the finding is about, if there are several.
	Keys []string `json:"keys,omitempty"`
}

// state is the cluster in the form that the checks compare.
type state struct {
	views    []*View
	byName   map[string]*node
	findings []Finding
}

// node is a view with its values decoded.
type node struct {
	*View
	report     *nodesync.NodeReport // about itself
	ips        []netip.Addr         // in the network of nodes
	mgmt       []netip.Addr
	interfaces map[string]vppInterface
	neighbours []neighbour
	fibs       []fib
	routes     []route
	vteps      map[string]vtep
	workloads  []workload
}

// The values that are compared, in the form of northbound JSON.
type (
	vppInterface struct {
		Name        string   `json:"name"`
		Type        string   `json:"type"`
		PhysAddress string   `json:"phys_address"`
		IPs         []string `json:"ip_addresses"`
		Vxlan       struct {
			Src string `json:"src_address"`
			Dst string `json:"dst_address"`
			VNI uint32 `json:"vni"`
		} `json:"vxlan"`
	}
	neighbour struct {
		Interface string `json:"interface"`
		IP        string `json:"ip_address"`
		MAC       string `json:"phys_address"`
	}
	fib struct {
		MAC      string `json:"phys_address"`
		BD       string `json:"bridge_domain"`
		Outgoing string `json:"outgoing_interface"`
	}
	route struct {
		Type     string `json:"type"`
		Dst      string `json:"dst_network"`
		NextHop  string `json:"next_hop_addr"`
		Outgoing string `json:"outgoing_interface"`
	}
	vtep struct {
		Node string `json:"node"`
		MAC  string `json:"mac"`
		IP4  string `json:"ipv4_addr"`
		IP6  string `json:"ipv6_addr"`
		// The addresses between nodes: a node reports all of its own, and stores of another node only the one that it uses.
		Parent  string `json:"parent_device_ip"`
		Parent6 string `json:"parent_device_ipv6"`
	}
	workload struct {
		ID struct {
			WorkloadID string `json:"workload_id"`
		} `json:"id"`
		Endpoint struct {
			Name string   `json:"name"`
			IP4  []string `json:"ipv4_nets"`
			IP6  []string `json:"ipv6_nets"`
		} `json:"endpoint"`
	}
)

// bvi is the name of a node's interface in the overlay.
const bvi = "vxlanBVI"

// read decodes the values of a view. A value that cannot be decoded is a finding: a check must report what it did not check.
func (s *state) read(v *View) *node {
	n := &node{View: v, interfaces: map[string]vppInterface{}, vteps: map[string]vtep{}}
	for _, val := range v.Values {
		if len(val.Applied) == 0 {
			continue
		}
		var err error
		switch val.Kind {
		case "vpp-interface":
			var i vppInterface
			err = json.Unmarshal(val.Applied, &i)
			n.interfaces[i.Name] = i
		case "vpp-neighbour":
			n.neighbours, err = decode(n.neighbours, val.Applied)
		case "vpp-l2-fib":
			n.fibs, err = decode(n.fibs, val.Applied)
		case "vpp-route":
			n.routes, err = decode(n.routes, val.Applied)
		case "driver-vtep":
			var e vtep
			err = json.Unmarshal(val.Applied, &e)
			n.vteps[e.Node] = e
		case "driver-workload":
			n.workloads, err = decode(n.workloads, val.Applied)
		}
		if err != nil {
			s.find(v.Node, "value", val.Key, "cannot be read: "+err.Error())
		}
	}
	return n
}

func decode[T any](list []T, data json.RawMessage) ([]T, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return append(list, v), err
}

func (s *state) find(node, about, object, text string) {
	s.findings = append(s.findings, Finding{Node: node, About: about, Object: object, Text: text})
}

// Cluster compares the views of all nodes.
func Cluster(views []*View) []Finding {
	s := &state{views: views, byName: map[string]*node{}, findings: []Finding{}}
	for _, v := range views {
		if v.Error != "" {
			s.find(v.Node, "node", v.Node, v.Error)
			continue
		}
		s.byName[v.Node] = s.read(v)
	}
	s.identify()
	s.nodes()
	for _, n := range s.sorted() {
		s.drift(n)
		s.overlay(n)
		s.routes(n)
		s.pods(n)
	}
	s.addresses()
	slices.SortStableFunc(s.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.About, b.About), cmp.Compare(a.Object, b.Object))
	})
	return slices.CompactFunc(s.findings, func(a, b Finding) bool {
		return a.Node == b.Node && a.About == b.About && a.Object == b.Object && a.Text == b.Text
	})
}

func (s *state) sorted() []*node {
	var out []*node
	for _, v := range s.views {
		if n := s.byName[v.Node]; n != nil {
			out = append(out, n)
		}
	}
	return out
}

// peers returns the other nodes whose agents have answered.
func (s *state) peers(n *node) []*node {
	var out []*node
	for _, p := range s.sorted() {
		if p != n && p.report != nil {
			out = append(out, p)
		}
	}
	return out
}

// addr parses an address with or without a prefix length; it returns the zero Addr if the text is not one.
func addr(text string) netip.Addr {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Addr().Unmap()
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap()
}

func addrs(texts []string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		if a := addr(text); a.IsValid() {
			out = append(out, a)
		}
	}
	return out
}
