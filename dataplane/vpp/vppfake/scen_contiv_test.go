package vppfake_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/internal/lifecycle"
)

func contivScenarios() []scenario {
	return []scenario{
		{"contiv_config", contivConfig},
		{"contiv_endpoints", contivEndpoints},
		{"contiv_networks", contivNetworks},
		{"contiv_services", contivServices},
		{"contiv_frontends", contivFrontends},
		{"contiv_sets", contivSets},
		{"contiv_policies", contivPolicies},
	}
}

// plugin reports whether the scenario is for a VPP with our own plugin.
func (sc scenario) plugin() bool       { return strings.HasPrefix(sc.name, "contiv_") }
func (sc packetScenario) plugin() bool { return strings.HasPrefix(sc.name, "contiv_") }

func apiAddr(text string) ip_types.Address {
	a, err := ip_types.ParseAddress(text)
	if err != nil {
		panic(err)
	}
	return a
}

func prefix(text string) ip_types.Prefix {
	p, err := ip_types.ParsePrefix(text)
	if err != nil {
		panic(err)
	}
	return p
}

const (
	rolePod     = contiv.CONTIV_ROLE_API_POD
	roleHost    = contiv.CONTIV_ROLE_API_HOST
	roleUplink  = contiv.CONTIV_ROLE_API_UPLINK
	roleOverlay = contiv.CONTIV_ROLE_API_OVERLAY
)

func endpoint(i index, role contiv.ContivRole, addresses ...string) *contiv.ContivEndpointSet {
	q := &contiv.ContivEndpointSet{SwIfIndex: i, Role: role, Name: "default/pod"}
	for _, a := range addresses {
		q.Addresses = append(q.Addresses, apiAddr(a))
	}
	return q
}

func contivConfig(s *script) {
	s.do(&contiv.ContivPluginGetVersion{})
	s.do(&contiv.ContivConfigGet{})
	s.do(&contiv.ContivConfigSet{EndpointConnections: 7, TunnelPorts: []uint16{4789, 0, 8472, 0}, TCPEstablished: 1, TCPTransitory: 2,
		UDP: 3, UDPStream: 4, ICMP: 5, Sctp: 6})
	s.do(&contiv.ContivConfigGet{})
	s.note("what is refused changes nothing")
	s.do(&contiv.ContivConfigSet{TunnelPorts: make([]uint16, 4), UDP: 30*86400 + 1})
	s.do(&contiv.ContivConfigGet{})
	s.do(&contiv.ContivConfigSet{TunnelPorts: make([]uint16, 4), UDP: 30 * 86400})
	s.do(&contiv.ContivConfigGet{})
	s.do(&contiv.ContivStatsGet{})
}

func contivEndpoints(s *script) {
	i, j := s.loopUp(), s.loopUp()
	s.dump(&contiv.ContivEndpointDump{})
	s.do(endpoint(i, rolePod, "10.1.0.2", "fd00::2"))
	s.do(endpoint(i, rolePod, "10.1.0.2", "fd00::2"))
	s.do(endpoint(j, roleUplink))
	s.dump(&contiv.ContivEndpointDump{})
	s.note("another role, another limit")
	changed := endpoint(i, roleHost)
	changed.Name, changed.MaxConnections, changed.Egress = strings.Repeat("x", 63), 9, 1023
	s.do(changed)
	s.do(endpoint(j, roleOverlay))
	s.dump(&contiv.ContivEndpointDump{})
	s.note("what is refused")
	s.do(endpoint(99, rolePod))
	s.do(endpoint(i, 0))
	s.do(endpoint(i, 5))
	s.do(endpoint(i, rolePod, "0.0.0.0"))
	s.do(endpoint(i, rolePod, "::"))
	var many []string
	for n := range 33 {
		many = append(many, fmt.Sprintf("10.1.0.%d", n+1))
	}
	s.do(endpoint(i, rolePod, many...))
	far := endpoint(i, rolePod)
	far.Egress = 1024
	s.do(far)
	s.do(&contiv.ContivEndpointDel{SwIfIndex: 99})
	s.dump(&contiv.ContivEndpointDump{})
	s.note("a table of answers, which stays as long as it is the endpoint's")
	answers := endpoint(i, roleHost)
	answers.Table = 7
	s.do(answers)
	s.table(7, false)
	s.do(answers)
	s.table(7, true)
	s.do(answers)
	s.do(&contiv.ContivEndpointSet{SwIfIndex: i, Role: rolePod, Table: 7})
	s.dump(&contiv.ContivEndpointDump{})
	s.do(&ip.IPTableAddDel{Table: ip.IPTable{TableID: 7}})
	s.dump(&ip.IPTableDump{})
	s.do(endpoint(i, roleHost))
	s.dump(&ip.IPTableDump{})
	s.table(7, false)
	s.do(answers)
	s.note("gone")
	s.do(&contiv.ContivEndpointDel{SwIfIndex: i})
	s.do(&contiv.ContivEndpointDel{SwIfIndex: i})
	s.dump(&contiv.ContivEndpointDump{})
	s.do(&ip.IPTableAddDel{Table: ip.IPTable{TableID: 7}})
	s.dump(&ip.IPTableDump{})
	s.note("with its interface; the next one with that number has none")
	s.do(&interfaces.DeleteLoopback{SwIfIndex: j})
	s.dump(&contiv.ContivEndpointDump{})
	s.loopUp()
	s.dump(&contiv.ContivEndpointDump{})
}

