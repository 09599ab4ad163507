package relay

import (
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/service/processor"
	"contiv.dev/vswitch/plugins/service/renderer/rendertest"
)

// FuzzMessage checks that a reader of the relay neither panics nor fails for any value in etcd: a readable value is encoded in the
// same way again, and services are derived from it.
func FuzzMessage(f *testing.F) {
	slice := &model.EndpointSlice{Name: "x", Namespace: "ns", Service: "s", Ports: []*model.EndpointPort{{Name: "http", Port: 8080}}}
	b := model.NewSliceBuilder(slice, 1)
	b.Add(netip.MustParseAddr("10.1.1.2"), model.CondReady, &model.Place{Node: "n1"})
	for keyword, m := range map[string]proto.Message{
		model.ServiceKeyword: &model.Service{Name: "s", Namespace: "ns", ClusterIps: []string{"10.96.0.1"}, Uid: "u", Created: 1,
			Ports: []*model.ServicePort{{Name: "http", Port: 80, NodePort: 30080}}},
		model.EndpointSliceKeyword: slice,
		model.NodeKeyword:          &model.Node{Name: "n1", Addresses: []string{"192.0.2.1"}},
		model.PolicyKeyword:        &model.Policy{Name: "p", Namespace: "ns", Ingress: true},
		model.ClusterPolicyKeyword: &model.ClusterPolicy{Name: "p", IngressRules: []*model.PolicyRule{{Action: model.PolicyRule_DENY}}},
	} {
		data, err := kube.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(keyword, data)
	}
	f.Add(model.EndpointSliceKeyword, []byte("\x1a\x01s\x20\x01\x32\x10aaaaaaaaaaaaaaaa\x3a\x01\x01\x42\x01\x05"))
	f.Fuzz(func(t *testing.T, keyword string, data []byte) {
		i := slices.IndexFunc(Resources(), func(r clusterdb.Resource) bool { return r.Keyword == keyword })
		if i < 0 {
			return
		}
		m, err := Resources()[i].Decode(data)
		if err != nil {
			return
		}
		again, err := kube.Encode(m)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if back, err := Resources()[i].Decode(again); err != nil || !proto.Equal(back, m) {
			t.Fatalf("%v\nis read back as\n%v: %v", m, back, err)
		}
		r := rendertest.New(t)
		p := processor.New(processor.Config{NodeName: "n1"}, nil)
		p.RegisterRenderer(r)
		service := &model.Service{Name: "s", Namespace: "ns", ClusterIps: []string{"10.96.0.1", "fd00::1"},
			Ports: []*model.ServicePort{{Name: "http", Port: 80}}}
		snap := &processor.Snapshot{Services: slices.Values([]*model.Service{service}), Slices: slices.Values([]*model.EndpointSlice{slice})}
		switch m := m.(type) {
		case *model.Service:
			snap.Services = slices.Values([]*model.Service{service, m})
		case *model.EndpointSlice:
			snap.Slices = slices.Values([]*model.EndpointSlice{m})
		}
		if err := p.Resync(snap); err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Services {
			for name, list := range s.Backends {
				for _, backend := range list {
					v6 := backend.IP.To4() == nil
					if len(backend.IP) != map[bool]int{false: 4, true: 16}[v6] || backend.Port == 0 {
						t.Fatalf("%s, port %q: backend %v is neither IPv4 nor IPv6", s, name, backend)
					}
				}
			}
		}
	})
}

// FuzzForeignKeys checks that the table reverts all changes of another program below the relay's prefix, and changes nothing outside
// of it.
func FuzzForeignKeys(f *testing.F) {
	f.Add("k8s/service/ns/a", "x", int64(3), false)
	f.Add(MarkerKey, "", int64(1), true)
	f.Add("k8s//../..", "y", int64(0), false)
	f.Add("", "", int64(-1), true)
	f.Fuzz(func(t *testing.T, key, value string, rev int64, deleted bool) {
		want := map[string]string{statePrefix + "service/ns/a": "1", statePrefix + "node/n1": "2"}
		tab := newTable()
		tab.setAll(maps.Clone(want), nil)
		etcd := &etcdModel{values: map[string]cas.Value{}}
		tab.load(etcd.list())
		etcd.settle(t, tab)
		change := cas.Value{Key: clusterdb.KSRPrefix + key, Value: []byte(value), Rev: rev}
		if deleted {
			change.Value = nil
		}
		// The feed has only keys with the relay's prefix.
		if !strings.HasPrefix(change.Key, statePrefix) || path.Clean(change.Key) != change.Key {
			return
		}
		etcd.commit([]cas.Write{{Key: change.Key, Value: change.Value}})
		tab.observe([]cas.Value{change})
		etcd.settle(t, tab)
		tab.invalidate()
		tab.load(etcd.list())
		etcd.settle(t, tab)
		if !etcd.is(want) {
			t.Fatalf("etcd has %v after %q = %q", etcd.values, key, value)
		}
	})
}
