package vpp

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
	"contiv.dev/vswitch/dataplane/vpp/nat44"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// natLines adds the state of NAT to vppState.
func natLines(lane *conn.Lane, add func(string, ...any), end func(error)) {
	conn.Call(lane, &nat44_ed.Nat44ShowRunningConfig{}, func(r *nat44_ed.Nat44ShowRunningConfigReply, err error) {
		end(err)
		if r.Sessions != 0 {
			add("nat %v", *r)
		}
	})
	conn.Dump(lane, &nat44_ed.Nat44InterfaceDump{}, func(d *nat44_ed.Nat44InterfaceDetails) { add("nat interface %v", *d) }, end)
	conn.Dump(lane, &nat44_ed.Nat44EdOutputInterfaceGet{},
		func(d *nat44_ed.Nat44EdOutputInterfaceDetails) { add("nat output %v", *d) }, end)
	conn.Dump(lane, &nat44_ed.Nat44AddressDump{}, func(d *nat44_ed.Nat44AddressDetails) { add("nat address %v", *d) }, end)
	conn.Dump(lane, &nat44_ed.Nat44StaticMappingDump{},
		func(d *nat44_ed.Nat44StaticMappingDetails) { add("nat static %v", *d) }, end)
	conn.Dump(lane, &nat44_ed.Nat44LbStaticMappingDump{},
		func(d *nat44_ed.Nat44LbStaticMappingDetails) { add("nat lb %v", *d) }, end)
	conn.Dump(lane, &nat44_ed.Nat44IdentityMappingDump{},
		func(d *nat44_ed.Nat44IdentityMappingDetails) { add("nat identity %v", *d) }, end)
	conn.Dump(lane, &dhcp.DHCPClientDump{}, func(d *dhcp.DHCPClientDetails) { add("dhcp %d", d.Client.SwIfIndex) }, end)
}

type (
	statMapping = vpp_nat.DNat44_StaticMapping
	idMapping   = vpp_nat.DNat44_IdentityMapping
)

func natOn() values { return values{&vpp_nat.Nat44Global{Forwarding: true}} }

func dnat(label string, mappings ...proto.Message) *vpp_nat.DNat44 {
	v := &vpp_nat.DNat44{Label: label}
	for _, m := range mappings {
		switch m := m.(type) {
		case *statMapping:
			v.StMappings = append(v.StMappings, m)
		case *idMapping:
			v.IdMappings = append(v.IdMappings, m)
		}
	}
	return v
}

// port returns a mapping of ext, "10.96.0.1:80/tcp", to backends: "10.1.1.2:8080", "…*3" with a weight, "…@1" in table 1.
func port(ext string, backends ...string) *statMapping {
	at, proto, _ := strings.Cut(ext, "/")
	a := netip.MustParseAddrPort(at)
	m := &statMapping{ExternalIp: a.Addr().String(), ExternalPort: uint32(a.Port())}
	if proto == "udp" {
		m.Protocol = vpp_nat.DNat44_UDP
	}
	for _, b := range backends {
		l := &vpp_nat.DNat44_StaticMapping_LocalIP{Probability: 1}
		if at, vrf, ok := strings.Cut(b, "@"); ok {
			b = at
			fmt.Sscan(vrf, &l.VrfId)
		}
		if at, weight, ok := strings.Cut(b, "*"); ok {
			b = at
			fmt.Sscan(weight, &l.Probability)
		}
		to := netip.MustParseAddrPort(b)
		l.LocalIp, l.LocalPort = to.Addr().String(), uint32(to.Port())
		m.LocalIps = append(m.LocalIps, l)
	}
	return m
}

func with(m *statMapping, change func(*statMapping)) *statMapping {
	change(m)
	return m
}

func self(m *statMapping) { m.TwiceNat = vpp_nat.DNat44_StaticMapping_SELF }

func sticky(seconds uint32) func(*statMapping) {
	return func(m *statMapping) { m.SessionAffinity = seconds }
}

func TestNATGlobal(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		deps := Deps{NAT: nat44.Settings{Sessions: 5000, UDP: 30, ICMP: 10}}
		roundTrip(t, g, deps, values{&vpp_nat.Nat44Global{Forwarding: true}}, values{&vpp_nat.Nat44Global{}})
		a := newAgent(t, g, deps)
		a.resync(natOn()...)
		a.stop()
		deps.NAT.UDP = 31
		a = newAgent(t, g, deps)
		if n, rec := a.resync(natOn()...); n != 1 {
			t.Errorf("another timeout: %d writes\n%s", n, rec)
		}
		c := &nat44_ed.Nat44ShowRunningConfigReply{}
		a.invoke(&nat44_ed.Nat44ShowRunningConfig{}, c)
		if c.Sessions != 5000 || c.Timeouts.UDP != 31 || c.Timeouts.TCPEstablished != 7440 || c.Timeouts.ICMP != 10 {
			t.Errorf("%+v", c)
		}
		a.resync()
	})
}

