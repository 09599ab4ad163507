package vpp

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"go.fd.io/govpp/api"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// contivLines adds all objects of our own plugin, if VPP has it.
func contivLines(lane *conn.Lane, add func(string, ...any), end func(error)) {
	done := func(err error) {
		if !errors.Is(err, conn.ErrUnknownMessage) {
			end(err)
		}
	}
	conn.Call(lane, &contiv.ContivConfigGet{}, func(r *contiv.ContivConfigGetReply, err error) {
		if err == nil {
			add("contiv config %+v", *r)
		}
		done(err)
	})
	for _, req := range []api.Message{
		&contiv.ContivEndpointDump{}, &contiv.ContivNetworkDump{}, &contiv.ContivSnatDump{}, &contiv.ContivServiceDump{},
		&contiv.ContivBackendDump{}, &contiv.ContivFrontendDump{}, &contiv.ContivRangeDump{},
		&contiv.ContivSetDump{}, &contiv.ContivSetMemberDump{}, &contiv.ContivPolicyDump{}, &contiv.ContivEndpointPolicyDump{},
	} {
		conn.Dump(lane, req, func(d api.Message) {
			if b, ok := d.(*contiv.ContivBackendDetails); ok && b.Draining {
				return // it is deleted soon
			}
			add("%s %+v", d.GetMessageName(), d)
		}, done)
	}
}

func endpoint(ifName string, role vpp_contiv.Endpoint_Role, addresses ...string) *vpp_contiv.Endpoint {
	return &vpp_contiv.Endpoint{Interface: ifName, Role: role, Name: "name of " + ifName, Addresses: addresses}
}

func network4and6(class vpp_contiv.Network_Class, prefixes ...string) (v values) {
	for _, p := range prefixes {
		v = append(v, &vpp_contiv.Network{Prefix: p, Class: class})
	}
	return v
}

func balance(service uint64) *vpp_contiv.Frontend_Target {
	return &vpp_contiv.Frontend_Target{Action: vpp_contiv.Frontend_Target_BALANCE, Service: service}
}

func contivService(id uint64, backends ...string) *vpp_contiv.Service {
	s := &vpp_contiv.Service{Id: id, Name: fmt.Sprintf("default/service-%d", id)}
	for _, b := range backends {
		end, kept := strings.CutSuffix(b, " kept")
		end, masq := strings.CutSuffix(end, " masquerade")
		at := netip.MustParseAddrPort(end)
		s.Backends = append(s.Backends, &vpp_contiv.Service_Backend{
			Ip: at.Addr().String(), Port: uint32(at.Port()), Masquerade: masq, Kept: kept,
		})
	}
	return s
}

// keeping returns a target that rejects new connections and keeps the UDP flows to a service's backends.
func keeping(service uint64) *vpp_contiv.Frontend_Target {
	return &vpp_contiv.Frontend_Target{Action: vpp_contiv.Frontend_Target_REJECT, Service: service}
}

func frontend(at string, proto vpp_contiv.Frontend_Protocol, in, out *vpp_contiv.Frontend_Target) *vpp_contiv.Frontend {
	end := netip.MustParseAddrPort(at)
	return &vpp_contiv.Frontend{
		Ip: end.Addr().String(), Port: uint32(end.Port()), Protocol: proto, Name: "default/web", InCluster: in, Outside: out,
	}
}

