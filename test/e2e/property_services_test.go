package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
)

// objects is the state of Kubernetes in a random sequence: it has few names and addresses, so that objects are created again
// under the same name, claim the same addresses and ports, and have contents that the API server would have rejected.
type objects struct {
	rng    *rand.Rand
	values map[string]map[string]proto.Message // by keyword and key
}

func newObjects(rng *rand.Rand) *objects {
	o := &objects{rng: rng, values: map[string]map[string]proto.Message{}}
	for _, keyword := range []string{model.ServiceKeyword, model.EndpointSliceKeyword, model.NodeKeyword} {
		o.values[keyword] = map[string]proto.Message{}
	}
	return o
}

// snapshot returns the input of a new agent.
func (o *objects) snapshot() *api.DBResync {
	ev := api.NewDBResync()
	for keyword, values := range o.values {
		copied := make(map[string]proto.Message, len(values))
		for key, v := range values {
			copied[key] = v
		}
		ev.KubeState[keyword] = copied
	}
	return ev
}

// change makes a random change.
func (o *objects) change() *api.KubeStateChange {
	var keyword, namespace, name string
	var next proto.Message
	switch n := o.rng.IntN(10); {
	case n < 5:
		keyword, namespace, name = model.ServiceKeyword, "ns", fmt.Sprintf("s.%d", o.rng.IntN(5))
		next = o.service(namespace, name)
	case n < 9:
		keyword, namespace, name = model.EndpointSliceKeyword, "ns", fmt.Sprintf("e%d", o.rng.IntN(7))
		next = o.slice(namespace, name)
	default:
		keyword, name = model.NodeKeyword, []string{"node", "other", "third"}[o.rng.IntN(3)]
		next = o.node(name)
	}
	key := model.Key(keyword, namespace, name)
	prev := o.values[keyword][key]
	switch {
	case prev != nil && o.rng.IntN(4) == 0:
		next = nil
		delete(o.values[keyword], key)
	default:
		o.values[keyword][key] = next
	}
	return &api.KubeStateChange{Resource: keyword, Key: key, PrevValue: prev, NewValue: next}
}

// some returns up to n of texts, perhaps one of them twice.
func (o *objects) some(n int, texts ...string) []string {
	var out []string
	for range o.rng.IntN(n + 1) {
		out = append(out, texts[o.rng.IntN(len(texts))])
	}
	return out
}

func (o *objects) once(n int) bool { return o.rng.IntN(n) == 0 }

func (o *objects) service(namespace, name string) *model.Service {
	s := &model.Service{
		Namespace: namespace, Name: name, Type: model.Service_Type(o.rng.IntN(4)), Headless: o.once(12),
		ClusterIps: o.some(2, "10.96.0.1", "10.96.0.2", "fd00:10:96::1", "fd00:10:96::2", "nonsense"),
		// Addresses of other services, of the node, of nothing, and addresses that no host can have.
		ExternalIps: o.some(2, "192.0.2.1", "192.0.2.2", "2001:db8::1", "192.168.16.1", "10.96.0.1", "127.0.0.1", "0.0.0.0",
			"224.0.0.1", "::"),
		InternalLocal: o.once(4), ExternalLocal: o.once(3), SourceRangesSet: o.once(4),
		SourceRanges: o.some(2, "192.0.2.0/24", "2001:db8::/32", "0.0.0.0/0", "x"),
	}
	if o.once(8) {
		s.ProxyName = "somebody"
	}
	if o.once(4) {
		s.SessionAffinityTimeout = uint32(o.rng.IntN(100000))
	}
	for _, ip := range o.some(2, "192.0.2.1", "192.0.2.3", "2001:db8::3", "127.0.0.1", "10.96.0.2") {
		s.Ingress = append(s.Ingress, &model.Ingress{Ip: ip, Proxy: o.once(5)})
	}
	for range o.rng.IntN(4) {
		s.Ports = append(s.Ports, &model.ServicePort{
			Name: []string{"", "a", "b.c"}[o.rng.IntN(3)], Protocol: model.Protocol(o.rng.IntN(4)),
			Port:     []uint32{0, 53, 80, 80, 65535, 70000}[o.rng.IntN(6)],
			NodePort: []uint32{0, 0, 30001, 30002, 70000}[o.rng.IntN(5)],
		})
	}
	return s
}

func (o *objects) slice(namespace, name string) *model.EndpointSlice {
	s := &model.EndpointSlice{Namespace: namespace, Name: name, Service: fmt.Sprintf("s.%d", o.rng.IntN(5)), Ipv6: o.once(3)}
	for range 1 + o.rng.IntN(3) {
		s.Ports = append(s.Ports, &model.EndpointPort{
			Name: []string{"", "a", "b.c"}[o.rng.IntN(3)], Protocol: model.Protocol(o.rng.IntN(3)),
			Port: []uint32{1, 8080, 8081, 65535, 70000}[o.rng.IntN(5)],
		})
	}
	addrs := []string{"10.1.1.2", "10.1.1.3", "10.1.2.2", "192.168.16.1", "192.0.2.9", "10.1.1.2"}
	if s.Ipv6 {
		addrs = []string{"fd10:1:0:1::2", "fd10:1:0:1::3", "fd10:1:0:2::2", "2001:db8::9", "fd10:1:0:1::2"}
	}
	n := o.rng.IntN(6)
	b := model.NewSliceBuilder(s, n)
	for range n {
		place := &model.Place{Node: []string{"node", "other", ""}[o.rng.IntN(3)]}
		b.Add(netip.MustParseAddr(addrs[o.rng.IntN(len(addrs))]), byte(o.rng.IntN(8)), place)
	}
	return s
}

func (o *objects) node(name string) *model.Node {
	return &model.Node{
		Name: name, Addresses: o.some(3, "192.168.16.1", "192.168.16.2", "192.168.16.3", "2001:db8::9", "127.0.0.1", "x"),
		Labels: map[string]string{"topology.kubernetes.io/zone": []string{"", "a", "b"}[o.rng.IntN(3)]},
	}
}