func natIf(name string, in, out, output bool) *vpp_nat.Nat44Interface {
	return &vpp_nat.Nat44Interface{Name: name, NatInside: in, NatOutside: out, OutputFeature: output}
}

func TestNATInterfaces(t *testing.T) {
	base := all(natOn(), tables(1, "pod"), values{
		loop("a", "", withIP("10.1.0.1/24")), loop("b", "", inTable(1)), loop("c", ""), loop("d", "", withIP("10.4.0.1/24")),
	})
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(base, values{natIf("a", true, false, false), natIf("b", true, true, false), natIf("c", false, true, false),
				natIf("d", false, true, true)}),
			all(base, values{natIf("a", true, true, false), natIf("b", false, true, false), natIf("c", false, false, true),
				natIf("d", true, false, false)}),
			all(natOn(), values{ // one interface is deleted, one changes its table
				loop("a", "", withIP("10.1.0.1/24")), loop("b", ""),
				natIf("a", true, true, false), natIf("b", true, true, false),
			}),
			all(natOn(), values{loop("a", "", withIP("10.1.0.1/24"))}),
		)
	})
}

// An interface that VPP itself has as inside and outside is accepted, and can be disabled.
func TestNATInterfaceOfOthers(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		a.resync()
		before := vppState(t, a)
		config := all(natOn(), values{loop("a", "")})
		a.resync(config...)
		index, _ := a.idx.IfIndex("a")
		for _, flags := range []uint8{0, 32} {
			a.invoke(&nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: true, SwIfIndex: interface_types.InterfaceIndex(index),
				Flags: nat_types.NatConfigFlags(flags)}, &nat44_ed.Nat44InterfaceAddDelFeatureReply{})
		}
		a.mustNotWrite("as wanted", all(config, values{natIf("a", true, true, false)}))
		a.resync()
		if after := vppState(t, a); after != before {
			t.Errorf("VPP is not as before:\n%s", diffText(before, after))
		}
	})
}

func TestNATPools(t *testing.T) {
	base := all(natOn(), tables(1, "pod"))
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(base, values{
				&vpp_nat.Nat44AddressPool{VrfId: kit.None, FirstIp: "10.9.0.1", LastIp: "10.9.0.9"},
				&vpp_nat.Nat44AddressPool{Name: "twice", VrfId: kit.None, FirstIp: "10.9.0.1", TwiceNat: true},
				&vpp_nat.Nat44AddressPool{Name: "pod", VrfId: 1, FirstIp: "10.9.1.1"},
			}),
			all(base, values{
				&vpp_nat.Nat44AddressPool{VrfId: kit.None, FirstIp: "10.9.0.1", LastIp: "10.9.0.4"},
				&vpp_nat.Nat44AddressPool{Name: "twice", VrfId: 1, FirstIp: "10.9.0.1", LastIp: "10.9.0.2", TwiceNat: true},
				&vpp_nat.Nat44AddressPool{Name: "moved", FirstIp: "10.9.1.1"},
			}),
			natOn(),
		)
	})
}

