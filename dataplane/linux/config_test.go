package intdataplane

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/iptables"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
)

func TestConfigDefaults(t *testing.T) {
	c, err := Config{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.validate(); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
	hostname, _ := os.Hostname()
	if c.RulesConfig.Hostname != hostname || c.IPIPMTU != 1440 || c.MaxIPSetSize != 1048576 ||
		c.IptablesInsertMode != "insert" || c.NetlinkTimeout != 10*time.Second {
		t.Errorf("%+v", c)
	}
	if c.IPSetsRefreshInterval != 0 || c.RouteRefreshInterval != 0 || c.IptablesRefreshInterval != 0 {
		t.Error("a refresh that was not asked for")
	}
	excludes := c.IfaceMonitorConfig.InterfaceExcludes
	if len(excludes) != 1 || !excludes[0].MatchString("kube-ipvs0") || excludes[0].MatchString("kube-ipvs01") ||
		c.IfaceMonitorConfig.ResyncInterval != 10*time.Second {
		t.Errorf("interface monitor: %+v", c.IfaceMonitorConfig)
	}
}

// TestConfigReachesItsPart: each field that is only passed on reaches its destination.
func TestConfigReachesItsPart(t *testing.T) {
	c, err := Config{IPIPMTU: 1400, NetlinkTimeout: 3 * time.Second, IptablesPostWriteCheckInterval: 4 * time.Second,
		IptablesInsertMode: "append", IptablesLockFilePath: "/tmp/lock", IptablesLockTimeout: 5 * time.Second,
		IptablesLockProbeInterval: 6 * time.Millisecond,
		RulesConfig: rules.Config{RouteProtocol: 77, VXLANVNI: 7, VXLANPort: 8472, VXLANMTU: 1300, VXLANDevice: "vx",
			IPIPTunnelAddress:  addr("10.0.0.1"),
			IptablesMarkAccept: 1, IptablesMarkPass: 2, IptablesMarkScratch0: 4, IptablesMarkScratch1: 8}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{RouteGrace: 9 * time.Second}
	if r := routeConfig(table.IPv6, nil, c, o); r.Family != table.IPv6 || r.Protocol != 77 || r.Timeout != 3*time.Second ||
		r.Grace != 9*time.Second || r.Conntrack == nil {
		t.Errorf("routes: %+v", r)
	}
	if v := vxlanConfig(table.IPv4, c, o); v.Device != "vx" || v.VNI != 7 || v.Port != 8472 || v.MTU != 1300 ||
		v.Family != table.IPv4 || v.Protocol != 77 || v.Timeout != 3*time.Second {
		t.Errorf("VXLAN: %+v", v)
	}
	if i := ipipConfig(c, o); i.MTU != 1400 || i.Address != netip.MustParseAddr("10.0.0.1") || i.Device != "tunl0" {
		t.Errorf("IPIP: %+v", i)
	}
	want := iptables.Config{InsertMode: iptables.Append, ScratchMarks: [2]uint32{4, 8}, RefreshInterval: -1,
		PostWriteCheckInterval: 4 * time.Second,
		LockFilePath:           "/tmp/lock", LockTimeout: 5 * time.Second, LockProbeInterval: 6 * time.Millisecond}
	got := iptablesConfig(c, o)
	if got.InsertMode != want.InsertMode || got.ScratchMarks != want.ScratchMarks || got.RefreshInterval != want.RefreshInterval ||
		got.PostWriteCheckInterval != want.PostWriteCheckInterval || got.LockFilePath != want.LockFilePath ||
		got.LockTimeout != want.LockTimeout || got.LockProbeInterval != want.LockProbeInterval || got.ChainPrefixes[0] != "cali-" {
		t.Errorf("iptables: %+v", got)
	}
}