// contivVersions returns two states of a node that differ in every field of the plugin's objects.
func contivVersions() (first, second values) {
	const (
		tcp, udp, sctp, whole = vpp_contiv.Frontend_TCP, vpp_contiv.Frontend_UDP, vpp_contiv.Frontend_SCTP, vpp_contiv.Frontend_ANY
		pod, host             = vpp_contiv.Endpoint_POD, vpp_contiv.Endpoint_HOST
	)
	reject := &vpp_contiv.Frontend_Target{Action: vpp_contiv.Frontend_Target_REJECT}
	drop := &vpp_contiv.Frontend_Target{Action: vpp_contiv.Frontend_Target_DROP}
	masqueraded := balance(2)
	masqueraded.Masquerade = true
	sticky := frontend("10.96.0.1:80", tcp, balance(1), drop)
	sticky.AffinityGroup, sticky.AffinityTimeout = 1<<63, 10800
	guarded := frontend("[fd00:96::1]:443", sctp, balance(3), masqueraded)
	guarded.Ranges = 5
	long := strings.Repeat("namespace-", 8) + "/name"
	unlike := endpoint("pod-1", host)
	unlike.Name, unlike.MaxConnections = long, 7
	egress := endpoint("pod-2", pod, "10.1.0.3", "fd00:1::3")
	egress.Egress = 1
	interfaces := values{
		loop("gw", "02:00:00:00:01:01", withIP("10.1.0.1/24", "fd00:1::1/64")),
		loop("pod-1", "02:00:00:00:01:02", unnumberedTo("gw"), upAfter("pod-1")), loop("pod-2", "02:00:00:00:01:03", unnumberedTo("gw")),
	}
	keeps := keeping(1)
	first = all(interfaces, network4and6(vpp_contiv.Network_POD, "10.1.0.0/16", "fd00:1::/32"), values{
		&vpp_contiv.Config{TunnelPorts: []uint32{4789, 8472}, EndpointConnections: 100, Udp: 5},
		endpoint("pod-1", pod, "10.1.0.2", "fd00:1::2"), endpoint("pod-2", pod),
		&vpp_contiv.SourceNAT{Name: "services", Ipv4Address: "192.0.2.1"},
		&vpp_contiv.SourceNAT{Id: 1, Name: "outside", Ipv4Address: "192.0.2.2", Ipv6Address: "fd00:2::2", PortLow: 1024, PortHigh: 2047},
		contivService(1, "10.1.0.2:8080", "10.1.0.3:8080 masquerade", "10.1.0.5:8080 masquerade kept"), contivService(2), contivService(1<<63, "[fd00:1::2]:53"),
		sticky, frontend("10.96.0.1:53", udp, reject, masqueraded), frontend("10.96.0.1:0", whole, reject, reject), guarded,
		&vpp_contiv.RangeSet{Id: 5, Prefixes: []string{"10.0.0.0/8", "fd00::/8"}},
		&vpp_contiv.RangeSet{Id: 6},
	}, policyFirst())
	second = all(interfaces, network4and6(vpp_contiv.Network_NODE, "10.1.0.0/16", "192.0.2.0/24"), values{
		&vpp_contiv.Config{TunnelPorts: []uint32{4790}, TcpEstablished: 7000, TcpTransitory: 8, UdpStream: 9, Icmp: 10, Sctp: 11},
		unlike, egress,
		&vpp_contiv.SourceNAT{Id: 1, Name: "elsewhere", Ipv6Address: "fd00:2::3", PortHigh: 40000},
		contivService(1, "10.1.0.3:8080 kept", "10.1.0.4:8081", "10.1.0.5:8080 masquerade"), func() *vpp_contiv.Service {
			s := contivService(2, "10.1.0.9:1")
			s.Name, s.Maglev = long, true
			return s
		}(),
		frontend("10.96.0.1:80", tcp, drop, balance(2)), frontend("10.96.0.1:53", udp, keeps, keeps), frontend("10.96.0.1:0", whole, drop, reject),
		&vpp_contiv.RangeSet{Id: 5, Prefixes: []string{"10.0.0.0/9", "fd00::/8"}},
		&vpp_contiv.RangeSet{Id: 6, Prefixes: []string{"0.0.0.0/0"}},
	}, policySecond())
	return first, second
}

func upAfter(endpoint string) func(*vpp_interfaces.Interface) {
	return func(v *vpp_interfaces.Interface) { v.UpAfter = []string{nb.ContivEndpointKey(endpoint)} }
}

func TestContivPlugin(t *testing.T) {
	onVPP(t, vpptest.Options{Plugin: true}, func(t *testing.T, g *target) {
		first, second := contivVersions()
		roundTrip(t, g, Deps{}, first, second, first)
	})
}

// Adding a backend is one message, and so is removing one, adding a frontend, and adding a range.
func TestContivChange(t *testing.T) {
	onVPP(t, vpptest.Options{Plugin: true}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		many := make([]string, 300)
		for i := range many {
			many[i] = fmt.Sprintf("10.1.%d.%d:8080", i/200, 1+i%200)
		}
		in := frontend("10.96.0.1:80", vpp_contiv.Frontend_TCP, balance(1), balance(1))
		a.resync(contivService(1, many...), in, &vpp_contiv.RangeSet{Id: 1, Prefixes: []string{"10.0.0.0/8"}})
		elsewhere := frontend("10.96.0.1:80", vpp_contiv.Frontend_TCP, balance(1), balance(2))
		for what, v := range map[string]values{
			"a backend more": {contivService(1, append(many, "10.1.9.9:8080")...)},
			"a target":       {elsewhere},
			"a range":        {&vpp_contiv.RangeSet{Id: 1, Prefixes: []string{"10.0.0.0/8", "11.0.0.0/8"}}},
		} {
			before := a.conn.Writes()
			a.commit(txn.Update, kvs(t, v)...)
			if n := a.conn.Writes() - before; n != 1 {
				t.Errorf("%s: %d messages", what, n)
			}
		}
	})
}