func TestNATMappings(t *testing.T) {
	long := strings.Repeat("a-long-namespace/", 4) + "service"
	base := all(natOn(), values{loop("nic", "", withIP("10.9.0.1/24", "10.9.1.1/24")), loop("bare", "")})
	ofIf := func(name string, change ...func(*statMapping)) *statMapping {
		m := port("0.0.0.0:80/tcp", "10.1.1.2:8080")
		m.ExternalInterface, m.ExternalIp = name, ""
		for _, c := range change {
			c(m)
		}
		return m
	}
	address := func(ext, local string) *statMapping {
		return &statMapping{ExternalIp: ext, LocalIps: []*vpp_nat.DNat44_StaticMapping_LocalIP{{LocalIp: local}}}
	}
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(base, values{
				dnat("default/web", with(port("10.96.0.1:80/tcp", "10.1.1.2:8080", "10.1.1.3:8080*3"), self),
					port("10.96.0.1:80/udp", "10.1.1.2:53")),
				dnat("default/one", port("10.96.0.2:80/tcp", "10.1.1.2:8080"), port("10.96.0.2:81/tcp", "10.1.1.2:8080")),
				dnat(long, with(port("10.96.0.3:80/udp", "10.1.1.2:8080", "10.1.1.3:8080"), sticky(300)),
					with(port("10.96.0.3:80/tcp", "10.1.1.2:8080"), sticky(10800))),
				dnat("@odd@label", port("10.96.0.4:80/tcp", "10.1.1.2:8080")),
				dnat("plain", address("10.96.0.5", "10.1.1.5"), ofIf("nic", self), ofIf("bare"),
					with(port("10.96.0.6:80/tcp", "10.1.1.2:8080"), func(m *statMapping) {
						m.TwiceNat, m.TwiceNatPoolIp = vpp_nat.DNat44_StaticMapping_ENABLED, "10.8.0.1"
					})),
				dnat("ids", &idMapping{IpAddress: "10.9.0.1"}, &idMapping{IpAddress: "10.9.0.7", Port: 4789, Protocol: vpp_nat.DNat44_UDP},
					&idMapping{Interface: "nic", Port: 53, Protocol: vpp_nat.DNat44_UDP}, &idMapping{Interface: "bare"}),
			}),
			all(base, values{
				dnat("default/web", with(port("10.96.0.1:80/tcp", "10.1.1.3:8080*3"), self),
					port("10.96.0.1:80/udp", "10.1.1.4:53", "10.1.1.2:53")),
				dnat("other/name", port("10.96.0.2:80/tcp", "10.1.1.2:8080", "10.1.1.9:8080")), // another label
				dnat("default/one", port("10.96.0.2:81/tcp", "10.1.1.7:8080")),
				dnat(long, with(port("10.96.0.3:80/udp", "10.1.1.3:8080", "10.1.1.4:8080"), sticky(300)),
					port("10.96.0.3:80/tcp", "10.1.1.2:8080")),
				dnat("@odd@label", with(port("10.96.0.4:80/tcp", "10.1.1.2:8080"), sticky(5))),
				dnat("plain", address("10.96.0.5", "10.1.1.6"), ofIf("bare", self), port("10.96.0.6:80/tcp", "10.1.1.2:8080"),
					with(ofIf("nic"), func(m *statMapping) { m.ExternalPort = 81 })),
				dnat("ids", &idMapping{IpAddress: "10.9.0.7", Port: 4789, Protocol: vpp_nat.DNat44_TCP}, &idMapping{Interface: "nic"}),
			}),
			all(natOn(), values{dnat("default/web", port("10.96.0.1:80/udp", "10.1.1.4:53*100", "10.1.1.2:53*300"))}),
			all(natOn(), values{dnat("default/web", port("10.96.0.1:80/udp", "10.1.1.4:53*0", "10.1.1.2:53*300"))}),
		)
	})
}

// A check of single values finds the changes that another program has made to them.
func TestNATCheck(t *testing.T) {
	config := all(natOn(), tables(1, "pod"), values{
		loop("nic", "", withIP("10.9.0.1/24")), loop("pod", "", inTable(1)),
		natIf("nic", false, false, true), natIf("pod", true, true, false),
		&vpp_nat.Nat44AddressPool{FirstIp: "10.8.0.1", LastIp: "10.8.0.2", VrfId: kit.None},
		dnat("s", with(port("10.96.0.1:80/udp", "10.1.1.2:53@1", "10.1.1.3:53@1"), sticky(60)),
			with(port("0.0.0.0:80/tcp", "10.1.1.2:8080"), func(m *statMapping) { m.ExternalInterface, m.ExternalIp = "nic", "" })),
		dnat("ids", &idMapping{Interface: "nic", VrfId: 0}, &idMapping{IpAddress: "10.9.0.1", VrfId: 1}),
	})
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		a.resync(config...)
		if d := due(t, a, config); d != "" {
			t.Errorf("all is well, and due is\n%s", d)
		}
		pod, _ := a.idx.IfIndex("pod")
		a.invoke(&nat44_ed.Nat44InterfaceAddDelFeature{SwIfIndex: interface_types.InterfaceIndex(pod), Flags: 32},
			&nat44_ed.Nat44InterfaceAddDelFeatureReply{})
		a.invoke(&nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: [4]byte{10, 8, 0, 2}, LastIPAddress: [4]byte{10, 8, 0, 2},
			VrfID: kit.None}, &nat44_ed.Nat44AddDelAddressRangeReply{})
		a.invoke(&nat44_ed.Nat44AddDelLbStaticMapping{ExternalAddr: [4]byte{10, 96, 0, 1}, ExternalPort: 80, Protocol: 17,
			Flags: nat_types.NAT_IS_OUT2IN_ONLY}, &nat44_ed.Nat44AddDelLbStaticMappingReply{})
		want := []string{nb.Nat44InterfaceKey("pod"), "10.8.0.2", "10.96.0.1"}
		got := strings.Split(due(t, a, config), "\n")
		if len(got) != len(want) {
			t.Errorf("due is %q, want %q", got, want)
		}
		for _, w := range want {
			if !slices.ContainsFunc(got, func(l string) bool { return strings.Contains(l, w) }) {
				t.Errorf("due is %q without %s", got, w)
			}
		}
		a.resync(config...)
		if d := due(t, a, config); d != "" {
			t.Errorf("after a resync due is\n%s", d)
		}
		a.resync()
	})
}

