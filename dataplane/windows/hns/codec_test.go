package hns_test

import (
	"errors"
	"net/netip"
	"testing"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
)

// TestEncode compares the data for Windows byte for byte: the names are HNS's, and empty fields must be missing.
func TestEncode(t *testing.T) {
	net := netip.MustParsePrefix
	for want, acl := range map[string]hns.ACL{
		`{"Type":"ACL","Id":"x","Protocol":6,"Action":"Allow","Direction":"In","RemoteAddresses":"10.0.0.0/8,192.0.2.1/32","LocalPorts":"80,8000-8100","RuleType":"Switch","Priority":1000}`: {
			ID: "x", Protocol: 6, Action: hns.Allow, Direction: hns.In, RemoteAddresses: []netip.Prefix{net("10.0.0.0/8"), net("192.0.2.1/32")},
			LocalPorts: []hns.PortRange{{First: 80, Last: 80}, {First: 8000, Last: 8100}}, RuleType: hns.Switch, Priority: 1000},
		`{"Type":"ACL","Protocol":256,"Action":"Block","Direction":"Out","LocalAddresses":"fd00::/64","RemotePorts":"0-9","RuleType":"Host"}`: {
			Protocol: hns.AnyProtocol, Action: hns.Block, Direction: hns.Out, LocalAddresses: []netip.Prefix{net("fd00::/64")},
			RemotePorts: []hns.PortRange{{First: 0, Last: 9}}, RuleType: hns.Host},
	} {
		raw, err := hns.Encode(acl)
		if err != nil || string(raw) != want {
			t.Errorf("%s, %v\nwant %s", raw, err, want)
		}
		back, is, err := hns.Decode(raw)
		if err != nil || !is || !back.Equal(acl) || back.ID != acl.ID {
			t.Errorf("%+v, %v, %v; want %+v", back, is, err, acl)
		}
	}
}

func TestDecode(t *testing.T) {
	for text, wrong := range map[string]bool{
		`{"Type":"OutBoundNAT"}`: false, `{"Type":"ACL","LocalAddresses":"any"}`: true, `{"Type":"ACL","LocalPorts":"9-1"}`: true,
		`{"Type":"ACL","Protocols":"tcp"}`: true, `{"Type":"ACL","Action":1}`: true, `nonsense`: true,
	} {
		if _, _, err := hns.Decode([]byte(text)); (err != nil) != wrong {
			t.Errorf("%s: %v", text, err)
		}
	}
	acl, is, err := hns.Decode([]byte(`{"Type":"ACL","Action":"Allow","Direction":"In","LocalPort":80,"RemoteAddresses":"10.0.0.1"}`))
	if err != nil || !is || acl.Protocol != hns.AnyProtocol || len(acl.LocalPorts) != 1 || acl.LocalPorts[0].First != 80 ||
		acl.RemoteAddresses[0] != netip.MustParsePrefix("10.0.0.1/32") {
		t.Errorf("%+v, %v, %v", acl, is, err)
	}
}

// TestNotWindows: other systems have no service, and the error reports it.
func TestNotWindows(t *testing.T) {
	if _, err := hns.Open(); err != nil && !errors.Is(err, hns.ErrNotWindows) {
		t.Error(err)
	}
	if _, err := hcn.Open(); err != nil && !errors.Is(err, hcn.ErrNotWindows) {
		t.Error(err)
	}
}