func contivNetworks(s *script) {
	network := func(add bool, p string, class contiv.ContivClass) {
		s.do(&contiv.ContivNetworkAddDel{IsAdd: add, Prefix: prefix(p), AddressClass: class})
	}
	network(true, "10.1.0.0/16", contiv.CONTIV_CLASS_API_POD)
	network(true, "10.1.0.0/16", contiv.CONTIV_CLASS_API_NODE)
	network(true, "fd00::/16", contiv.CONTIV_CLASS_API_POD)
	network(true, "0.0.0.0/0", contiv.CONTIV_CLASS_API_NODE)
	s.dump(&contiv.ContivNetworkDump{})
	s.note("what is refused")
	network(true, "10.1.0.1/16", contiv.CONTIV_CLASS_API_POD)
	network(true, "10.2.0.0/16", 0)
	network(true, "10.2.0.0/16", 3)
	network(false, "10.2.0.0/16", 0)
	s.do(&contiv.ContivNetworkAddDel{IsAdd: true, Prefix: ip_types.Prefix{Address: apiAddr("10.0.0.0"), Len: 33}, AddressClass: 1})
	network(false, "10.1.0.0/16", 0)
	s.dump(&contiv.ContivNetworkDump{})
	s.note("source NAT")
	snat := func(add bool, id uint32, ip4, ip6 string, low, high uint16) {
		q := &contiv.ContivSnatAddDel{IsAdd: add, ID: id, Name: "node", PortLow: low, PortHigh: high}
		if ip4 != "" {
			q.IP4 = addr4(ip4)
		}
		if ip6 != "" {
			q.IP6 = netip.MustParseAddr(ip6).As16()
		}
		s.do(q)
	}
	snat(true, 0, "192.0.2.1", "fd00::1", 0, 0)
	snat(true, 1023, "192.0.2.2", "", 1024, 1024)
	snat(true, 0, "192.0.2.3", "", 5, 0)
	snat(true, 1024, "192.0.2.1", "", 0, 0)
	snat(true, 1, "192.0.2.1", "", 7, 6)
	snat(false, 1, "", "", 0, 0)
	s.dump(&contiv.ContivSnatDump{})
	snat(false, 0, "", "", 0, 0)
	s.dump(&contiv.ContivSnatDump{})
}

func (s *script) service(add bool, id uint64, flags contiv.ContivServiceFlags) {
	s.do(&contiv.ContivServiceAddDel{IsAdd: add, ID: id, Name: "default/web", Flags: flags})
}

func (s *script) backend(add bool, service uint64, at string, flags contiv.ContivBackendFlags) {
	end := netip.MustParseAddrPort(at)
	s.do(&contiv.ContivBackendAddDel{IsAdd: add, ServiceID: service, Address: apiAddr(end.Addr().String()), Port: end.Port(), Flags: flags})
}

func contivServices(s *script) {
	s.backend(true, 1, "10.1.0.2:8080", 0)
	s.service(true, 1, 0)
	s.service(true, 1, 0)
	s.service(true, 1<<63, contiv.CONTIV_SERVICE_API_MAGLEV)
	for _, at := range []string{"10.1.0.3:8080", "10.1.0.2:8080", "10.1.0.2:8081", "10.1.0.2:8080"} {
		s.backend(true, 1, at, 0)
	}
	s.backend(true, 1, "10.1.0.2:8081", contiv.CONTIV_BACKEND_API_MASQ)
	s.backend(true, 1<<63, "[fd00::2]:53", 0)
	s.dump(&contiv.ContivServiceDump{})
	s.dump(&contiv.ContivBackendDump{})
	s.dump(&contiv.ContivBackendDump{ServiceID: 1 << 63})
	s.dump(&contiv.ContivBackendDump{ServiceID: 5})
	s.note("what is refused")
	s.service(true, 0, 0)
	s.service(true, 2, 2)
	s.service(false, 2, 0)
	s.backend(true, 1, "0.0.0.0:80", 0)
	s.backend(true, 1, "10.1.0.9:0", 0)
	s.backend(true, 1, "10.1.0.9:80", 4)
	s.backend(false, 1, "10.1.0.9:80", 0)
	s.backend(false, 2, "10.1.0.9:80", 0)
	s.note("ranges")
	for _, r := range []struct {
		add    bool
		id     uint64
		prefix string
	}{
		{true, 1, "10.0.0.0/8"}, {true, 1, "10.0.0.0/8"}, {true, 1, "fd00::/8"}, {true, 0, "10.0.0.0/8"}, {true, 2, "10.0.0.1/8"},
		{false, 1, "11.0.0.0/8"}, {false, 3, "10.0.0.0/8"}, {false, 1, "fd00::/8"}, {true, 1 << 63, "0.0.0.0/0"},
	} {
		s.do(&contiv.ContivRangeAddDel{IsAdd: r.add, ID: r.id, Prefix: prefix(r.prefix)})
	}
	s.dump(&contiv.ContivRangeDump{})
}

