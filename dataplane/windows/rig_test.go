package windataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
	"contiv.dev/vswitch/test/testbed/poll"
)

// bench is a driver on an HNS in memory. Its loop does not run: step does the work of the loop.
type bench struct {
	t      testing.TB
	d      *WindowsDataplane
	host   *hnsmem.Host
	pods   map[string]string // ID in HNS by the workload's name
	status map[any]string
	// noPods: the container runtime makes no endpoints automatically.
	noPods bool
}

var both = Config{IPv6Enabled: true}

// newHost returns a Windows node with a network of pods.
func newHost(t testing.TB, kind hcn.NetworkType, policies ...hcn.Policy) *hnsmem.Host {
	t.Helper()
	h := hnsmem.New()
	var pools []hcn.IPAM
	for _, s := range [][3]string{{"10.65.0.0/16", "10.65.255.254", "0.0.0.0/0"}, {"fd00:65::/64", "fd00:65::ffff:1", "::/0"}} {
		subnet := hcn.Subnet{IPAddressPrefix: s[0], Routes: []hcn.Route{{NextHop: s[1], DestinationPrefix: s[2]}}}
		if kind == hcn.Overlay {
			if strings.Contains(s[0], ":") {
				continue // an overlay of Windows has no IPv6
			}
			vsid, err := hcn.NewPolicy(hcn.TypeVSID, hcn.VSIDSettings{IsolationID: 4096})
			if err != nil {
				t.Fatal(err)
			}
			subnet.Policies = []hcn.Policy{vsid}
		}
		pools = append(pools, hcn.IPAM{Subnets: []hcn.Subnet{subnet}})
	}
	if _, err := h.V2().CreateNetwork(hcn.Network{Name: "contiv", Type: kind, IPAMs: pools, Policies: policies}); err != nil {
		t.Fatal(err)
	}
	h.Calls()
	return h
}

func newBench(t testing.TB, config Config) *bench {
	t.Helper()
	return newBenchOn(t, config, newHost(t, hcn.L2Bridge))
}