// Backends in other tables. Mappings that keep their sessions would leave references to these tables behind; those with
// affinity do not.
func TestNATTables(t *testing.T) {
	base := all(natOn(), tables(1, "pod"), tables(2, "other"))
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(base, values{dnat("s", with(port("10.96.0.1:80/udp", "10.1.1.2:53@1", "10.1.1.2:53@2", "10.1.1.2:53"), sticky(60))),
				dnat("ids", &idMapping{IpAddress: "10.9.0.1", VrfId: 1}, &idMapping{IpAddress: "10.9.0.1", VrfId: 2},
					&idMapping{IpAddress: "10.9.0.1"})}),
			all(base, values{dnat("other", with(port("10.96.0.2:80/udp", "10.1.1.2:53@2"), sticky(60))),
				dnat("ids", &idMapping{IpAddress: "10.9.0.1", VrfId: 1})}),
		)
	})
}

func TestNATValidation(t *testing.T) {
	invalid := validator(t)
	web := func() *statMapping { return port("10.96.0.1:80/tcp", "10.1.1.2:8080", "10.1.1.3:8080") }
	var many []string
	for i := range 256 {
		many = append(many, fmt.Sprintf("10.1.2.%d:80", i))
	}
	for field, m := range map[string]*statMapping{
		"":                                  web(),
		"st_mappings[0].local_ips: ":        port("10.96.0.1:80/tcp"),
		"st_mappings[0].local_ips: has 256": port("10.96.0.1:80/tcp", many...),
		"external_ip: \"nothing\"":          with(web(), func(m *statMapping) { m.ExternalIp = "nothing" }),
		"external_ip: \"fd00::1\"":          with(web(), func(m *statMapping) { m.ExternalIp = "fd00::1" }),
		"external_ip: is set":               with(web(), func(m *statMapping) { m.ExternalInterface = "nic" }),
		"local_ips: has 2":                  with(web(), func(m *statMapping) { m.ExternalInterface, m.ExternalIp = "nic", "" }),
		"external_port: 70000":              with(web(), func(m *statMapping) { m.ExternalPort = 70000 }),
		"local_ips[1].local_port: 0":        with(web(), func(m *statMapping) { m.LocalIps[1].LocalPort = 0 }),
		"local_ips[1].local_ip: 10.1.1.2":   port("10.96.0.1:80/tcp", "10.1.1.2:8080", "10.1.1.2:8080"),
		"protocol: ICMP":                    with(web(), func(m *statMapping) { m.Protocol = vpp_nat.DNat44_ICMP }),
		"protocol: 7":                       with(web(), func(m *statMapping) { m.Protocol = 7 }),
		"twice_nat: 9":                      with(web(), func(m *statMapping) { m.TwiceNat = 9 }),
		"twice_nat_pool_ip: is set": with(port("10.96.0.1:80/tcp", "10.1.1.2:80"),
			func(m *statMapping) { m.TwiceNatPoolIp = "10.1.1.1" }),
		"session_affinity": with(port("10.96.0.1:80/tcp", "10.1.1.2:80"),
			func(m *statMapping) { m.ExternalPort, m.LocalIps[0].LocalPort, m.SessionAffinity = 0, 0, 1 }),
	} {
		err := invalid(dnat("label", m))
		if (err == nil) != (field == "") || err != nil && !strings.Contains(err.Error(), field) {
			t.Errorf("%q: %v", field, err)
		}
	}
	if err := invalid(dnat("", web())); err == nil {
		t.Error("no label")
	}
	if err := invalid(dnat("twice", web(), web())); err == nil {
		t.Error("one mapping twice")
	}
	for _, id := range []*idMapping{{}, {IpAddress: "fd00::1"}, {IpAddress: "10.0.0.1", Interface: "a"},
		{IpAddress: "10.0.0.1", Port: 5, Protocol: 2},
		{IpAddress: "10.0.0.1", VrfId: kit.None}} {
		if err := invalid(dnat("ids", id)); err == nil {
			t.Errorf("%v", id)
		}
	}
	for _, p := range []*vpp_nat.Nat44AddressPool{{FirstIp: "x"}, {FirstIp: "fd00::1"},
		{FirstIp: "10.0.0.2", LastIp: "10.0.0.1"}, {FirstIp: "10.0.0.0", LastIp: "10.1.0.0"}} {
		if err := invalid(p); err == nil {
			t.Errorf("%v", p)
		}
	}
	for _, v := range []*vpp_nat.Nat44Global{{EndpointIndependent: true}, {NatInterfaces: []*vpp_nat.Nat44Global_Interface{{}}},
		{AddressPool: []*vpp_nat.Nat44Global_Address{{}}}, {VirtualReassembly: &vpp_nat.VirtualReassembly{}}} {
		if err := invalid(v); err == nil {
			t.Errorf("%v", v)
		}
	}
}