// The link of a pod waits for its endpoint, also if setting the endpoint fails, and goes down before the
// endpoint is deleted.
func TestLinkWaitsForEndpoint(t *testing.T) {
	f := vppfake.New(vppfake.Config{Seed: 1, Plugin: true})
	t.Cleanup(func() { f.Close() })
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := f.Listen(socket); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, &target{socket: socket, fake: f}, Deps{})
	pod := values{loop("pod", "02:00:00:00:01:02", upAfter("pod")), endpoint("pod", vpp_contiv.Endpoint_POD, "10.1.0.2")}
	isUp := func() bool { return strings.Contains(vppState(t, a), `tag "cv:pod" flags IF_STATUS_API_FLAG_ADMIN_UP`) }
	f.Faults.Add(vppfake.Fault{Message: "contiv_endpoint_set", Retval: -1, Times: 1})
	rec, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.Update, Values: kvs(t, pod), NoRetry: true})
	if err == nil || isUp() || len(rec.Pending) == 0 {
		t.Errorf("the endpoint is refused: error %v, up %t, pending %s", err, isUp(), rec.Pending)
	}
	a.resync(pod...)
	if !isUp() {
		t.Error("the link is not up in the end")
	}
	rec, err = a.s.Commit(t.Context(), &txn.Txn{Kind: txn.FullResync, Values: kvs(t, pod[:1]), NoRetry: true})
	if err != nil || isUp() || len(rec.Pending) != 1 {
		t.Errorf("without the endpoint: error %v, up %t, pending %s", err, isUp(), rec.Pending)
	}
}

func TestContivRefusals(t *testing.T) {
	invalid := validator(t)
	for what, v := range map[string]struct {
		err   error
		field string
	}{
		"five ports":      {invalid(&vpp_contiv.Config{TunnelPorts: []uint32{1, 2, 3, 4, 5}}), "tunnel_ports"},
		"no role":         {invalid(&vpp_contiv.Endpoint{Interface: "a"}), "role"},
		"33 addresses":    {invalid(endpoint("a", vpp_contiv.Endpoint_POD, make([]string, 33)...)), "has 33"},
		"no address":      {invalid(endpoint("a", vpp_contiv.Endpoint_POD, "10.1.0.2/32")), "addresses"},
		"no source":       {invalid(&vpp_contiv.SourceNAT{}), "ipv6_address"},
		"ports backwards": {invalid(&vpp_contiv.SourceNAT{Ipv4Address: "1.2.3.4", PortLow: 9, PortHigh: 8}), "port_high"},
		"large port":      {invalid(&vpp_contiv.SourceNAT{Ipv4Address: "1.2.3.4", PortHigh: 70000}), "32768 to 70000 is not a range of ports"},
		"service 0":       {invalid(contivService(0)), "id"},
		"two families":    {invalid(contivService(1, "10.1.0.2:80", "[fd00::1]:80")), "family"},
		"twice":           {invalid(contivService(1, "10.1.0.2:80", "10.1.0.2:80 masquerade")), "twice"},
		"a month":         {invalid(&vpp_contiv.Config{Udp: 31 * 86400}), "timeouts"},
		"whole to one":    {invalid(frontend("10.96.0.1:0", 0, balance(1), balance(1))), "BALANCE"},
		"any port":        {invalid(frontend("10.96.0.1:0", 6, balance(1), balance(1))), "port"},
		"no target":       {invalid(frontend("10.96.0.1:80", 6, balance(1), nil)), "outside"},
		"whole, kept":     {invalid(frontend("10.96.0.1:0", 0, keeping(1), keeping(1))), "a service needs one"},
		"no service":      {invalid(frontend("10.96.0.1:80", 6, balance(0), balance(1))), "in_cluster"},
	} {
		if v.err == nil || !strings.Contains(v.err.Error(), v.field) {
			t.Errorf("%s: %v", what, v.err)
		}
	}
}

// contivOn returns a node's objects of our own plugin, with a pod behind the interface.
func contivOn(pod string) values {
	return all(network4and6(vpp_contiv.Network_POD, "10.1.0.0/16", "fd00:1::/32"), values{
		&vpp_contiv.Config{TunnelPorts: []uint32{4789}},
		endpoint(pod, vpp_contiv.Endpoint_POD, "10.1.0.2", "fd00:1::2"), endpoint("nic", vpp_contiv.Endpoint_UPLINK),
		&vpp_contiv.SourceNAT{Name: "services", Ipv4Address: "192.168.16.1"},
		contivService(1, "10.1.0.2:8080", "10.1.0.3:8080"), frontend("10.96.0.7:80", vpp_contiv.Frontend_TCP, balance(1), balance(1)),
		&vpp_contiv.RangeSet{Id: 5, Prefixes: []string{"10.0.0.0/8"}},
		&vpp_contiv.IPSet{Id: 7, Name: "pods", Kind: vpp_contiv.IPSet_NETWORKS}, member(7, "10.1.0.3/32"),
		contivPolicy(8, "default/web", allowRule(7, 0)), endpointPolicy(pod, tier(vpp_contiv.Policy_DENY, 8)),
	})
}
