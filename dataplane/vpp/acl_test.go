package vpp

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// aclLines adds the state of ACLs to vppState.
func aclLines(lane *conn.Lane, add func(string, ...any), end func(error)) {
	conn.Dump(lane, &acl.ACLDump{ACLIndex: kit.None}, func(d *acl.ACLDetails) { add("acl %q %v", d.Tag, d.R) }, end)
	conn.Dump(lane, &acl.ACLInterfaceListDump{SwIfIndex: interface_types.InterfaceIndex(kit.None)},
		func(d *acl.ACLInterfaceListDetails) {
			if d.Count > 0 {
				add("acls of %d: %d in of %v", d.SwIfIndex, d.NInput, d.Acls)
			}
		}, end)
}

func aclOf(name string, in, out []string, rules ...*vpp_acl.ACL_Rule) *vpp_acl.ACL {
	return &vpp_acl.ACL{Name: name, Rules: rules, Interfaces: &vpp_acl.ACL_Interfaces{Ingress: in, Egress: out}}
}

type (
	ipRule   = vpp_acl.ACL_Rule_IpRule
	ipPart   = vpp_acl.ACL_Rule_IpRule_Ip
	tcpPart  = vpp_acl.ACL_Rule_IpRule_Tcp
	udpPart  = vpp_acl.ACL_Rule_IpRule_Udp
	icmpPart = vpp_acl.ACL_Rule_IpRule_Icmp
	rangeOf  = vpp_acl.ACL_Rule_IpRule_PortRange
)

func toPort(action vpp_acl.ACL_Rule_Action, src, dst string, port uint32) *vpp_acl.ACL_Rule {
	return &vpp_acl.ACL_Rule{Action: action, IpRule: &ipRule{Ip: &ipPart{SourceNetwork: src, DestinationNetwork: dst},
		Tcp: &tcpPart{DestinationPortRange: &rangeOf{LowerPort: port, UpperPort: port}}}}
}

func allow(src, dst string, port uint32) *vpp_acl.ACL_Rule {
	return toPort(vpp_acl.ACL_Rule_PERMIT, src, dst, port)
}

func denyAll(dst string, port uint32) *vpp_acl.ACL_Rule {
	return toPort(vpp_acl.ACL_Rule_DENY, "", dst, port)
}

func guardedBy(acl string, m *statMapping) *statMapping {
	m.Guard = acl
	return m
}

func TestACLs(t *testing.T) {
	loops := values{loop("a", ""), loop("b", ""), loop("c", "")}
	rule := func(r *ipRule) *vpp_acl.ACL_Rule {
		return &vpp_acl.ACL_Rule{Action: vpp_acl.ACL_Rule_PERMIT, IpRule: r}
	}
	long := strings.Repeat("long-name-", 9)
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{}, all(loops, values{
			aclOf("x", []string{"a", "b"}, []string{"c"}, allow("10.1.2.3/8", "192.0.2.1/32", 80), denyAll("192.0.2.1/32", 80)),
			aclOf(long, []string{"a"}, nil, denyAll("fd00::1/128", 80), rule(&ipRule{Ip: &ipPart{SourceNetwork: "fd00::/8"},
				Icmp: &icmpPart{Icmpv6: true, IcmpTypeRange: &vpp_acl.ACL_Rule_IpRule_Icmp_Range{First: 128, Last: 129}}})),
			aclOf("nowhere", nil, nil),
		}), all(loops, values{
			aclOf("x", []string{"b", "c"}, []string{"c", "a"}, denyAll("192.0.2.1/32", 80),
				rule(&ipRule{Ip: &ipPart{SourceNetwork: "10.0.0.0/8"}, Udp: &udpPart{SourcePortRange: &rangeOf{LowerPort: 1, UpperPort: 2}}}),
				rule(&ipRule{Ip: &ipPart{DestinationNetwork: "10.0.0.0/8"}, Tcp: &tcpPart{TcpFlagsMask: 0x12, TcpFlagsValue: 2}}),
				rule(&ipRule{Ip: &ipPart{DestinationNetwork: "10.0.0.0/8", Protocol: 132}})),
			aclOf("w", []string{"b", "c"}, nil, denyAll("192.0.2.2/32", 80)),
		}), loops)
	})
}

