package wiring

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/dataplane/nb"
	windows_hns "contiv.dev/vswitch/dataplane/nb/windows/hns"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	windataplane "contiv.dev/vswitch/dataplane/windows"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnscall"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/test/testbed/poll"
)

// rig is a scheduler on an HNS in memory. Its clock stands still: calls that hang trigger their own timeout (hang).
type rig struct {
	t      *testing.T
	host   *hnsmem.Host
	routes memoryRoutes
	w      *Wiring
	s      *scheduler.Scheduler
	pop    chan time.Time
	record *memoryRecord
	noIPv6 bool // pods have IPv4 addresses only
}

type hangClock struct{ pop chan time.Time }

func (hangClock) Now() time.Time                        { return time.Now() }
func (c hangClock) NewTimer(time.Duration) driver.Timer { return hangTimer(c) }

type hangTimer hangClock

func (t hangTimer) C() <-chan time.Time    { return t.pop }
func (hangTimer) Stop() bool               { return true }
func (hangTimer) Reset(time.Duration) bool { return true }

type memoryRoutes struct {
	mu   sync.Mutex
	list []HostRoute
}

func (m *memoryRoutes) List() ([]HostRoute, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list), nil
}

func (m *memoryRoutes) Add(r HostRoute) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, r)
	return nil
}

func (m *memoryRoutes) Remove(r HostRoute) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = slices.DeleteFunc(m.list, func(have HostRoute) bool { return have == r })
	return nil
}

// memoryRecord is passed from one rig to the next one, like a node's disk.
type memoryRecord struct {
	mu          sync.Mutex
	ids         []string
	load, store func(n int) error // errors of the n-th call
	loads       int
	stores      int
}

func (m *memoryRecord) Load() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.loads++; m.load != nil {
		return nil, m.load(m.loads)
	}
	return m.ids, nil
}

func (m *memoryRecord) Store(ids []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stores++; m.store != nil {
		if err := m.store(m.stores); err != nil {
			return err
		}
	}
	m.ids = ids
	return nil
}

// repair makes calls succeed.
func (m *memoryRecord) repair() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load, m.store = nil, nil
}

func newRig(t *testing.T, host *hnsmem.Host) *rig {
	t.Helper()
	return newRigAfter(t, host, &memoryRecord{})
}

// newRigAfter returns a rig on a node with a record of earlier rigs.
func newRigAfter(t *testing.T, host *hnsmem.Host, record *memoryRecord) *rig {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	r := &rig{t: t, host: host, record: record, pop: make(chan time.Time, 100)}
	r.w = New(Deps{HCN: host.V2(), Routes: &r.routes, Network: "contiv", Record: record, Log: log, Calls: hnscall.Config{Clock: hangClock{r.pop}},
		Closed: func() ([]hcn.Policy, error) {
			rules, err := windataplane.ClosedRulesOn(host.V1())
			if err != nil {
				return nil, err
			}
			return hcn.ACLPolicies(rules)
		},
		NodeAddresses: func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil }})
	jobs := lifecycle.NewGroup(t.Context(), log)
	r.s = scheduler.New(scheduler.Config{Backends: []scheduler.Backend{r.w}, Jobs: jobs,
		Retry: scheduler.RetryPolicy{First: time.Millisecond, Max: 5 * time.Millisecond, Attempts: -1}}, log)
	if err := Register(r.s, r.w); err != nil {
		t.Fatal(err)
	}
	if err := r.s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.s.Close()
		if err := r.w.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// hang makes calls of an operation hang until release is called; each call times out at once.
