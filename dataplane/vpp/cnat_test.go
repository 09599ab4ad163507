package vpp

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/ip_types"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_cnat "contiv.dev/vswitch/dataplane/nb/vpp/cnat"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// cnatLines is cnat's part of vppState.
func cnatLines(lane *conn.Lane, add func(string, ...any), end func(error)) {
	conn.Dump(lane, &cnat.CnatTranslationDump{}, func(d *cnat.CnatTranslationDetails) { add("cnat %v", *d) }, end)
	conn.Call(lane, &cnat.CnatGetSnatAddresses{}, func(r *cnat.CnatGetSnatAddressesReply, err error) {
		end(err)
		add("cnat source %v %v", r.SnatIP4, r.SnatIP6)
	})
}

func translation(vip string, port uint32, backends ...string) *vpp_cnat.Translation {
	v := &vpp_cnat.Translation{Vip: vip, Port: port}
	for n, b := range backends {
		v.Backends = append(v.Backends, &vpp_cnat.Translation_Backend{Ip: b, Port: 8080 + uint32(n%2)})
	}
	return v
}

func stickyTo(v *vpp_cnat.Translation) *vpp_cnat.Translation {
	v.Sticky = true
	return v
}

func overUDP(v *vpp_cnat.Translation) *vpp_cnat.Translation {
	v.Protocol = vpp_cnat.Translation_UDP
	return v
}

func manyBackends(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("fd00:1::%x", i+2))
	}
	return out
}

func TestCnatTranslations(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		sctp := translation("10.96.0.2", 99, "10.1.1.2")
		sctp.Protocol = vpp_cnat.Translation_SCTP
		roundTrip(t, g, Deps{},
			values{translation("fd00:96::1", 80, "fd00:1::2", "fd00:1::3"), overUDP(translation("fd00:96::1", 80, "fd00:1::2")),
				translation("10.96.0.1", 80, "10.1.1.2"), sctp, translation("fd00:96::2", 80, manyBackends(cnatMaxBackends)...)},
			values{translation("fd00:96::1", 80, "fd00:1::3", "fd00:1::2", "fd00:1::4"), // others, one at the other port
				stickyTo(overUDP(translation("fd00:96::1", 80, "fd00:1::2"))), translation("10.96.0.1", 80, "10.1.1.3"),
				translation("fd00:96::2", 80, manyBackends(3)...)},
			values{stickyTo(translation("fd00:96::1", 80, "fd00:1::3")), overUDP(translation("fd00:96::1", 80, "fd00:1::2"))},
		)
	})
}

// Addresses of services may be anywhere: VPP's own, a neighbour's, behind a route, nowhere.
func TestCnatPlaces(t *testing.T) {
	base := values{loop("nic", "", withIP("fd00:16::1/64")), &vpp_l3.Route{DstNetwork: "fd00:17::/64", OutgoingInterface: "nic"},
		&vpp_l3.Route{DstNetwork: "fd00:18::/64", Type: vpp_l3.Route_DROP}}
	var vips values
	for _, vip := range []string{"fd00:16::1", "fd00:16::9", "fd00:17::1", "fd00:18::1", "fd00:19::1"} {
		vips = append(vips, translation(vip, 80, "fd00:16::2"))
	}
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{}, all(base, vips), base[:1], values{})
		a := newAgent(t, g, Deps{})
		a.resync(all(base, vips)...)
		a.resync(vips...) // all that is around them goes, and comes
		a.resync(all(base, vips)...)
		a.mustNotWrite("in the end", all(base, vips))
	})
}

// The backends' order is nobody's business, and one backend more is one request.
func TestCnatDeltas(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		a.resync(translation("fd00:96::1", 80, "fd00:1::2", "fd00:1::4"), translation("fd00:96::2", 80, "fd00:1::2"))
		other := translation("fd00:96::1", 80, "fd00:1::2", "fd00:1::4")
		other.Backends[0], other.Backends[1] = other.Backends[1], other.Backends[0]
		before := a.conn.Writes()
		a.commit(txn.Update, kvs(t, values{other})...)
		if n := a.conn.Writes() - before; n != 0 {
			t.Errorf("another order: %d writes", n)
		}
		a.commit(txn.Update, kvs(t, values{translation("fd00:96::1", 80, "fd00:1::2", "fd00:1::4", "fd00:1::5")})...)
		if n := a.conn.Writes() - before; n != 1 {
			t.Errorf("one backend more: %d writes", n)
		}
		a.resync()
	})
}

