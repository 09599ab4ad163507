package intdataplane

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/proto"
)

// TestKernelRename: a driver whose chains have other names replaces one of an older version. No packet is lost, no chain with an old name
// is left, and chains of another product with the same prefix are not changed.
func TestKernelRename(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		n.apply(n.web()...)
		n.up("pod1", "pod2", "pod3")
		// One packet may be between two hooks with old marks from the first, since iptables replaces one table after the other.
		n.guarded(2, func() {
			n.stop()
			// Another product's chain, with the prefix of our old ones.
			n.run("iptables", "-N", "cali-theirs")
			n.run("iptables", "-A", "cali-theirs", "-p", "udp", "--dport", "9", "-j", "RETURN")
			n.config.RulesConfig.ChainPrefix = "contiv-"
			n.start()
			n.apply(n.web()...)
			n.up("pod1", "pod2", "pod3")
		})
		if left := chainsOf(n, "cali-"); len(left) > 0 {
			t.Errorf("chains of the old names are left: %q", left)
		}
		if got := chainsOf(n, "contiv-"); len(got) == 0 {
			t.Error("there are no chains of the new names")
		}
		n.stop()
		n.start()
		n.apply(n.web()...)
		n.up("pod1", "pod2", "pod3")
		if dump, err := n.d.Dump(); err != nil || dump.Writes != 0 {
			t.Errorf("restart: %v, %d objects were written, want none", err, dump.Writes)
		}
		if err := n.d.Uninstall(context.Background()); err != nil {
			t.Fatal(err)
		}
		if left := append(chainsOf(n, "cali-"), chainsOf(n, "contiv-")...); len(left) > 0 {
			t.Errorf("uninstall leaves %q", left)
		}
		if text := n.run("iptables-save", "-t", "filter"); !strings.Contains(text, "-A cali-theirs -p udp -m udp --dport 9 -j RETURN") {
			t.Errorf("the other product's chain is now %q", text)
		}
	})
}

// TestKernelUninstallOfOlder: an uninstall by a version whose chains have new names removes the objects of a version with the old names.
func TestKernelUninstallOfOlder(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		n.apply(n.web()...)
		n.up("pod1")
		n.stop()
		n.config.RulesConfig.ChainPrefix = "contiv-"
		n.start()
		if err := n.d.Uninstall(context.Background()); err != nil {
			t.Fatal(err)
		}
		if left := chainsOf(n, "cali-"); len(left) > 0 {
			t.Errorf("uninstall leaves %q", left)
		}
	})
}

// chainsOf returns the lines that define chains with a prefix, except for the other product's.
func chainsOf(n *node, prefix string) []string {
	var out []string
	text := n.run("iptables-save") + n.run("ip6tables-save") + n.run("nft", "list", "chains")
	for line := range strings.Lines(text) {
		name := strings.TrimSpace(line)
		defines := strings.HasPrefix(name, ":"+prefix) || strings.HasPrefix(name, "chain ") && strings.Contains(name, prefix)
		if defines && !strings.Contains(name, "cali-theirs") {
			out = append(out, name)
		}
	}
	return out
}

// TestMetricNames: with a prefix of our own, all metrics follow Prometheus' conventions, and none has Felix's name.
func TestMetricNames(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		n.stop()
		reg := prometheus.NewPedanticRegistry()
		d, err := New(n.config, Options{NS: n.Host.NS, Metrics: reg, MetricPrefix: "contiv_linux_"})
		if err != nil {
			t.Fatal(err)
		}
		n.d = d
		d.Start()
		n.apply(&proto.InSync{})
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if !strings.HasPrefix(f.GetName(), "contiv_linux_") {
				t.Errorf("metric %s", f.GetName())
			}
		}
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil || len(problems) > 0 {
			t.Errorf("promlint: %v, %v", problems, err)
		}
		if n.config.RulesConfig.Backend == rules.BackendIptables && len(families) < 10 {
			t.Errorf("%d metrics: those of iptables and its sets are missing", len(families))
		}
	})
}
