package vpp

import (
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pnat"

	vpp_pnat "contiv.dev/vswitch/dataplane/nb/vpp/pnat"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// pnatLines is pnat's part of vppState.
func pnatLines(lane *conn.Lane, add func(string, ...any), end func(error)) {
	conn.Dump(lane, &pnat.PnatBindingsGet{}, func(d *pnat.PnatBindingsDetails) { add("pnat %v", *d) }, end)
	conn.Dump(lane, &pnat.PnatInterfacesGet{}, func(d *pnat.PnatInterfacesDetails) { add("pnat interface %v", *d) }, end)
}

// aliases are those of places "203.0.113.1:80", "…/udp", each the same address with 254 in front.
func aliases(name string, places ...string) *vpp_pnat.Interface {
	v := &vpp_pnat.Interface{Name: name}
	for _, p := range places {
		m := port(p)
		_, rest, _ := strings.Cut(m.ExternalIp, ".")
		a := &vpp_pnat.Interface_Alias{Ip: m.ExternalIp, Port: m.ExternalPort, Alias: "254." + rest}
		if strings.HasSuffix(p, "/udp") {
			a.Protocol = vpp_pnat.Interface_UDP
		}
		v.Aliases = append(v.Aliases, a)
	}
	return v
}

// aliasNode has two pods.
func aliasNode() values {
	return all(natOn(), values{loop("a", "", withIP("10.1.1.1/24")), loop("b", "", withIP("10.1.2.1/24")),
		natIf("a", true, true, false), natIf("b", true, true, false)})
}

func TestAliases(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(aliasNode(), values{
				aliases("a", "203.0.113.1:80", "203.0.113.1:80/udp", "203.0.113.2:80"), aliases("b", "203.0.113.1:80")}),
			all(aliasNode(), values{aliases("a", "203.0.113.2:80", "203.0.113.1:81"), aliases("b", "203.0.113.1:80", "203.0.113.3:80")}),
			all(aliasNode(), values{aliases("a", "203.0.113.2:80")}),
			all(aliasNode(), values{aliases("a", "203.0.113.4:80"), aliases("b", "203.0.113.4:80")}),
			values{natOn()[0], loop("a", "", withIP("10.1.1.1/24")), natIf("a", true, true, false), aliases("a", "203.0.113.4:80")},
		)
	})
}

// What goes away of an interface's aliases leaves the others working, although VPP switches them all off.
func TestAliasGoes(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		a.resync(all(aliasNode(), values{aliases("a", "203.0.113.1:80", "203.0.113.2:80")})...)
		a.commit(txn.Update, kvs(t, values{aliases("a", "203.0.113.2:80")})...)
		var found []pnat.PnatInterfacesDetails
		conn.Dump(a.lane, &pnat.PnatInterfacesGet{}, func(d *pnat.PnatInterfacesDetails) { found = append(found, *d) },
			func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		a.lane.Flush(t.Context())
		if len(found) != 1 || !found[0].Enabled[0] || !found[0].Enabled[1] {
			t.Errorf("%v", found)
		}
	})
}

// Whatever somebody did to the aliases is found, and undone. Rules on no interface, as a killed agent leaves them, go.
func TestAliasesChanged(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		a.resync(aliasNode()...)
		before := vppState(t, a)
		desired := all(aliasNode(), values{aliases("a", "203.0.113.1:80", "203.0.113.2:80"), aliases("b", "203.0.113.1:80")})
		a.resync(desired...)
		state := vppState(t, a)
		index, _ := a.idx.IfIndex("a")
		ifx := interface_types.InterfaceIndex(index)
		stray := pnatRulesOf(aliases("a", "203.0.113.9:80"))[0]
		number := func(r pnatRule) (id uint32) {
			conn.Call(a.lane, &pnat.PnatFlowLookup{SwIfIndex: ifx, Attachment: r.hook(), Match: r.match()},
				func(reply *pnat.PnatFlowLookupReply, err error) {
					if err != nil {
						t.Fatal(err)
					}
					id = reply.BindingIndex
				})
			a.lane.Flush(t.Context())
			return id
		}
		off := func(r pnatRule) func() api.Message {
			return func() api.Message { return pnatDetach(index, r, number(r)) }
		}
		lose := func() api.Message { return stray.binding() }
		rules := pnatRulesOf(desired[len(desired)-2].(*vpp_pnat.Interface))
		for _, tt := range []struct {
			what string
			do   []func() api.Message
		}{
			{"one way in is off", []func() api.Message{off(rules[0])}},
			{"one way out is off", []func() api.Message{off(rules[3])}},
			{"lost ones", []func() api.Message{lose, lose}},
			{"off, and lost", []func() api.Message{lose, off(rules[1]), lose}},
		} {
			what := tt.what
			for _, do := range tt.do {
				a.lane.Request(do(), func(_ api.Message, err error) {
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				})
			}
			a.lane.Flush(t.Context())
			a.resync(desired...)
			a.mustNotWrite(what, desired)
			if after := vppState(t, a); after != state {
				t.Errorf("%s: VPP is not as before:\n%s", what, diffText(state, after))
			}
		}
		a.resync(aliasNode()...)
		if after := vppState(t, a); after != before {
			t.Errorf("VPP is not as before:\n%s", diffText(before, after))
		}
	})
}

func TestAliasValidation(t *testing.T) {
	bad := func(change func(*vpp_pnat.Interface_Alias)) *vpp_pnat.Interface {
		v := aliases("a", "203.0.113.1:80")
		change(v.Aliases[0])
		return v
	}
	for what, v := range map[string]*vpp_pnat.Interface{
		"no name": aliases("", "203.0.113.1:80"), "none": aliases("a"), "twice": aliases("a", "203.0.113.1:80", "203.0.113.1:80"),
		"one alias for two": aliases("a", "203.0.113.1:80", "204.0.113.1:80"),
		"IPv6":              bad(func(a *vpp_pnat.Interface_Alias) { a.Ip = "fd00::1" }),
		"no alias":          bad(func(a *vpp_pnat.Interface_Alias) { a.Alias = "" }),
		"port":              bad(func(a *vpp_pnat.Interface_Alias) { a.Port = 65536 }),
		"protocol":          bad(func(a *vpp_pnat.Interface_Alias) { a.Protocol = 7 }),
	} {
		if err := validateAliases(v); err == nil {
			t.Errorf("%s: %v is valid", what, v)
		}
	}
	if err := validateAliases(aliases("a", "203.0.113.1:80", "203.0.113.1:80/udp", "203.0.113.1:81")); err != nil {
		t.Error(err)
	}
}

// TestWithoutPnat: a VPP without the plugin does all the rest, and the error says what to write.
func TestWithoutPnat(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{Config: "plugins {\n  plugin pnat_plugin.so { disable }\n}\n"})
	a := newAgent(t, &target{name: "real", socket: v.Socket(), cli: v.CLI, real: v}, Deps{})
	a.resync(aliasNode()...)
	a.mustNotWrite("without aliases", aliasNode())
	values := kvs(t, all(aliasNode(), values{aliases("a", "203.0.113.1:80")}))
	_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.FullResync, Values: values, NoRetry: true})
	if err == nil || !strings.Contains(err.Error(), "enable pnat_plugin.so") {
		t.Errorf("%v", err)
	}
	a.resync(aliasNode()...)
}