// onInterface returns the tags of the ACLs that an interface has for received packets.
func (a *agent) onInterface(name string) string {
	a.t.Helper()
	index, ok := a.idx.IfIndex(name)
	if !ok {
		a.t.Fatalf("no interface %s", name)
	}
	tags := map[uint32]string{}
	var out []string
	end := func(err error) {
		if err != nil {
			a.t.Error(err)
		}
	}
	lane := a.conn.Lane()
	conn.Dump(lane, &acl.ACLDump{ACLIndex: kit.None}, func(d *acl.ACLDetails) { tags[d.ACLIndex] = d.Tag }, end)
	conn.Dump(lane, &acl.ACLInterfaceListDump{SwIfIndex: interface_types.InterfaceIndex(index)},
		func(d *acl.ACLInterfaceListDetails) {
			for _, id := range d.Acls[:d.NInput] {
				out = append(out, strings.TrimRight(tags[id], "\x00"))
			}
		}, end)
	lane.Flush(a.t.Context())
	return strings.Join(out, " ")
}

// A VPP with workers has room for ACLs in its default configuration; if it has not, the agent must not make it crash. Then guarded
// addresses are not served, and all other services continue.
func TestACLRoom(t *testing.T) {
	config := values{loop("a", ""), aclOf("services", []string{"a"}, nil, denyAll("192.0.2.1/32", 80))}
	for _, c := range []struct {
		sessions uint64
		workers  int
		room     bool
	}{{1024, 8, true}, {500_000, 0, true}, {500_000, 1, false}} {
		f := vppfake.New(vppfake.Config{Seed: 1, ACLSessions: c.sessions, Workers: c.workers})
		t.Cleanup(func() { f.Close() })
		socket := filepath.Join(t.TempDir(), "api.sock")
		if err := f.Listen(socket); err != nil {
			t.Fatal(err)
		}
		a := newAgent(t, &target{socket: socket, fake: f}, Deps{})
		a.commit(txn.Update, kvs(t, all(natOn(), config, values{natIf("a", true, true, false)}))...)
		if there := strings.Contains(f.Dump(), "acls in"); there != c.room {
			t.Errorf("%+v:\n%s", c, f.Dump())
		}
		err := a.tries(txn.Update, dnat("x", guardedBy("services", port("192.0.2.1:80/tcp", "10.1.0.2:8080", "10.1.0.3:8080"))))
		if served(f) != c.room || (err == nil) != c.room {
			t.Errorf("%+v: served: %t, %v", c, served(f), err)
		}
		more := proto.Clone(config[1]).(*vpp_acl.ACL)
		more.Interfaces.Ingress = append(more.Interfaces.Ingress, "b")
		a.commit(txn.Update, kvs(t, values{loop("b", ""), more, natIf("b", true, true, false)})...)
		a.stop()
	}
	t.Run("real", func(t *testing.T) {
		workers := 1
		if runtime.NumCPU() < 4 {
			workers = 0 // VPP gives up if its worker does not get a CPU
		}
		v := vpptest.Start(t, vpptest.Options{Workers: workers})
		a := newAgent(t, &target{socket: v.Socket(), real: v}, Deps{})
		a.resync(config...)
		a.mustNotWrite("resync", config)
		a.resync()
	})
}