func (r *rig) hang(op string) (release func(), calls func() int) {
	gate := make(chan struct{})
	var mu sync.Mutex
	n := 0
	r.host.Hook(func(c hnsmem.Call) error {
		if c.Op != op {
			return nil
		}
		mu.Lock()
		n++
		mu.Unlock()
		r.pop <- time.Time{}
		<-gate
		return nil
	})
	return sync.OnceFunc(func() { r.host.Hook(nil); close(gate) }), func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// commit applies values; nil removes.
func (r *rig) commit(kind txn.Kind, values ...txn.KV) error {
	_, err := r.s.Commit(r.t.Context(), &txn.Txn{Kind: kind, Values: values})
	return err
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) eventually(what string, check func() error) {
	r.t.Helper()
	poll.Succeeds(r.t, what, time.Minute, check)
}

func kv(key string, v pb.Message) txn.KV { return txn.KV{Key: key, Value: v} }

func bridge() txn.KV {
	return kv(nb.HNSNetworkKey("contiv"), &windows_hns.Network{Name: "contiv", Adapter: "Ethernet", Subnets: []*windows_hns.Subnet{
		{Prefix: "10.1.1.0/24", Gateway: "10.1.1.1", Reserved: "10.1.1.2"}, {Prefix: "fd00:1::/64", Gateway: "fd00:1::1", Reserved: "fd00:1::2"}}})
}

func overlay() txn.KV {
	n := pb.CloneOf(bridge().Value.(*windows_hns.Network))
	n.Subnets = n.Subnets[:1] // an overlay of Windows has no IPv6
	n.Type, n.Vni, n.RouterMac, n.ProviderAddress = windows_hns.Network_OVERLAY, 4096, "12:2b:00:00:00:01", "192.0.2.1"
	return kv(nb.HNSNetworkKey("contiv"), n)
}

// pod returns the endpoint of pod i, in a namespace that is made for it.
func (r *rig) pod(i int) txn.KV {
	r.t.Helper()
	ns := fmt.Sprintf("0000%04d-0000-4000-8000-00000000AAAA", i)
	list, err := r.host.V2().ListNamespaces()
	r.must(err)
	if !slices.ContainsFunc(list, func(n hcn.Namespace) bool { return n.ID == ns }) {
		_, err := r.host.V2().CreateNamespace(hcn.Namespace{ID: ns, Type: hcn.NamespaceGuest})
		r.must(err)
	}
	name := fmt.Sprintf("%s%d", PodPrefix, i)
	e := &windows_hns.Endpoint{Name: name, Network: "contiv", Namespace: ns,
		Mac: fmt.Sprintf("02:fe:00:00:00:%02x", i), Addresses: []string{podAddr(i).String(), fmt.Sprintf("fd00:1::%x", 16+i)},
		Gateways: []string{"10.1.1.1", "fd00:1::1"}, NoNat: []string{"10.0.0.0/8"}, DnsServers: []string{"10.96.0.10"}}
	if r.noIPv6 {
		e.Addresses, e.Gateways = e.Addresses[:1], e.Gateways[:1]
	}
	return kv(nb.HNSEndpointKey(name), e)
}

func podAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, 1, byte(10 + i)}) }

func removed(v txn.KV) txn.KV { return txn.KV{Key: v.Key} }

// endpoints returns the endpoints of HNS by name.
func (r *rig) endpoints() map[string]hcn.Endpoint {
	r.t.Helper()
	list, err := r.host.V2().ListEndpoints()
	r.must(err)
	out := map[string]hcn.Endpoint{}
	for _, e := range list {
		if _, twice := out[e.Name]; twice {
			r.t.Errorf("endpoint %s is there twice", e.Name)
		}
		out[e.Name] = e
	}
	return out
}

// state returns the state of HNS, without IDs.
func (r *rig) state() string {
	r.t.Helper()
	ids := map[string]string{}
	var lines []string
	for name, e := range r.endpoints() {
		ids[e.ID] = e.IPConfigurations[0].IPAddress
		ns, network := e.HostComputeNamespace, e.HostComputeNetwork
		if strings.HasPrefix(name, "contiv-gateway") {
			ns = "host"
		}
		e.ID, e.HostComputeNamespace, e.HostComputeNetwork = "", ns, fmt.Sprint(network != "")
		if name == gatewayEndpoint || name == sourceEndpoint || strings.HasPrefix(name, remotePrefix) {
			e.MacAddress = ""
		}
		raw, err := json.Marshal(e)
		r.must(err)
		lines = append(lines, string(raw))
	}
	list, err := r.host.V2().ListLoadBalancers()
	r.must(err)
	for _, lb := range list {
		lb.ID = ""
		for i, id := range lb.HostComputeEndpoints {
			lb.HostComputeEndpoints[i] = ids[id]
		}
		slices.Sort(lb.HostComputeEndpoints)
		raw, err := json.Marshal(lb)
		r.must(err)
		lines = append(lines, string(raw))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func service(name string, vip byte, backends ...netip.Addr) txn.KV {
	everywhere := &proto.BalancedGroup{Ports: []uint32{8080}}
	for _, a := range backends {
		everywhere.Addresses = append(everywhere.Addresses, a.AsSlice()...)
	}
	return kv(nb.DriverServicePrefix+"default/"+name, &proto.BalancedServiceUpdate{Namespace: "default", Name: name,
		Ports: []*proto.BalancedPort{{Protocol: 6, Everywhere: everywhere,
			Frontends: []*proto.BalancedFrontend{{Address: []byte{10, 96, 0, vip}, Port: 80}}}}})
}