// NAT stays enabled while another program has balanced mappings: VPP would lose its default table.
func TestNATStaysOn(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		a.resync(natOn()...)
		foreign := &nat44_ed.Nat44AddDelLbStaticMapping{IsAdd: true, Flags: 4, ExternalAddr: [4]byte{10, 96, 0, 1},
			ExternalPort: 80, Protocol: 6,
			Locals: []nat44_ed.Nat44LbAddrPort{{Addr: [4]byte{10, 1, 1, 2}, Port: 1, Probability: 1},
				{Addr: [4]byte{10, 1, 1, 3}, Port: 1, Probability: 1}}}
		a.invoke(foreign, &nat44_ed.Nat44AddDelLbStaticMappingReply{})
		_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.FullResync, NoRetry: true})
		if err == nil || !strings.Contains(err.Error(), "static mappings with several backends") {
			t.Errorf("%v", err)
		}
		foreign.IsAdd = false
		a.invoke(foreign, &nat44_ed.Nat44AddDelLbStaticMappingReply{})
		a.resync()
	})
}

// A mapping that another program already has is reported as an error, and is not changed.
func TestNATConflict(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		a.resync(natOn()...)
		foreign := &nat44_ed.Nat44AddDelLbStaticMapping{IsAdd: true, Flags: 4, ExternalAddr: [4]byte{10, 96, 0, 1},
			ExternalPort: 80, Protocol: 6,
			Tag: "theirs", Locals: []nat44_ed.Nat44LbAddrPort{{Addr: [4]byte{10, 1, 1, 2}, Port: 1, Probability: 1},
				{Addr: [4]byte{10, 1, 1, 3}, Port: 1, Probability: 1}}}
		a.invoke(foreign, &nat44_ed.Nat44AddDelLbStaticMappingReply{})
		_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.Update, NoRetry: true,
			Values: kvs(t, values{dnat("s", port("10.96.0.1:80/tcp", "10.1.1.9:80"))})})
		if err == nil || !strings.Contains(err.Error(), "10.96.0.1 port 80") {
			t.Errorf("%v", err)
		}
		a.resync(natOn()...)
		if s := vppState(t, a); !strings.Contains(s, "theirs") {
			t.Errorf("it is gone:\n%s", s)
		}
		foreign.IsAdd = false
		a.invoke(foreign, &nat44_ed.Nat44AddDelLbStaticMappingReply{})
	})
}

// The number of requests of a change depends on the size of the change only.
func TestNATCosts(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		backends := func(n int) (list []string) {
			for i := range n {
				list = append(list, fmt.Sprintf("10.1.1.%d:80", i+1))
			}
			return list
		}
		services := func(proto string, n int) values {
			v := natOn()
			for s := range 20 {
				m := 30
				if s == 7 {
					m = n
				}
				v = append(v, dnat(fmt.Sprintf("s%d", s), port(fmt.Sprintf("10.96.0.%d:80/%s", s, proto), backends(m)...)))
			}
			return v
		}
		for _, c := range []struct {
			proto    string
			from, to int
			writes   uint64
		}{
			{"tcp", 30, 31, 1}, {"tcp", 31, 30, 2}, {"udp", 30, 32, 2}, {"udp", 32, 30, 2}, {"tcp", 1, 2, 2}, {"udp", 2, 1, 2},
			{"tcp", 30, 30, 0}, {"tcp", 254, 255, 1},
		} {
			a.resync(services(c.proto, c.from)...)
			before := a.conn.Writes()
			a.commit(txn.Update, kvs(t, services(c.proto, c.to))...)
			if n := a.conn.Writes() - before; n != c.writes {
				t.Errorf("%s: from %d to %d backends of 20 services: %d writes, want %d", c.proto, c.from, c.to, n, c.writes)
			}
			a.mustNotWrite("resync", services(c.proto, c.to))
		}
	})
}

// Whatever the order of changes, VPP ends in the same state as after one resync: random backends, weights and affinity of a
// few mappings.
func TestNATRandomChanges(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) { natRandomChanges(t, g, Deps{}) })
	t.Run("worker", func(t *testing.T) {
		onVPP(t, vpptest.Options{Workers: 1}, func(t *testing.T, g *target) { natRandomChanges(t, g, Deps{NAT: clusterIPs}) })
	})
}

func natRandomChanges(t *testing.T, g *target, deps Deps) {
	a := newAgent(t, g, deps)
	seed := uint32(1)
	random := func(n int) int {
		seed = 1664525*seed + 1013904223
		return int(seed>>8) % n
	}
	desired := func() values {
		v := natOn()
		for s := range 6 {
			var list []string
			for b := range 8 {
				if random(3) > 0 {
					list = append(list, fmt.Sprintf("10.1.1.%d:80*%d", b+1, []int{0, 1, 1, 1, 7, 400}[random(6)]))
				}
			}
			if len(list) == 0 {
				continue
			}
			m := port(fmt.Sprintf("10.96.0.%d:80/%s", s, []string{"tcp", "udp"}[s%2]), list...)
			if random(4) == 0 {
				m.SessionAffinity = 30
			}
			if random(4) == 0 {
				self(m)
			}
			v = append(v, dnat(fmt.Sprintf("s%d", random(3)*10+s), m))
		}
		return v
	}
	last := natOn()
	a.resync(last...)
	for range 40 {
		next := desired()
		a.commit(txn.Update, updates(t, [][]proto.Message{last, next}, 1)...)
		a.mustNotWrite("after a change", next)
		last = next
	}
	a.stop()
	a = newAgent(t, g, deps)
	a.mustNotWrite("restarted agent", last)
	a.resync()
}

