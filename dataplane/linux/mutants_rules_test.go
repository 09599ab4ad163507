package intdataplane

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/drivertest"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

type rulesProof = drivertest.Proof[rules.Config]

// TestEachRulesFieldHasAnEffect is TestEachConfigFieldHasAnEffect for Config.RulesConfig: each proof checks the handling of packets, or the
// kernel's state. Those that need a kernel are in mutants_kernel_test.go.
func TestEachRulesFieldHasAnEffect(t *testing.T) {
	proofs := markProofs()
	for _, more := range []map[string]rulesProof{packetProofs(), hostProofs(), workloadProofs(), tunnelProofs(), kernelRulesProofs()} {
		maps.Copy(proofs, more)
	}
	drivertest.ProveFields(t, proofs)
}

// shows returns a proof by packets. An invalid configuration has no effect: this applies to marks if only some are set.
func shows(set func(*rules.Config), has func(b *bench) bool) rulesProof {
	return rulesProof{Set: set, Has: func(t *testing.T, c rules.Config) bool {
		if c.WithDefaults().Validate() != nil {
			return false
		}
		return has(newBench(t, Config{RulesConfig: c}))
	}}
}

// carry evaluates the chains for a packet.
func (b *bench) carry(p rulestest.Packet) rulestest.Outcome {
	b.t.Helper()
	out, err := b.fake.Send(p)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func with(p rulestest.Packet, change func(*rulestest.Packet)) rulestest.Packet {
	change(&p)
	return p
}

// The packets of the proofs.
func toPod() rulestest.Packet { return packet("eth0", "calia", "198.51.100.1", "10.65.0.1", 80) }

func toNode(protocol uint8, port uint16) rulestest.Packet {
	p := packet("eth0", "", "198.51.100.1", "192.0.2.1", port)
	p.Proto, p.Local = protocol, []netip.Addr{addr("192.0.2.1")}
	return p
}

func podToNode(port uint16) rulestest.Packet {
	return with(packet("calia", "", "10.65.0.1", "192.0.2.1", port), func(p *rulestest.Packet) { p.Local = []netip.Addr{addr("192.0.2.1")} })
}

// markProofs returns the proofs of mark bits. All of these differ from the defaults.
func markProofs() map[string]rulesProof {
	const accept, pass, scratch0, scratch1, endpointMask, none, masquerade = 0x1, 0x2, 0x4, 0x8, 0xf0, 0x30, 0x100
	set := func(c *rules.Config) {
		c.IptablesMarkAccept, c.IptablesMarkPass, c.IptablesMarkScratch0, c.IptablesMarkScratch1 = accept, pass, scratch0, scratch1
		c.IptablesMarkEndpoint, c.IptablesMarkNonCaliEndpoint, c.IptablesMarkMasquerade = endpointMask, none, masquerade
		c.KubeIPVSSupportEnabled, c.IptablesFilterAllowAction = true, "RETURN" // so that the mark stays on accepted packets
	}
	toService := func(in string) rulestest.Packet { return packet(in, "", "10.65.0.1", "10.96.0.1", 80) }
	return map[string]rulesProof{
		"IptablesMarkAccept": shows(set, func(b *bench) bool {
			b.must(openProfile(), endpoint("a", "calia", 1))
			return b.carry(toPod()).Packet.Mark == accept
		}),
		"IptablesMarkPass": shows(set, func(b *bench) bool {
			b.must(openProfile(), policy("p", &proto.Rule{Action: "pass"}), endpoint("a", "calia", 1, withTiers(ingress("p"))))
			return b.carry(toPod()).Packet.Mark == accept|pass
		}),
		"IptablesMarkScratch0": shows(set, func(b *bench) bool {
			b.must(openProfile(), endpoint("a", "calia", 1))
			out := b.carry(with(podToNode(80), func(p *rulestest.Packet) { p.Spoofed = true }))
			return out.Verdict == "drop" && out.Packet.Mark == scratch0 // dropped in the layer where it marks workloads' packets
		}),
		"IptablesMarkScratch1": shows(set, func(b *bench) bool {
			b.must()
			out := b.carry(with(toNode(6, 80), func(p *rulestest.Packet) { p.Mark = 0xffffff0f }))
			return out.Packet.Mark == 0xffffff00|none // our bits are cleared, and the others stay
		}),
		"IptablesMarkEndpoint": shows(set, func(b *bench) bool {
			b.must(openProfile(), endpoint("a", "calia", 1), ifAddrs("eth0", "192.0.2.1"))
			mark := b.carry(toService("calia")).Packet.Mark &^ scratch0 // of a workload
			return mark != 0 && mark&^endpointMask == 0 && mark != none
		}),
		"IptablesMarkNonCaliEndpoint": shows(set, func(b *bench) bool {
			b.must(ifAddrs("eth0", "192.0.2.1"))
			return b.carry(toService("eth0")).Packet.Mark == none
		}),
		"IptablesMarkMasquerade": shows(set, func(b *bench) bool {
			b.d.services.OnUpdate(lbMessage("10.96.0.1", 80, "10.65.0.1"))
			if err := b.d.services.CompleteDeferredWork(); err != nil {
				b.t.Fatal(err)
			}
			b.must()
			return b.carry(with(packet("eth0", "eth1", "198.51.100.1", "203.0.113.1", 80),
				func(p *rulestest.Packet) { p.Mark = masquerade })).SNAT == "masquerade"
		}),
	}
}

// lbMessage returns a service with one backend.
func lbMessage(vip string, port uint32, backend string) *proto.BalancedServiceUpdate {
	to := &proto.BalancedGroup{Addresses: addr(backend).AsSlice(), Ports: []uint32{8080}}
	return &proto.BalancedServiceUpdate{Namespace: "default", Name: "web", Ports: []*proto.BalancedPort{{Protocol: 6, Everywhere: to,
		Frontends: []*proto.BalancedFrontend{{Address: addr(vip).AsSlice(), Port: port}}}}}
}

// packetProofs returns the proofs of fields that determine which packets pass, and how.
func packetProofs() map[string]rulesProof {
	return map[string]rulesProof{
		"WorkloadIfacePrefixes": shows(func(c *rules.Config) { c.WorkloadIfacePrefixes = []string{"tap"} }, func(b *bench) bool {
			b.must()
			return b.verdict(packet("eth0", "tap9", "198.51.100.1", "10.65.0.1", 80)) == "drop"
		}),
		"SharePolicies": shows(func(c *rules.Config) { c.SharePolicies = true }, func(b *bench) bool {
			b.must(openProfile(), endpoint("a", "calia", 1))
			path := b.carry(toPod()).Path
			return slices.ContainsFunc(path, func(chain string) bool { return strings.Contains(chain, rules.ChainToWorkloadPolicies) })
		}),
		"ChainPrefix": shows(func(c *rules.Config) { c.ChainPrefix = "tst-" }, func(b *bench) bool {
			b.must(openProfile(), endpoint("a", "calia", 1))
			path := b.carry(toPod()).Path
			return len(path) > 0 && !slices.ContainsFunc(path, func(chain string) bool { return !strings.Contains(chain, " tst-") })
		}),
		"IptablesFilterAllowAction": shows(func(c *rules.Config) { c.IptablesFilterAllowAction = "RETURN" }, func(b *bench) bool {
			b.must(openProfile(), endpoint("a", "calia", 1))
			return b.verdict(toPod()) == "pass"
		}),
		"IptablesMangleAllowAction": shows(func(c *rules.Config) { c.IptablesMangleAllowAction = "RETURN" }, func(b *bench) bool {
			b.must(openProfile(), endpoint("a", "calia", 1))
			b.fake.Others(table.IPv4, table.Mangle, table.Prerouting, table.Rule{Actions: []table.Action{{Verb: table.Drop}}})
			return b.verdict(with(toPod(), func(p *rulestest.Packet) { p.CT = table.CTEstablished })) == "drop"
		}),
		"IptablesLogPrefix": shows(func(c *rules.Config) { c.IptablesLogPrefix = "proof" }, func(b *bench) bool {
			b.must(openProfile(), policy("p", &proto.Rule{Action: "log"}), endpoint("a", "calia", 1, withTiers(ingress("p"))))
			return slices.Equal(b.carry(toPod()).Logged, []string{"proof: "})
		}),
		"DisableConntrackInvalid": shows(func(c *rules.Config) { c.DisableConntrackInvalid = true }, func(b *bench) bool {
			b.must(openProfile(), endpoint("a", "calia", 1))
			return b.verdict(with(toPod(), func(p *rulestest.Packet) { p.CT = table.CTInvalid })) == "accept"
		}),
		"ReportDenied": shows(func(c *rules.Config) { c.ReportDenied = true }, func(b *bench) bool {
			b.must(openProfile(), policy("p", tcpPort("deny", 80)), endpoint("a", "calia", 1, withTiers(ingress("p"))))
			return len(b.carry(toPod()).Reported) == 1
		}),
		"NATPortRange": shows(func(c *rules.Config) { c.NATPortRange = table.PortRange{First: 5000, Last: 6000} }, func(b *bench) bool {
			b.must(openProfile(), endpoint("a", "calia", 1), ipPool("pods", "10.65.0.0/16", true))
			out := b.carry(packet("calia", "eth0", "10.65.0.1", "203.0.113.1", 80))
			return out.SNAT == "masquerade" && out.SNATPort == table.PortRange{First: 5000, Last: 6000}
		}),
		"IptablesNATOutgoingInterfaceFilter": shows(func(c *rules.Config) { c.IptablesNATOutgoingInterfaceFilter = "eth1" }, func(b *bench) bool {
			b.must(openProfile(), endpoint("a", "calia", 1), ipPool("pods", "10.65.0.0/16", true))
			return b.snat("calia", "eth1", "10.65.0.1", "203.0.113.1") == "masquerade" && b.snat("calia", "eth0", "10.65.0.1", "203.0.113.1") == ""
		}),
	}
}

// hostProofs returns the proofs of fields for packets to the node.
func hostProofs() map[string]rulesProof {
	guarded := []any{ifAddrs("eth0", "192.0.2.1"), ifUp("eth0", 1), policy("p", tcpPort("deny", 1)), hostEndpoint("h", "eth0", hostPolicy("p"),
		func(ep *proto.HostEndpoint) { ep.Tiers[0].EgressPolicies = []string{"p"} })}
	port := []rules.ProtoPort{{Protocol: "tcp", Port: 8443}}
	ipvs := func(c *rules.Config) { c.KubeIPVSSupportEnabled = true }
	return map[string]rulesProof{
		"EndpointToHostAction": shows(func(c *rules.Config) { c.EndpointToHostAction = "ACCEPT" }, func(b *bench) bool {
			b.must(openProfile(), endpoint("a", "calia", 1))
			return b.verdict(podToNode(80)) == "accept"
		}),
		"FailsafeInboundHostPorts": shows(func(c *rules.Config) { c.FailsafeInboundHostPorts = port }, func(b *bench) bool {
			b.must(guarded...)
			return b.verdict(toNode(6, 8443)) == "accept" && b.verdict(toNode(6, 22)) == "drop"
		}),
		"FailsafeOutboundHostPorts": shows(func(c *rules.Config) { c.FailsafeOutboundHostPorts = port }, func(b *bench) bool {
			b.must(guarded...)
			return b.verdict(packet("", "eth0", "192.0.2.1", "198.51.100.1", 8443)) == "accept" &&
				b.verdict(packet("", "eth0", "192.0.2.1", "198.51.100.1", 2379)) == "drop"
		}),
		"KubeIPVSSupportEnabled": shows(ipvs, func(b *bench) bool {
			b.must(ifAddrs("eth0", "192.0.2.1"))
			return b.carry(packet("eth0", "", "198.51.100.1", "10.96.0.1", 80)).Packet.Mark != 0
		}),
		"KubeNodePortRanges": shows(func(c *rules.Config) {
			ipvs(c)
			c.KubeNodePortRanges = []table.PortRange{{First: 30000, Last: 32767}}
		}, func(b *bench) bool {
			b.must(ifAddrs("eth0", "192.0.2.1"))
			return b.carry(toNode(6, 30080)).Packet.Mark != 0 && b.carry(toNode(6, 29999)).Packet.Mark == 0
		}),
	}
}

// workloadProofs returns the proofs of fields for what workloads may do on their node.
func workloadProofs() map[string]rulesProof {
	stack := func(c *rules.Config) {
		c.OpenStackSpecialCasesEnabled, c.OpenStackMetadataIP, c.OpenStackMetadataPort = true, addr("192.0.2.1"), 8775
	}
	metadata := packet("calia", "", "10.65.0.1", "169.254.169.254", 80)
	dhcp := with(podToNode(67), func(p *rulestest.Packet) { p.Proto, p.SrcPort = 17, 68 })
	closed := func(tiers ...string) []any { // a workload whose policies deny everything that it sends
		msgs := []any{openProfile()}
		var list []*proto.TierInfo
		for _, tier := range tiers {
			msgs = append(msgs, &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: tier, Name: "p"},
				Policy: &proto.Policy{OutboundRules: []*proto.Rule{{Action: "deny"}}}})
			list = append(list, &proto.TierInfo{Name: tier, EgressPolicies: []string{"p"}})
		}
		return append(msgs, endpoint("a", "calia", 1, withTiers(list...)))
	}
	exempt := func(c *rules.Config) { c.NodeAndSelfExempt, c.EndpointToHostAction = true, "RETURN" }
	return map[string]rulesProof{
		"OpenStackSpecialCasesEnabled": shows(stack, func(b *bench) bool {
			b.must(closed("default")...)
			return b.verdict(dhcp) == "accept"
		}),
		"OpenStackMetadataIP": shows(stack, func(b *bench) bool {
			b.must(closed("default")...)
			return b.carry(metadata).Packet.Dst == addr("192.0.2.1")
		}),
		"OpenStackMetadataPort": shows(stack, func(b *bench) bool {
			b.must(closed("default")...)
			return b.carry(metadata).Packet.DstPort == 8775 && b.verdict(metadata) == "accept"
		}),
		"NodeAndSelfExempt": shows(exempt, func(b *bench) bool {
			b.must(closed("default")...)
			return b.verdict(podToNode(80)) != "drop" && b.verdict(packet("calia", "eth0", "10.65.0.1", "203.0.113.1", 80)) == "drop"
		}),
		"TiersForNode": shows(func(c *rules.Config) {
			exempt(c)
			c.TiersForNode = []string{"admin"}
		}, func(b *bench) bool {
			b.must(closed("admin", "default")...)
			return b.verdict(podToNode(80)) == "drop"
		}),
	}
}