// newBenchOn returns a bench on an existing HNS: a restart.
func newBenchOn(t testing.TB, config Config, host *hnsmem.Host) *bench {
	t.Helper()
	config.Hostname = "node1"
	d, err := New(host.V1(), config, Options{HCN: host.V2(), Log: slog.New(slog.DiscardHandler),
		HostAddresses: func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, d: d, host: host, pods: map[string]string{}, status: map[any]string{}}
	d.statuses.queue = b.note
	b.report(&hostAddresses{[]netip.Addr{netip.MustParseAddr("192.0.2.1")}})
	return b
}

func (b *bench) note(key, msg any) {
	switch msg := msg.(type) {
	case *proto.WorkloadEndpointStatusUpdate:
		b.status[key] = msg.GetStatus().GetStatus()
	case *proto.HostEndpointStatusUpdate:
		b.status[key] = msg.GetStatus().GetStatus()
	case *proto.WorkloadEndpointStatusRemove, *proto.HostEndpointStatusRemove:
		delete(b.status, key)
	default:
		b.t.Fatalf("unknown status message %T", msg)
	}
}

func (b *bench) managers() []Manager {
	list := []Manager{b.d.sets, b.d.policies, isolating{b.d.endpoints, b.d}}
	if b.d.vxlan != nil {
		list = append(list, isolating{b.d.vxlan, b.d})
	}
	return list
}

// report passes messages to the managers, like the first phase. A workload has its endpoint in HNS before it is announced.
func (b *bench) report(msgs ...any) {
	b.t.Helper()
	for _, msg := range msgs {
		b.runtime(msg)
		for _, m := range b.managers() {
			m.OnUpdate(msg)
		}
	}
}

// runtime does the work of a container runtime and its CNI plugin for a message.
func (b *bench) runtime(msg any) {
	b.t.Helper()
	switch msg := msg.(type) {
	case *proto.WorkloadEndpointUpdate:
		name := msg.GetId().GetWorkloadId()
		if b.noPods || b.pods[name] != "" {
			return
		}
		var addrs []netip.Addr
		for _, text := range slices.Concat(msg.GetEndpoint().GetIpv4Nets(), msg.GetEndpoint().GetIpv6Nets()) {
			if p, err := proto.ParseNet(text); err == nil {
				addrs = append(addrs, p.Addr())
			}
		}
		id, err := b.host.Pod("contiv", name, addrs...)
		if err != nil && !errors.Is(err, hcn.ErrExists) && !errors.Is(err, hcn.ErrInvalid) {
			b.t.Fatal(err)
		}
		b.pods[name] = id
	case *proto.WorkloadEndpointRemove:
		name := msg.GetId().GetWorkloadId()
		if b.pods[name] != "" && !b.noPods {
			b.host.Vanish(b.pods[name])
			delete(b.pods, name)
		}
	}
}

// step sends and applies, and returns all errors, including those of single objects.
func (b *bench) step(msgs ...any) error {
	b.t.Helper()
	b.report(msgs...)
	var errs []error
	for _, m := range b.managers() {
		errs = append(errs, m.CompleteDeferredWork())
	}
	errs = append(errs, b.d.isolated...)
	b.d.apply(context.Background())
	return errors.Join(errs...)
}

func (b *bench) must(msgs ...any) {
	b.t.Helper()
	if err := b.step(msgs...); err != nil {
		b.t.Fatal(err)
	}
}

// writes returns the calls since the last time that change something.
func (b *bench) writes() []hnsmem.Call {
	return slices.DeleteFunc(b.host.Calls(), func(c hnsmem.Call) bool { return !c.Writes() })
}

// allowed reports whether a workload may receive (In) or send a packet. Rules that do not determine it fail the test.
func (b *bench) allowed(name string, dir hns.Direction, p hnsmem.Packet) bool {
	b.t.Helper()
	ok, err := b.host.Allowed(b.pods[name], dir, p)
	if err != nil {
		b.t.Fatal(err)
	}
	return ok
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// packet returns a TCP segment to a workload's port from a remote address.
func packet(remote, local string, port uint16) hnsmem.Packet {
	return hnsmem.Packet{Protocol: 6, Remote: addr(remote), Local: addr(local), RemotePort: 40000, LocalPort: port}
}

func (b *bench) expect(what, name string, p hnsmem.Packet, want bool) {
	b.t.Helper()
	if got := b.allowed(name, hns.In, p); got != want {
		b.t.Errorf("%s: allowed %v, want %v\n%+v\n%s", what, got, want, p, b.rules(name))
	}
}

func (b *bench) rules(name string) string { return signature(b.host.ACLs(b.pods[name])) }

func (b *bench) expectStatus(name, want, reason string) {
	b.t.Helper()
	c, _ := b.d.Status(wlID(name))
	if b.status[epstate.WorkloadIDOf(wlID(name))] != want || c.Status != want || !strings.Contains(c.Reason, reason) {
		b.t.Errorf("status of %s is %q (%+v), want %q with %q", name, b.status[epstate.WorkloadIDOf(wlID(name))], c, want, reason)
	}
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	poll.Await(t, what, 20*time.Second, is)
}

// Messages.

func wlID(name string) *proto.WorkloadEndpointID {
	return &proto.WorkloadEndpointID{OrchestratorId: "k8s", WorkloadId: name, EndpointId: "eth0"}
}

// endpoint returns a workload with addresses 10.65.0.n and fd00:65::n, whose profile allows everything.
func endpoint(name string, n int, change ...func(*proto.WorkloadEndpoint)) *proto.WorkloadEndpointUpdate {
	ep := &proto.WorkloadEndpoint{State: "active", Name: "cali" + name, ProfileIds: []string{"open"},
		Ipv4Nets: []string{fmt.Sprintf("10.65.%d.%d/32", n/250, n%250)}, Ipv6Nets: []string{fmt.Sprintf("fd00:65::%x/128", n)}}
	for _, f := range change {
		f(ep)
	}
	return &proto.WorkloadEndpointUpdate{Id: wlID(name), Endpoint: ep}
}

func gone(name string) *proto.WorkloadEndpointRemove {
	return &proto.WorkloadEndpointRemove{Id: wlID(name)}
}

func withTiers(tiers ...*proto.TierInfo) func(*proto.WorkloadEndpoint) {
	return func(ep *proto.WorkloadEndpoint) { ep.Tiers = tiers }
}

func ingress(policies ...string) *proto.TierInfo {
	return &proto.TierInfo{Name: "default", IngressPolicies: policies}
}

func openProfile() *proto.ActiveProfileUpdate {
	all := []*proto.Rule{{Action: "allow"}}
	return &proto.ActiveProfileUpdate{Id: &proto.ProfileID{Name: "open"}, Profile: &proto.Profile{InboundRules: all,
		OutboundRules: all}}
}

func policy(name string, inbound ...*proto.Rule) *proto.ActivePolicyUpdate {
	return &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: "default", Name: name},
		Policy: &proto.Policy{InboundRules: inbound}}
}

func tcpPort(action string, port int32) *proto.Rule {
	return &proto.Rule{Action: action, Protocol: &proto.Protocol{NumberOrName: &proto.Protocol_Name{Name: "tcp"}},
		DstPorts: []*proto.PortRange{{First: port, Last: port}}}
}

func fromSet(action, set string) *proto.Rule {
	return &proto.Rule{Action: action, SrcIpSetIds: []string{set}}
}

func ipSet(id string, members ...string) *proto.IPSetUpdate {
	return &proto.IPSetUpdate{Id: id, Type: proto.IPSetUpdate_IP, Members: members}
}