var podMAC = vppfake.MAC{2, 0, 0, 0, 2, 1} // VPP's, on all pods' interfaces

// natWorld returns the fake with a client behind pod 1, and backends behind pods 2 to 9, in the main table.
func natWorld(t *testing.T) (*vppfake.Fake, *agent, values) {
	t.Helper()
	return natWorldWith(t, vppfake.Config{Seed: 1}, Deps{})
}

func natWorldWith(t *testing.T, config vppfake.Config, deps Deps) (*vppfake.Fake, *agent, values) {
	t.Helper()
	return natWorldBy(t, config, func(*conn.Conn) Deps { return deps })
}

// natWorldBy is natWorldWith for dependencies that need the connection.
func natWorldBy(t *testing.T, config vppfake.Config, deps func(*conn.Conn) Deps) (*vppfake.Fake, *agent, values) {
	t.Helper()
	f := vppfake.New(config)
	t.Cleanup(func() { f.Close() })
	g := &target{socket: t.TempDir() + "/api.sock", fake: f}
	if err := f.Listen(g.socket); err != nil {
		t.Fatal(err)
	}
	a := newAgentWith(t, g, deps)
	base := all(natOn(), values{loop("gw", "", withIP("10.1.1.1/24"))}, values{
		&vpp_nat.Nat44AddressPool{Name: "twice", VrfId: kit.None, FirstIp: "192.0.2.254", TwiceNat: true}})
	for n := range 9 {
		name, ip := fmt.Sprintf("pod%d", n+1), fmt.Sprintf("10.1.1.%d", n+2)
		base = append(base, tap(name, unnumberedTo("gw"), withMAC("02:00:00:00:02:01")), natIf(name, true, true, false),
			&vpp_l3.ARPEntry{Interface: name, IpAddress: ip, PhysAddress: fmt.Sprintf("02:00:00:00:01:%02x", n), Static: true},
			&vpp_l3.Route{DstNetwork: ip + "/32", NextHopAddr: ip, OutgoingInterface: name})
	}
	return f, a, base
}

// connect sends one packet of a connection and returns the pod that receives it; 0: none.
func connect(t *testing.T, f *vppfake.Fake, p vppfake.Packet) int {
	t.Helper()
	r, err := f.Send("cv:pod1", p)
	if err != nil {
		t.Fatalf("%v\n%s", err, r)
	}
	d, ok := r.Delivered()
	if !ok {
		return 0
	}
	n := 0
	fmt.Sscanf(d.Tag, "cv:pod%d", &n)
	return n
}

func natPacket(proto uint8, sport uint16, flags uint8) vppfake.Packet {
	return vppfake.Packet{EthDst: podMAC, Src: netip.MustParseAddr("10.1.1.2"), Dst: netip.MustParseAddr("10.96.0.1"),
		Proto:   proto,
		SrcPort: sport, DstPort: 80, Flags: flags}
}

// Connections to a removed backend continue, and still reach it; new ones go to other backends. UDP packets go to other
// backends at once.
func TestNATSessionsOfRemovedBackends(t *testing.T) {
	for _, proto := range []string{"tcp", "udp"} {
		t.Run(proto, func(t *testing.T) {
			f, a, base := natWorld(t)
			number := map[string]uint8{"tcp": vppfake.ProtoTCP, "udp": vppfake.ProtoUDP}[proto]
			service := func(backends ...string) values {
				return all(base, values{dnat("s", with(port("10.96.0.1:80/"+proto, backends...), self))})
			}
			send := func(sport uint16, flags uint8) int { return connect(t, f, natPacket(number, sport, flags)) }
			a.resync(service("10.1.1.3:8080")...)
			at := map[uint16]int{}
			for port := range uint16(40) {
				if port == 10 {
					a.commit(txn.Update, kvs(t, service("10.1.1.3:8080", "10.1.1.4:8080", "10.1.1.5:8080"))...)
				}
				if at[port] = send(1000+port, 0); at[port] == 0 {
					t.Fatalf("connection %d arrives nowhere", port)
				}
			}
			for step, left := range [][]string{{"10.1.1.4:8080", "10.1.1.5:8080"}, {"10.1.1.5:8080"},
				{"10.1.1.5:8080", "10.1.1.6:8080*9"}} {
				a.commit(txn.Update, kvs(t, service(left...))...)
				for port := range uint16(40) {
					now := send(1000+port, vppfake.FlagACK)
					stays := strings.Contains(strings.Join(left, " "), fmt.Sprintf("10.1.1.%d:", at[port]+1))
					switch {
					case (number == vppfake.ProtoTCP || stays) && now != at[port]:
						t.Errorf("%v: connection %d was with pod %d, now %d", left, port, at[port], now)
					case number == vppfake.ProtoUDP && !stays && (now == at[port] || now == 0):
						t.Errorf("%v: packets %d go on to pod %d", left, port, now)
					}
					at[port] = now
				}
				for port := range uint16(20) {
					to := fmt.Sprintf("10.1.1.%d:", send(2000+100*uint16(step)+port, 0)+1)
					if !strings.Contains(strings.Join(left, " "), to) {
						t.Errorf("%v: a new connection goes to %s", left, to)
					}
				}
			}
			a.commit(txn.Update, deletions(t, values{dnat("s")})...)
			a.resync(base...)
			if crashes := f.Crashes(); len(crashes) > 0 {
				t.Error(crashes)
			}
		})
	}
}