// Our ACLs come first, by name, whatever the order of creation; another program's stay behind them.
func TestACLOrder(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		one, two := aclOf("one", []string{"a", "b"}, nil, denyAll("192.0.2.1/32", 80)), aclOf("two", []string{"a"}, nil)
		a.resync(loop("a", ""), loop("b", ""))
		other := &acl.ACLAddReplaceReply{}
		a.invoke(&acl.ACLAddReplace{ACLIndex: kit.None, Tag: "other", R: []acl_types.ACLRule{{IsPermit: acl_types.ACL_ACTION_API_PERMIT, SrcportOrIcmptypeLast: 65535, DstportOrIcmpcodeLast: 65535}}}, other)
		index, _ := a.idx.IfIndex("a")
		a.invoke(&acl.ACLInterfaceSetACLList{SwIfIndex: interface_types.InterfaceIndex(index), NInput: 1,
			Acls: []uint32{other.ACLIndex}}, &acl.ACLInterfaceSetACLListReply{})
		a.commit(txn.Update, kvs(t, values{two})...)
		a.commit(txn.Update, kvs(t, values{one})...)
		want := func(ifName, want string) {
			t.Helper()
			if got := a.onInterface(ifName); got != want {
				t.Errorf("%s has %q, want %q", ifName, got, want)
			}
		}
		want("a", "cv:one cv:two other")
		want("b", "cv:one cva:rest")
		everything := values{loop("a", ""), loop("b", ""), one, two}
		a.mustNotWrite("resync", everything)
		a.stop()
		a = newAgent(t, g, Deps{})
		a.mustNotWrite("restarted agent", everything)
		// Another program puts its ACL before ours, so that ours are matched too late.
		a.invoke(&acl.ACLInterfaceSetACLList{SwIfIndex: interface_types.InterfaceIndex(index), NInput: 1,
			Acls: []uint32{other.ACLIndex}}, &acl.ACLInterfaceSetACLListReply{})
		if n, rec := a.resync(everything...); n == 0 {
			t.Errorf("not mended\n%s", rec)
		}
		want("a", "cv:one cv:two other")
		a.resync(loop("a", ""), loop("b", ""))
		want("a", "other")
		want("b", "")
	})
}

// A change of rules is one request, however many interfaces there are; adding or removing an interface is one request.
func TestACLDeltas(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		var base values
		var names []string
		for n := range 10 {
			names = append(names, fmt.Sprint("i", n))
			base = append(base, loop(names[n], ""))
		}
		a.resync(base...)
		writes := func(when string, want uint64, v proto.Message) {
			t.Helper()
			before := a.conn.Writes()
			a.commit(txn.Update, kvs(t, values{v})...)
			if n := a.conn.Writes() - before; n != want {
				t.Errorf("%s: %d writes, want %d", when, n, want)
			}
		}
		writes("the first one", 2+9, aclOf("x", names[:9], nil, denyAll("192.0.2.1/32", 80)))
		writes("other rules", 1, aclOf("x", names[:9], nil, denyAll("192.0.2.1/32", 81)))
		writes("the same in other words", 0, aclOf("x", names[:9], nil, toPort(vpp_acl.ACL_Rule_DENY, "0.0.0.0/0", "192.0.2.1/32", 81)))
		writes("one interface more", 1, aclOf("x", names, nil, denyAll("192.0.2.1/32", 81)))
		writes("one interface less", 1, aclOf("x", names[1:], nil, denyAll("192.0.2.1/32", 81)))
		a.resync()
	})
}