// What somebody else has made stays, unless it is in the way: VPP has one translation for an address and port.
func TestCnatOfOthers(t *testing.T) {
	foreign := func(vip string) *cnat.CnatTranslationUpdate {
		end := func(a string, port uint16) cnat.CnatEndpoint {
			return cnat.CnatEndpoint{Addr: toAddress(addr(a)), SwIfIndex: 0xffffffff, IfAf: ip_types.ADDRESS_IP6, Port: port}
		}
		return &cnat.CnatTranslationUpdate{Translation: cnat.CnatTranslation{Vip: end(vip, 80), IPProto: 6, IsRealIP: 1,
			Paths: []cnat.CnatEndpointTuple{{DstEp: end("fd00:1::9", 80), SrcEp: end("::", 0)}}}}
	}
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		for _, vip := range []string{"fd00:96::1", "fd00:96::2"} {
			a.invoke(foreign(vip), &cnat.CnatTranslationUpdateReply{})
		}
		before := vppState(t, a)
		a.mustNotWrite("with foreign translations", nil)
		mine := values{translation("fd00:96::1", 80, "fd00:1::2")}
		a.resync(mine...)
		a.stop()
		a = newAgent(t, g, Deps{})
		a.mustNotWrite("restarted agent", mine)
		a.resync()
		if left := len(foreignVIPs(a)); left != 1 {
			t.Errorf("%d translations are left of\n%s", left, before)
		}
	})
}

func foreignVIPs(a *agent) (vips []string) {
	lane := a.conn.Lane()
	conn.Dump(lane, &cnat.CnatTranslationDump{}, func(d *cnat.CnatTranslationDetails) {
		vips = append(vips, fromAddress(d.Translation.Vip.Addr).String())
	}, func(error) {})
	lane.Flush(a.t.Context())
	return vips
}

func cnatIf(name string, role vpp_cnat.Interface_Role, ipv4, ipv6 bool) *vpp_cnat.Interface {
	return &vpp_cnat.Interface{Name: name, Role: role, Ipv4: ipv4, Ipv6: ipv6}
}

func TestCnatInterfaces(t *testing.T) {
	base := all(tables(1, "pod"), values{loop("a", "", withIP("fd00:1::1/64")), loop("b", "", inTable(1)), loop("c", "")})
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(base, values{cnatIf("a", vpp_cnat.Interface_POD, false, true), cnatIf("b", vpp_cnat.Interface_OUTSIDE, true, true),
				&vpp_cnat.SourceNAT{Ipv6Address: "fd00::1"}}),
			all(base, values{cnatIf("a", vpp_cnat.Interface_HOST, false, true), cnatIf("b", vpp_cnat.Interface_OUTSIDE, true, false),
				&vpp_cnat.SourceNAT{Ipv6Address: "fd00::2", Ipv4Address: "10.0.0.1"}}),
			values{loop("a", ""), cnatIf("a", vpp_cnat.Interface_HOST, false, true)}, // one interface goes, with its role
			values{loop("a", "")},
		)
	})
}

// An interface with one of two features, as after a crash in between, is done again.
func TestCnatInterfaceHalf(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		a.resync()
		before := vppState(t, a)
		config := values{loop("a", ""), cnatIf("a", vpp_cnat.Interface_POD, false, true)}
		a.resync(config...)
		index, _ := a.idx.IfIndex("a")
		for _, req := range cnatSwitch(index, cnatIf("a", 0, false, true), false)[:1] {
			lane := a.conn.Lane()
			lane.Request(req, func(_ api.Message, err error) {
				if err != nil {
					t.Error(err)
				}
			})
			lane.Flush(t.Context())
		}
		if n, _ := a.resync(config...); n == 0 {
			t.Error("the missing feature was overlooked")
		}
		a.mustNotWrite("repaired", config)
		a.resync()
		if after := vppState(t, a); after != before {
			t.Errorf("VPP is not as before:\n%s", diffText(before, after))
		}
	})
}

// Services without backends are routed by way of an address that rejects. Below a network that rejects by itself VPP 25.10 dies
// of a translation.
func TestCnatRejects(t *testing.T) {
	reject := &vpp_l3.Route{DstNetwork: "100::1/128", Type: vpp_l3.Route_REJECT}
	services := &vpp_l3.Route{DstNetwork: "fd00:96::/112", NextHopAddr: "100::1"}
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			values{reject, services, translation("fd00:96::1", 80, "fd00:1::2")},
			values{reject, services},
			values{loop("a", "")},
		)
	})
}

func TestCnatInvalid(t *testing.T) {
	two := translation("fd00::1", 80, "fd00::2")
	two.Protocol = 7
	six := translation("fd00::1", 80, "fd00::2")
	six.Protocol = vpp_cnat.Translation_SCTP
	for field, v := range map[string]proto.Message{
		"vip":            translation("10.0.0.300", 80, "10.0.0.1"),
		"written":        translation("FD00::1", 80, "fd00::2"),
		"port":           translation("fd00::1", 70000, "fd00::2"),
		"protocol":       two,
		"SCTP":           six,
		"would crash":    translation("fd00::1", 80),
		"room":           translation("fd00::1", 80, manyBackends(cnatMaxBackends+1)...),
		"backends[0].ip": translation("fd00::1", 80, "10.0.0.1"),
		"nothing would":  cnatIf("a", 0, false, false),
		"role":           cnatIf("a", 9, true, true),
		"ipv6_address":   &vpp_cnat.SourceNAT{},
		"not an IPv4":    &vpp_cnat.SourceNAT{Ipv4Address: "fd00::1"},
	} {
		mustRefuse(t, v, field)
	}
}