// Connections are distributed by weight: chi-square over 2,000 connections, also where the weights had to be scaled.
func TestNATSpread(t *testing.T) {
	f, a, base := natWorld(t)
	for name, weights := range map[string][]int{"equal": {1, 1, 1, 1, 1}, "unequal": {1, 2, 5}, "scaled": {100, 300, 600},
		"many": {1, 1, 1, 1, 1, 1, 1}} {
		var list []string
		sum := 0
		for i, w := range weights {
			list = append(list, fmt.Sprintf("10.1.1.%d:8080*%d", i+3, w))
			sum += w
		}
		a.resync(all(base, values{dnat("s", port("10.96.0.1:80/udp", list...))})...)
		count := map[int]int{}
		const calls = 2000
		for n := range uint16(calls) {
			count[connect(t, f, natPacket(vppfake.ProtoUDP, 1000+n, 0))]++
		}
		chi := 0.0
		for i, w := range weights {
			want := float64(calls) * float64(w) / float64(sum)
			chi += (float64(count[i+2]) - want) * (float64(count[i+2]) - want) / want
		}
		if chi > 22.5 { // 99.9 % for 6 degrees of freedom
			t.Errorf("%s: %v, chi-square %.1f", name, count, chi)
		}
		a.resync(base...)
	}
}

// A client keeps its backend as long as the backend exists, through all changes, and then keeps another one.
func TestNATAffinity(t *testing.T) {
	f, a, base := natWorld(t)
	service := func(pods ...int) values {
		var list []string
		for _, p := range pods {
			list = append(list, fmt.Sprintf("10.1.1.%d:8080", p+1))
		}
		return all(base, values{dnat("s", with(port("10.96.0.1:80/tcp", list...), sticky(10800)))})
	}
	sport := uint16(1000)
	call := func(client int) int {
		sport++
		p := natPacket(vppfake.ProtoTCP, sport, 0)
		p.Src = netip.AddrFrom4([4]byte{10, 1, 7, byte(client)})
		return connect(t, f, p)
	}
	a.resync(service(2, 3, 4)...)
	at := make([]int, 60)
	for c := range at {
		at[c] = call(c)
	}
	for step, pods := range [][]int{{2, 3, 4, 5}, {2, 4, 5}, {5}, {5, 6, 7, 8, 9}, {9}, {2, 3}, {3, 2, 9}} {
		if step == 3 { // the agent is restarted: it restores the places from VPP
			a.stop()
			a = newAgent(t, &target{socket: f.Socket(), fake: f}, Deps{})
			a.mustNotWrite("restart", service(5))
		}
		a.commit(txn.Update, kvs(t, service(pods...))...)
		moved := 0
		for c := range at {
			now := call(c)
			if !slices.Contains(pods, now) {
				t.Fatalf("%v: client %d goes to pod %d", pods, c, now)
			}
			if slices.Contains(pods, at[c]) && now != at[c] {
				t.Errorf("%v: client %d was with pod %d, now %d", pods, c, at[c], now)
			}
			if now != at[c] {
				moved++
			}
			if again := call(c); again != now {
				t.Errorf("%v: client %d goes to pod %d, then to %d", pods, c, now, again)
			}
			at[c] = now
		}
		t.Logf("%v: %d of %d clients moved", pods, moved, len(at))
	}
	if crashes := f.Crashes(); len(crashes) > 0 {
		t.Error(crashes)
	}
}

