package nft

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/nft/nfttest"
	"contiv.dev/vswitch/dataplane/linux/nft/policy"
	"contiv.dev/vswitch/dataplane/linux/nft/services"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
)

// apply applies pending changes and returns the number of writes.
func apply(t *testing.T, b interface {
	Apply(context.Context) table.Result
}) int {
	t.Helper()
	res := b.Apply(t.Context())
	if res.Err != nil || len(res.Broken) > 0 {
		t.Fatalf("%+v", res)
	}
	return res.Writes
}

// run runs the nft tool in the host's namespace.
func run(t *testing.T, n *tabletest.Net, command string) string {
	t.Helper()
	var out []byte
	err := n.Host.NS.Do(func() (err error) {
		out, err = exec.Command("nft", command).CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("nft %s: %v: %.500s", command, err, out)
	}
	return string(out)
}

// TestTwoTables: tables that share their sockets are each notified of other programs' changes to them, and not of our writes to the other.
func TestTwoTables(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b, err := policy.Open(policy.Options{NS: n.Host.NS})
	if err != nil {
		t.Fatal(err)
	}
	// Chains of services that are no longer used become due for removal after a grace period: that is pending, too, but not another program's
	// change. So the grace periods do not end during the test.
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	b.View().Grace.Hold(held)
	b.SetChains(table.IPv4, table.Filter, table.Chain{Name: "all", Rules: []table.Rule{{Actions: []table.Action{{Verb: table.Accept}}}}})
	b.SetHook(table.IPv4, table.Filter, table.Forward, table.Rule{Actions: []table.Action{{Verb: table.Jump, Chain: "all"}}})
	apply(t, b)
	s, err := services.Open(services.Options{NS: n.Host.NS, Beside: b.View()})
	if err != nil {
		t.Fatal(err)
	}
	many := func(name string) *lb.Service {
		var backends []string
		for i := range 10_000 {
			backends = append(backends, fmt.Sprintf("10.1.%d.%d", i/250, i%250))
		}
		return nfttest.Service(t, name, "10.96.0.1", 0, backends...)
	}
	s.Set(many("a"))
	apply(t, s)
	if b.Pending() || s.Pending() {
		t.Error("another program is said to have written")
	}
	run(t, n, "flush chain ip contiv filter-all")
	s.Delete("ns/a")
	s.Set(many("b"))
	apply(t, s)
	if !b.Pending() {
		t.Error("a change of the first table was missed")
	}
	if s.Pending() {
		t.Error("a change of the first table was taken for one of the second")
	}
	run(t, n, "flush map ip contiv-services backends-0; flush map ip contiv-services backends-1;"+
		"flush map ip contiv-services backends-2; flush map ip contiv-services backends-3")
	if apply(t, b) == 0 {
		t.Error("the first table was not repaired")
	}
	if !s.Pending() || apply(t, s) < 2500 || b.Pending() {
		t.Error("the second table was not repaired")
	}
	b.Close()
	if writes := apply(t, s); writes != 0 || apply(t, b) != 0 {
		t.Error("with new sockets something was written")
	}
	s.Close()
}

// TestSupported: this kernel is supported, and the test leaves nothing behind.
func TestSupported(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	if err := Supported(n.Host.NS); err != nil {
		t.Fatal(err)
	}
	if out := run(t, n, "list ruleset"); strings.TrimSpace(out) != "" {
		t.Errorf("left behind:\n%s", out)
	}
}