func TestACLValidation(t *testing.T) {
	invalid := validator(t)
	range2 := &rangeOf{LowerPort: 2, UpperPort: 1}
	for want, v := range map[string]*vpp_acl.ACL{
		"no usable name":         aclOf("", nil, nil),
		"which is taken":         aclOf("cva:rest", nil, nil),
		"ingress[1]: a is there": aclOf("x", []string{"a", "a"}, nil),
		"has no network":         aclOf("x", nil, nil, toPort(0, "", "", 1)),
		"different families":     aclOf("x", nil, nil, toPort(0, "10.0.0.0/8", "fd00::/8", 1)),
		"is not a network":       aclOf("x", nil, nil, toPort(0, "10.0.0.0", "", 1)),
		"not a range of ports":   aclOf("x", nil, nil, &vpp_acl.ACL_Rule{IpRule: &ipRule{Ip: &ipPart{SourceNetwork: "::/0"}, Tcp: &tcpPart{SourcePortRange: range2}}}),
		"only one of tcp":        aclOf("x", nil, nil, &vpp_acl.ACL_Rule{IpRule: &ipRule{Ip: &ipPart{SourceNetwork: "::/0"}, Tcp: &tcpPart{}, Udp: &udpPart{}}}),
		"does not go with":       aclOf("x", nil, nil, &vpp_acl.ACL_Rule{IpRule: &ipRule{Ip: &ipPart{SourceNetwork: "::/0"}, Icmp: &icmpPart{}}}),
		"ip_rule: is not set":    aclOf("x", nil, nil, &vpp_acl.ACL_Rule{}),
		"macip_rule":             aclOf("x", nil, nil, &vpp_acl.ACL_Rule{MacipRule: &vpp_acl.ACL_Rule_MacIpRule{}}),
		"action: 9":              aclOf("x", nil, nil, toPort(9, "::/0", "", 1)),
		"ip.protocol: 300":       aclOf("x", nil, nil, &vpp_acl.ACL_Rule{IpRule: &ipRule{Ip: &ipPart{SourceNetwork: "::/0", Protocol: 300}}}),
		"17 is not that of tcp":  aclOf("x", nil, nil, &vpp_acl.ACL_Rule{IpRule: &ipRule{Ip: &ipPart{SourceNetwork: "::/0", Protocol: 17}, Tcp: &tcpPart{}}}),
	} {
		if err := invalid(v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", v, err, want)
		}
	}
}

// guardRig returns a node with a service whose address only some clients may use, on a fake that can be made to refuse requests.
func guardRig(t *testing.T) (f *vppfake.Fake, a *agent, base, service values) {
	t.Helper()
	f = vppfake.New(vppfake.Config{Seed: 1})
	t.Cleanup(func() { f.Close() })
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := f.Listen(socket); err != nil {
		t.Fatal(err)
	}
	a = newAgent(t, &target{socket: socket, fake: f}, Deps{})
	base = all(values{loop("a", "", withIP("10.1.0.1/24")), loop("b", "", withIP("10.2.0.1/24"))}, natOn(),
		values{natIf("a", true, true, false), natIf("b", true, true, false)})
	service = values{
		aclOf("services", []string{"a", "b"}, nil, allow("10.1.0.0/16", "192.0.2.1/32", 80), denyAll("192.0.2.1/32", 80)),
		dnat("x", guardedBy("services", port("192.0.2.1:80/tcp", "10.1.0.2:8080", "10.1.0.3:8080"))),
	}
	return f, a, base, service
}

func (a *agent) tries(kind txn.Kind, values ...proto.Message) error {
	a.t.Helper()
	_, err := a.s.Commit(a.t.Context(), &txn.Txn{Kind: kind, Values: kvs(a.t, values), NoRetry: true})
	return err
}

func served(f *vppfake.Fake) bool {
	return strings.Contains(f.Dump(), "192.0.2.1") && strings.Contains(f.Dump(), "10.1.0.3")
}

// An address that an ACL guards is not served before the ACL is on all interfaces, whether it is new or was open to all clients until
// now.
func TestGuardFailsClosed(t *testing.T) {
	for _, message := range []string{"acl_add_replace", "acl_interface_set_acl_list"} {
		for _, open := range []bool{false, true} {
			t.Run(fmt.Sprint(message, " was open ", open), func(t *testing.T) {
				f, a, base, service := guardRig(t)
				a.resync(base...)
				if open {
					a.commit(txn.Update, kvs(t, values{dnat("x", port("192.0.2.1:80/tcp", "10.1.0.2:8080", "10.1.0.3:8080"))})...)
				}
				fault := f.Faults.Add(vppfake.Fault{Message: message, Retval: int32(api.UNSPECIFIED)})
				if err := a.tries(txn.Update, service...); err == nil || !strings.Contains(err.Error(), "is not served until all other clients are denied") {
					t.Errorf("the error is %v", err)
				}
				if served(f) {
					t.Errorf("served:\n%s", f.Dump())
				}
				fault.Remove()
				a.resync(all(base, service)...)
				if !served(f) {
					t.Errorf("not served:\n%s", f.Dump())
				}
				a.mustNotWrite("in the end", all(base, service))
			})
		}
	}
}