// Hairpin: a pod reaches itself through its service, and receives its own answer.
func TestNATHairpin(t *testing.T) {
	f, a, base := natWorld(t)
	a.resync(all(base, values{dnat("s", with(port("10.96.0.1:80/tcp", "10.1.1.2:8080"), self))})...)
	r, err := f.Send("cv:pod1", natPacket(vppfake.ProtoTCP, 1000, 0))
	d, ok := r.Delivered()
	if err != nil || !ok || d.Tag != "cv:pod1" || d.Packet.Src != netip.MustParseAddr("192.0.2.254") {
		t.Fatalf("%v\n%s", err, r)
	}
	p := d.Packet
	p.Src, p.Dst, p.SrcPort, p.DstPort, p.EthDst, p.Flags = p.Dst, p.Src, p.DstPort, p.SrcPort, podMAC,
		vppfake.FlagSYN|vppfake.FlagACK
	r, err = f.Send("cv:pod1", p)
	if d, ok = r.Delivered(); err != nil || !ok || d.Packet.Src != netip.MustParseAddr("10.96.0.1") || d.Packet.DstPort != 1000 {
		t.Fatalf("%v\n%s", err, r)
	}
}

func withMAC(mac string) func(*vpp_interfaces.Interface) {
	return func(v *vpp_interfaces.Interface) { v.PhysAddress = mac }
}

func TestNATSessionCounts(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{FewPlugins: []string{"nat", "cnat", "acl", "af_packet", "memif", "dhcp", "vxlan"}})
	a := newAgent(t, &target{socket: v.Socket(), real: v}, Deps{NAT: nat44.Settings{Sessions: 4321}})
	n := nat44.NewSessions(v.StatsSocket(), slog.New(slog.DiscardHandler))
	n.Look()
	if used, limit := n.Counts(); used != 0 || limit != 0 {
		t.Errorf("%d of %d", used, limit)
	}
	a.resync(natOn()...)
	n.Look()
	if used, limit := n.Counts(); used != 0 || limit != 4321 {
		t.Errorf("%d of %d", used, limit)
	}
	n = nat44.NewSessions(v.StatsSocket()+"-not-there", slog.New(slog.DiscardHandler))
	n.Look()
	if used, limit := n.Counts(); used != 0 || limit != 0 {
		t.Errorf("%d of %d", used, limit)
	}
}

// A backend that is removed from a UDP service keeps its TCP connections, and those of other services.
func TestNATKeepsOtherSessions(t *testing.T) {
	f, a, base := natWorld(t)
	config := func(backends ...string) values {
		return all(base, values{
			dnat("lost", port("10.96.0.1:80/udp", backends...)), dnat("tcp", port("10.96.0.1:80/tcp", "10.1.1.3:53")),
			dnat("other", port("10.96.0.2:80/udp", "10.1.1.3:53")),
		})
	}
	a.resync(config("10.1.1.3:53")...)
	other := natPacket(vppfake.ProtoUDP, 1001, 0)
	other.Dst = netip.MustParseAddr("10.96.0.2")
	reaches := func(what string, p vppfake.Packet, want int) {
		t.Helper()
		if got := connect(t, f, p); got != want {
			t.Errorf("%s: pod %d, want %d", what, got, want)
		}
	}
	tcp, udp := natPacket(vppfake.ProtoTCP, 1000, 0), natPacket(vppfake.ProtoUDP, 1000, 0)
	reaches("TCP", tcp, 2)
	reaches("UDP", udp, 2)
	reaches("another service", other, 2)
	tcp.Flags = vppfake.FlagACK
	for _, left := range [][]string{{"10.1.1.4:53"}, {"10.1.1.5:53"}} {
		a.commit(txn.Update, kvs(t, config(left...))...)
		reaches("TCP", tcp, 2)
	}
	reaches("UDP", udp, 4)
	a.commit(txn.Update, deletions(t, values{dnat("lost")})...)
	reaches("TCP", tcp, 2)
	if n := len(f.Sessions()); n != 2 {
		t.Errorf("%d sessions, want those of TCP and of the other service: %v", n, f.Sessions())
	}
}

// With twice-NAT VPP takes two random numbers for a connection, whose lowest bits alternate: all backends must be used
// nevertheless.
func TestNATSpreadWithTwiceNAT(t *testing.T) {
	f, a, base := natWorld(t)
	for _, n := range []int{2, 4, 7} {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("10.1.1.%d:8080", i+3))
		}
		hidden := func(m *statMapping) { m.TwiceNat = vpp_nat.DNat44_StaticMapping_ENABLED }
		a.resync(all(base, values{dnat("s", with(port("10.96.0.1:80/udp", list...), hidden))})...)
		count := map[int]int{}
		for c := range uint16(1000) {
			count[connect(t, f, natPacket(vppfake.ProtoUDP, 1000+c, 0))]++
		}
		for pod, c := range count {
			if c < 500/n || c > 1500/n {
				t.Errorf("%d backends, pod %d: %d of 1000", n, pod, c)
			}
		}
		if len(count) != n {
			t.Errorf("%d backends: %v", n, count)
		}
		a.resync(base...)
	}
}
