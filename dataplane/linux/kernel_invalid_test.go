package intdataplane

import (
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/dataplane/proto"
)

// TestKernelInvalid: an unsolicited echo reply is INVALID in connection tracking: it is dropped regardless of policy. With
// DisableConntrackInvalid policy decides. A request passes in either case.
func TestKernelInvalid(t *testing.T) {
	for name, disabled := range map[string]bool{"checked": false, "not checked": true} {
		t.Run(name, func(t *testing.T) {
			onBothBackends(t, Config{RulesConfig: rules.Config{DisableConntrackInvalid: disabled}}, func(t *testing.T, n *node) {
				closed := policy("closed", &proto.Rule{Action: "deny"})
				n.apply(append(n.open(), closed, n.pod(3, withTiers(ingress("closed"))))...)
				n.up("pod1", "pod2", "pod3")
				bothFamilies(func(f table.Family) {
					reply := uint8(0)
					if f == table.IPv6 {
						reply = 129
					}
					want := tabletest.Drop
					if disabled {
						want = tabletest.Arrive
					}
					p := n.Pods[0]
					n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: p.Ping(n.addr(2, f)), Why: "a request"},
						tabletest.Case{Want: want, Probe: p.Message(n.addr(2, f), reply, 0), Why: "a reply without a request"},
						tabletest.Case{Want: tabletest.Drop, Probe: p.Message(n.addr(3, f), reply, 0), Why: "a reply that policy denies"})
				})
			})
		})
	}
}