// A new interface gets NAT only after it has the ACL; other interfaces keep it.
func TestGuardOfNewInterface(t *testing.T) {
	f, a, base, service := guardRig(t)
	a.resync(all(base, service)...)
	fault := f.Faults.Add(vppfake.Fault{Message: "acl_interface_set_acl_list", Retval: int32(api.UNSPECIFIED)})
	more := proto.Clone(service[0]).(*vpp_acl.ACL)
	more.Interfaces.Ingress = append(more.Interfaces.Ingress, "c")
	pod := values{loop("c", "", withIP("10.3.0.1/24")), natIf("c", true, true, false), more}
	if err := a.tries(txn.Update, pod...); err == nil {
		t.Error("no error")
	}
	if text := f.Dump(); strings.Contains(text, "nat44-ed-classify on cv:c") || !served(f) {
		t.Errorf("c has NAT, or nothing is served:\n%s", text)
	}
	fault.Remove()
	a.resync(all(base, pod, service[1:])...)
	if text := f.Dump(); !strings.Contains(text, "nat44-ed-classify on cv:c") {
		t.Errorf("c has no NAT:\n%s", text)
	}
}

// An ACL that could not be put on an interface has no effect after the interface was deleted.
func TestGuardGone(t *testing.T) {
	f, a, base, service := guardRig(t)
	a.resync(all(base, service)...)
	fault := f.Faults.Add(vppfake.Fault{Message: "acl_interface_set_acl_list", Retval: int32(api.UNSPECIFIED)})
	more := proto.Clone(service[0]).(*vpp_acl.ACL)
	more.Interfaces.Ingress = append(more.Interfaces.Ingress, "c")
	if err := a.tries(txn.Update, loop("c", "", withIP("10.3.0.1/24")), more); err == nil {
		t.Error("no error")
	}
	fault.Remove()
	gone := deletions(t, service)
	a.commit(txn.Update, gone...)
	a.commit(txn.Update, kvs(t, values{natIf("c", true, true, false)})...)
	if text := f.Dump(); !strings.Contains(text, "nat44-ed-classify on cv:c") {
		t.Errorf("c has no NAT:\n%s", text)
	}
}

// A service that becomes guarded, or unguarded, is not made again: connections continue. The same applies to changes of rules and to the
// deletion of interfaces.
func TestGuardChanges(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		base := all(values{loop("a", "", withIP("10.1.0.1/24")), loop("b", "", withIP("10.2.0.1/24"))}, natOn(),
			values{natIf("a", true, true, false), natIf("b", true, true, false)})
		mapping := func(guard string) proto.Message {
			return dnat("x", guardedBy(guard, port("192.0.2.1:80/tcp", "10.1.0.2:8080", "10.1.0.3:8080")))
		}
		rules := func(from string, on ...string) proto.Message {
			return aclOf("services", on, nil, allow(from, "192.0.2.1/32", 80), denyAll("192.0.2.1/32", 80))
		}
		a.resync(all(base, values{mapping("")})...)
		step := func(when string, want uint64, v ...txn.KV) {
			t.Helper()
			before := a.conn.Writes()
			rec := a.commit(txn.Update, v...)
			if n := a.conn.Writes() - before; n != want {
				t.Errorf("%s: %d writes, want %d\n%s", when, n, want, rec)
			}
		}
		step("guarded", 4, kvs(t, values{mapping("services"), rules("10.1.0.0/16", "a", "b")})...)
		step("other ranges", 1, kvs(t, values{rules("10.2.0.0/16", "a", "b")})...)
		a.mustNotWrite("resync", all(base, values{mapping("services"), rules("10.2.0.0/16", "a", "b")}))
		step("open", 4, append(kvs(t, values{mapping("")}), txn.KV{Key: nb.ACLKey("services")})...)
		a.resync()
	})
}