// tunnelProofs returns the proofs of fields for packets between nodes.
func tunnelProofs() map[string]rulesProof {
	vxlan := func(c *rules.Config) { c.VXLANEnabled = true }
	own := func(out string) rulestest.Packet { // of the node itself, with an address of another interface
		return with(packet("", out, "192.0.2.1", "10.65.1.1", 80), func(p *rulestest.Packet) {
			p.OtherSrc, p.Local = true, []netip.Addr{addr("192.0.2.1")}
		})
	}
	return map[string]rulesProof{
		"Hostname": shows(func(c *rules.Config) {
			vxlan(c)
			c.Hostname = "node7"
		}, func(b *bench) bool {
			b.must(vtep("node7", "66:00:00:00:00:07", "10.65.7.0", "", "192.0.2.7"))
			return len(b.vxlan.local) == 1 && len(b.vxlan.others) == 0
		}),
		"VXLANEnabled": shows(vxlan, func(b *bench) bool {
			b.must()
			return b.verdict(toNode(17, 4789)) == "drop"
		}),
		"VXLANPort": shows(func(c *rules.Config) {
			vxlan(c)
			c.VXLANPort = 8472
		}, func(b *bench) bool {
			b.must()
			return b.verdict(toNode(17, 8472)) == "drop" && b.verdict(toNode(17, 4789)) == "pass"
		}),
		"VXLANDevice": shows(func(c *rules.Config) {
			vxlan(c)
			c.VXLANDevice = "vx9"
		}, func(b *bench) bool {
			b.must()
			return b.carry(own("vx9")).SNAT == "masquerade"
		}),
		"VXLANTunnelAddress": shows(func(c *rules.Config) {
			vxlan(c)
			c.VXLANTunnelAddress = addr("10.65.0.0")
		}, func(b *bench) bool {
			b.apply(vtep("node1", "66:00:00:00:00:01", "", "", "192.0.2.1")) // without the field the end is broken
			return len(b.vxlan.local) == 1 && b.vxlan.local[0].TunnelAddr == addr("10.65.0.0")
		}),
		"IPIPEnabled": shows(func(c *rules.Config) { c.IPIPEnabled = true }, func(b *bench) bool {
			b.must()
			return b.verdict(toNode(4, 0)) == "drop"
		}),
		"IPIPTunnelAddress": shows(func(c *rules.Config) { c.IPIPEnabled, c.IPIPTunnelAddress = true, addr("10.65.0.0") }, func(b *bench) bool {
			b.must()
			return b.carry(own("tunl0")).SNAT == "masquerade"
		}),
	}
}