// place returns a frontend without targets.
func place(at string, proto uint8) *contiv.ContivFrontendAddDel {
	end := netip.MustParseAddrPort(at)
	return &contiv.ContivFrontendAddDel{
		IsAdd: true, Address: apiAddr(end.Addr().String()), Port: end.Port(), Protocol: proto, Name: "default/web:http",
	}
}

func to(service uint64) contiv.ContivTarget {
	return contiv.ContivTarget{Action: contiv.CONTIV_ACTION_API_BALANCE, ServiceID: service}
}

func rejected() contiv.ContivTarget {
	return contiv.ContivTarget{Action: contiv.CONTIV_ACTION_API_REJECT}
}
func dropped() contiv.ContivTarget { return contiv.ContivTarget{Action: contiv.CONTIV_ACTION_API_DROP} }

func contivFrontends(s *script) {
	front := func(at string, proto uint8, in, out contiv.ContivTarget, change ...func(*contiv.ContivFrontendAddDel)) {
		q := place(at, proto)
		q.InCluster, q.Outside = in, out
		for _, c := range change {
			c(q)
		}
		s.do(q)
	}
	sticky := func(group uint64, timeout uint32) func(*contiv.ContivFrontendAddDel) {
		return func(q *contiv.ContivFrontendAddDel) { q.AffinityGroup, q.AffinityTimeout = group, timeout }
	}
	masq := to(2)
	masq.Flags = contiv.CONTIV_TARGET_API_MASQ
	front("10.96.0.1:80", 6, to(1), to(1))
	front("10.96.0.1:80", 6, to(1), masq, sticky(1<<63, 86400))
	front("10.96.0.1:80", 17, rejected(), dropped(), func(q *contiv.ContivFrontendAddDel) { q.Ranges = 1 << 63 })
	front("[fd00:96::1]:80", 132, to(9), rejected())
	front("10.96.0.1:0", 0, rejected(), dropped())
	s.dump(&contiv.ContivFrontendDump{})
	s.note("what is refused")
	front("10.96.0.2:80", 6, to(0), to(1))
	front("10.96.0.2:80", 6, to(1), contiv.ContivTarget{})
	front("10.96.0.2:80", 6, to(1), contiv.ContivTarget{Action: 4})
	front("10.96.0.2:0", 0, dropped(), contiv.ContivTarget{Action: contiv.CONTIV_ACTION_API_DROP, ServiceID: 1})
	front("10.96.0.2:80", 6, to(1), contiv.ContivTarget{Action: contiv.CONTIV_ACTION_API_BALANCE, ServiceID: 1, Flags: 2})
	front("10.96.0.2:80", 0, to(1), to(1))
	front("10.96.0.2:80", 1, to(1), to(1))
	front("10.96.0.2:0", 6, rejected(), rejected())
	front("10.96.0.2:0", 0, to(1), rejected())
	front("0.0.0.0:80", 6, to(1), to(1))
	front("10.96.0.2:80", 6, to(1), to(1), sticky(1, 0))
	front("10.96.0.2:80", 6, to(1), to(1), sticky(0, 1))
	front("10.96.0.2:80", 6, to(1), to(1), sticky(1, 86401))
	del := place("10.96.0.1:80", 6)
	del.IsAdd = false
	s.do(del)
	s.do(del)
	s.dump(&contiv.ContivFrontendDump{})
}

// collectOwn is like collect for messages that are not in govpp's own packages, which its streams do not mix with control_ping.
func (s *script) collectOwn(req api.Message) []api.Message {
	s.t.Helper()
	if s.lane == nil {
		log := slog.New(slog.DiscardHandler)
		jobs := lifecycle.NewGroup(context.Background(), log)
		c := conn.New(conn.Config{Socket: s.socket}, log)
		c.Start(jobs)
		s.t.Cleanup(func() {
			c.Close()
			if err := jobs.Stop(time.Minute); err != nil {
				s.t.Error(err)
			}
		})
		for end := time.Now().Add(20 * time.Second); !c.State().Connected(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				s.t.Fatal(c.State().Err)
			}
		}
		s.lane = c.Lane()
	}
	var details []api.Message
	conn.Dump(s.lane, req, func(d api.Message) { details = append(details, d) }, func(err error) {
		if err != nil {
			s.t.Errorf("%s: %v", text(req), err)
		}
	})
	s.lane.Flush(s.t.Context())
	return details
}
