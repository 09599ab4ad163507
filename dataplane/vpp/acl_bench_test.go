package vpp

import (
	"fmt"
	"testing"
	"time"

	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// TestACLFigures logs the time that changes of an ACL on many interfaces take (docs/adr/0009 quotes it).
func TestACLFigures(t *testing.T) {
	if testing.Short() || !testing.Verbose() {
		t.Skip("skipped: logs figures only (go test -v)")
	}
	rulesFor := func(n, more int) (out []*vpp_acl.ACL_Rule) {
		for i := range n {
			dst := fmt.Sprintf("192.0.%d.%d/32", 2+i/250, 1+i%250)
			out = append(out, allow(fmt.Sprintf("10.%d.0.0/16", (i+more)%250), dst, 80), denyAll(dst, 80))
		}
		return out
	}
	for _, c := range []struct{ interfaces, rules int }{{10, 10}, {100, 10}, {100, 100}, {100, 1000}, {250, 100}} {
		v := vpptest.Start(t, vpptest.Options{HeapMB: 1024, Buffers: 16384})
		a := newAgent(t, &target{name: "real", socket: v.Socket(), cli: v.CLI, real: v}, Deps{})
		var base values
		var names []string
		for n := range c.interfaces {
			names = append(names, fmt.Sprint("i", n))
			base = append(base, loop(names[n], ""))
		}
		a.resync(base...)
		took := func(v *vpp_acl.ACL) time.Duration {
			start := time.Now()
			a.commit(txn.Update, kvs(t, values{v})...)
			return time.Since(start).Round(10 * time.Microsecond)
		}
		t.Logf("%d interfaces, %d addresses: put %v, one range changed %v, one address more %v, one interface less %v",
			c.interfaces, c.rules, took(aclOf("x", names, nil, rulesFor(c.rules, 0)...)),
			took(aclOf("x", names, nil, rulesFor(c.rules, 1)...)), took(aclOf("x", names, nil, rulesFor(c.rules+1, 1)...)),
			took(aclOf("x", names[1:], nil, rulesFor(c.rules+1, 1)...)))
		begin := time.Now()
		a.commit(txn.Update, deletions(t, values{aclOf("x", nil, nil)})...)
		t.Logf("removed %v, put again %v", time.Since(begin).Round(10*time.Microsecond),
			took(aclOf("x", names, nil, rulesFor(c.rules, 0)...)))
		a.stop()
		v.Stop()
	}
}
