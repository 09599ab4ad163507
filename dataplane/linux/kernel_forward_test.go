package intdataplane

import (
	"os/exec"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/dataplane/proto"
)

// TestKernelForwardDrop tests that pods reach each other and the outside although Docker or ufw has set the policy of iptables' chain FORWARD
// to DROP, that packets that network policy denies are dropped anyway, and that an uninstall removes what lets them pass.
func TestKernelForwardDrop(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		if out, err := exec.Command("iptables", "--version").Output(); err != nil || !strings.Contains(string(out), "nf_tables") {
			t.Skip("SKIPPED: iptables-nft is not installed")
		}
		for _, iptables := range []string{"iptables", "ip6tables"} {
			n.run(iptables, "-P", "FORWARD", "DROP")
		}
		deny := policy("deny", &proto.Rule{Action: "deny", Protocol: udp(), DstPorts: ports(81)}, &proto.Rule{Action: "allow"})
		n.apply(append(n.open(), deny, n.pod(2, func(ep *proto.WorkloadEndpoint) {
			ep.Tiers = []*proto.TierInfo{{Name: "default", IngressPolicies: []string{"deny"}}}
		}))...)
		n.up("pod1", "pod2", "pod3")
		bothFamilies(func(f table.Family) {
			n.Expect(t,
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(n.addr(2, f), 80), Why: "to another pod"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(n.Outside.Addr(f), 80), Why: "to the outside"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Outside.UDP(n.addr(1, f), 80), Why: "from the outside"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.addr(2, f), 81), Why: "policy denies it"})
		})
		if n.config.RulesConfig.Backend != rules.BackendNFT {
			return
		}
		if err := n.d.Uninstall(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, iptables := range []string{"iptables", "ip6tables"} {
			if text := n.run(iptables, "-S", "FORWARD"); strings.TrimSpace(text) != "-P FORWARD DROP" {
				t.Errorf("after an uninstall %s has\n%s", iptables, text)
			}
		}
	})
}
