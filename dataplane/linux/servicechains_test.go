package intdataplane

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/conntrack"
	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// opList is a backend that records the operations it gets.
type opList struct {
	*rulestest.Fake
	ops []string
}

func (o *opList) SetChains(f table.Family, l table.Layer, chains ...table.Chain) {
	for _, c := range chains {
		o.ops = append(o.ops, fmt.Sprintf("v%d set chain %s", f, c.Name))
	}
	o.Fake.SetChains(f, l, chains...)
}

func (o *opList) DeleteChains(f table.Family, l table.Layer, names ...string) {
	for _, name := range names {
		o.ops = append(o.ops, fmt.Sprintf("v%d delete chain %s", f, name))
	}
	o.Fake.DeleteChains(f, l, names...)
}

func (o *opList) SetHook(f table.Family, l table.Layer, h table.Hook, list ...table.Rule) {
	o.ops = append(o.ops, fmt.Sprintf("v%d hook", f))
	o.Fake.SetHook(f, l, h, list...)
}

func (o *opList) ReplaceSet(f table.Family, s table.Set, members []table.Member) {
	o.ops = append(o.ops, fmt.Sprintf("v%d replace set %s", f, s.ID))
	o.Fake.ReplaceSet(f, s, members)
}

// parsedService returns a service whose endpoints are those of manyEndpoints.
func parsedService(t *testing.T, m *proto.BalancedServiceUpdate) *lb.Service {
	t.Helper()
	s, err := lb.Parse(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestServiceChangesWriteWhatChanged: an update without a change causes no operation, and a change of endpoints sets only the chain of its
// service. The chains and sets that all services share are written when a frontend changes.
func TestServiceChangesWriteWhatChanged(t *testing.T) {
	config, err := Config{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	render, err := rules.NewRenderer(config.RulesConfig)
	if err != nil {
		t.Fatal(err)
	}
	out := &opList{Fake: rulestest.New()}
	c := newChainServices(config.families(), config.RulesConfig, render, out)
	pods := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.2.0.0/16")}
	set := func(msgs ...*proto.BalancedServiceUpdate) []string {
		out.ops = nil
		for _, m := range msgs {
			c.Set(parsedService(t, m))
		}
		c.SetPods(table.IPv4, slices.Clone(pods))
		c.Render()
		return out.ops
	}
	one, two := manyEndpoints(1, 3, 0), manyEndpoints(2, 3, 0)
	if first := set(one, two); len(first) == 0 {
		t.Fatal("two new services: no operation")
	}
	if again := set(manyEndpoints(1, 3, 0), manyEndpoints(2, 3, 0)); len(again) != 0 {
		t.Errorf("the same services: %q, want no operation", again)
	}
	slices.Reverse(pods)
	if again := set(two); len(again) != 0 {
		t.Errorf("the pods' subnets in another order: %q, want no operation", again)
	}
	if changed := set(manyEndpoints(2, 3, 1)); len(changed) != 1 || !strings.Contains(changed[0], "set chain "+prefixServiceGroup) {
		t.Errorf("another endpoint: %q, want the chain of its group", changed)
	}
	moved := manyEndpoints(2, 3, 1)
	moved.Ports[0].Frontends[0].Port = 81
	if changed := set(moved); !slices.Contains(changed, "v4 set chain "+chainServicesIn) || !slices.Contains(changed, "v4 replace set "+setServiceFronts) {
		t.Errorf("another port: %q, want the chains and sets of all services", changed)
	}
	pods = pods[:1]
	if changed := set(); !slices.Contains(changed, "v4 replace set "+setServicePods) {
		t.Errorf("other subnets of pods: %q, want their set", changed)
	}
}

// TestFlowsOfUnchangedServices: an update without a change causes no search for stale connections, also for a service without backends.
func TestFlowsOfUnchangedServices(t *testing.T) {
	remove := func(context.Context, conntrack.Which, func(conntrack.Flow) bool) (int, error) { return 0, nil }
	f := newFlowSweeper(remove, slog.New(slog.DiscardHandler))
	for name, backends := range map[string][]byte{"no backend": nil, "two backends": {1, 2}} {
		if f.compare(dnsService(t, backends...), dnsService(t, backends...)); !f.noted.none() {
			t.Errorf("%s: %d frontends are noted, want none", name, len(f.noted.backends))
		}
	}
	if f.compare(dnsService(t), dnsService(t, 1)); f.noted.none() {
		t.Error("the first backend: no frontend is noted, but the rejected connections are stale")
	}
}