func mustRefuse(t *testing.T, v proto.Message, text string) {
	t.Helper()
	k := newKinds(Deps{})
	key, err := nb.Key(v)
	if err != nil {
		t.Fatal(err)
	}
	switch v := v.(type) {
	case *vpp_cnat.Translation:
		err = k.cnatTranslationKind().Validate(key, v)
	case *vpp_cnat.Interface:
		err = k.cnatInterfaceKind().Validate(key, v)
	case *vpp_cnat.SourceNAT:
		err = k.cnatSourceKind().Validate(key, v)
	}
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%v: %v, want something about %q", v, err, text)
	}
}

// TestCnatSourceInTurn: an address without the policy would have VPP translate every source, and VPP does not tell the policy. So
// when the policy is refused, there is no address; when the address is not taken away, the policy stays.
func TestCnatSourceInTurn(t *testing.T) {
	f := vppfake.New(vppfake.Config{})
	t.Cleanup(func() { f.Close() })
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := f.Listen(socket); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, &target{socket: socket, fake: f}, Deps{})
	a.resync()
	const none, both = "policy 0 [0.0.0.0 ::]", "policy 2 [0.0.0.0 fd00:16::1]"
	wants := kvs(t, values{&vpp_cnat.SourceNAT{Ipv6Address: "fd00:16::1"}})
	gone := []txn.KV{{Key: wants[0].Key}}
	for _, c := range []struct {
		refused string
		values  []txn.KV
		want    string
	}{
		{"cnat_set_snat_policy", wants, none}, {"", wants, both}, {"cnat_set_snat_addresses", gone, both}, {"", gone, none},
	} {
		if c.refused != "" {
			f.Faults.Add(vppfake.Fault{Message: c.refused, Retval: -56, Nth: 1, Times: 1})
		}
		_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.Update, Values: c.values, NoRetry: true})
		if (err != nil) != (c.refused != "") {
			t.Errorf("refused %q: %v", c.refused, err)
		}
		if got := f.Dump(); strings.Contains(got, "cnat source nat") != (c.want != none) ||
			c.want != none && !strings.Contains(got, c.want) {
			t.Errorf("refused %q: want %s, VPP has\n%s", c.refused, c.want, got)
		}
	}
}

// TestCnatInterfaceThatStays: when VPP refuses a part of switching cnat off, and the transaction is undone, the rest that was done
// is undone, too.
func TestCnatInterfaceThatStays(t *testing.T) {
	f := vppfake.New(vppfake.Config{})
	t.Cleanup(func() { f.Close() })
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := f.Listen(socket); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, &target{socket: socket, fake: f}, Deps{})
	desired := values{loop("pod", "", withIP("fd00:16::1/64")), &vpp_cnat.Interface{Name: "pod", Ipv6: true, Role: vpp_cnat.Interface_POD}}
	a.resync(desired...)
	before := f.Dump()
	f.Faults.Add(vppfake.Fault{Message: "cnat_snat_policy_add_del_if", Retval: -56, Nth: 1, Times: 1})
	_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.Update, Revert: true, Values: []txn.KV{{Key: nb.CnatInterfaceKey("pod")}}})
	if err == nil {
		t.Fatal("VPP has refused nothing")
	}
	if after := f.Dump(); after != before {
		t.Errorf("what has changed:\n%s", diffText(before, after))
	}
}

// An address that a route fences is translated: the route is still seen beneath the translation, and is still ours to remove.
func TestCnatOverRoute(t *testing.T) {
	base := values{loop("nic", "", withIP("fd00:16::1/64")), &vpp_l3.Route{DstNetwork: "::/0", OutgoingInterface: "nic", NextHopAddr: "fd00:16::9"},
		&vpp_l3.Route{DstNetwork: "100::1/128", Type: vpp_l3.Route_REJECT},
		&vpp_l3.Route{DstNetwork: "fd00:96::/112", NextHopAddr: "100::1"}}
	fence := &vpp_l3.Route{DstNetwork: "fd00:20::5/128", NextHopAddr: "100::1"}
	vip := translation("fd00:20::5", 80, "fd00:16::2")
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		inNet := translation("fd00:96::1", 80, "fd00:16::2")
		a.resync(all(base, values{vip, inNet})...)
		a.mustNotWrite("without a fence", all(base, values{vip, inNet}))
		a.resync(all(base, values{vip, inNet, fence})...)
		a.mustNotWrite("with a fence", all(base, values{vip, inNet, fence}))
		a.stop()
		a = newAgent(t, g, Deps{})
		a.mustNotWrite("restarted agent", all(base, values{vip, inNet, fence}))
		a.resync(all(base, values{fence})...)
		a.mustNotWrite("without the translation", all(base, values{fence}))
		a.resync(base...)
	})
}
