package compiler

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	kubemodel "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
)

// TestExceptions checks, for each address of small networks, that a block contains it if none of the exceptions does. The networks are sorted,
// and no two of them are one; a limit below their number is noticed.
func TestExceptions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := pick(t, []string{"10.0.0.0", "fd00::", "0.0.0.0"}, "base")
		network := func(what string, most int) netip.Prefix {
			a := netip.MustParseAddr(base)
			for range rapid.IntRange(0, 31).Draw(t, what) {
				a = a.Next()
			}
			return netip.PrefixFrom(a, a.BitLen()-rapid.IntRange(0, most).Draw(t, "bits")).Masked()
		}
		b := &kubemodel.IPBlock{Cidr: network("block", 5).String()}
		var exceptions []netip.Prefix
		for range rapid.IntRange(0, 8).Draw(t, "exceptions") {
			e := network("exception", 6)
			exceptions, b.Except = append(exceptions, e), append(b.Except, e.String())
		}
		if flip(t, "of the other family") {
			b.Except = append(b.Except, map[bool]string{true: "0.0.0.0/0", false: "::/0"}[base == "fd00::"])
		}
		got, fits := networksOf(nil, b, 100)
		if !fits || !slices.IsSortedFunc(got, netip.Prefix.Compare) {
			t.Fatalf("%v: %v, fits %t", b, got, fits)
		}
		a := netip.MustParseAddr(base)
		for range 128 {
			in := func(n netip.Prefix) bool { return n.Contains(a) }
			want := netip.MustParsePrefix(b.Cidr).Contains(a) && !slices.ContainsFunc(exceptions, in)
			if n := len(slices.DeleteFunc(slices.Clone(got), func(n netip.Prefix) bool { return !in(n) })); want != (n == 1) || n > 1 {
				t.Fatalf("%v: %v has %s %d times, want %t", b, got, a, n, want)
			}
			a = a.Next()
		}
		for i, n := range got {
			parent := netip.PrefixFrom(n.Addr(), n.Bits()-1).Masked()
			if i > 0 && got[i-1].Bits() == n.Bits() && parent.Contains(got[i-1].Addr()) {
				t.Fatalf("%v: %s and %s are one network", b, got[i-1], n)
			}
		}
		if len(got) > 0 {
			if _, fits := networksOf(nil, b, len(got)-1); fits {
				t.Fatalf("%v: %d networks fit into %d", b, len(got), len(got)-1)
			}
		}
		if _, fits := networksOf(nil, b, len(got)); !fits {
			t.Fatalf("%v: %d networks do not fit", b, len(got))
		}
	})
}

// TestManyExceptions checks that a block with 30,000 exceptions is compiled in a short time: in full if there is room for its networks, and
// otherwise as a set that is over its limit and has a short name.
func TestManyExceptions(t *testing.T) {
	for _, tt := range []struct {
		name     string
		except   func(i int) netip.Addr
		networks int // 0: too many
	}{
		{"close together", func(i int) netip.Addr {
			return netip.AddrFrom16([16]byte{13: byte(i >> 15), 14: byte(i >> 7), 15: byte(i << 1)})
		}, 30_000 + 5 + 112},
		{"far apart", func(i int) netip.Addr { return netip.AddrFrom16([16]byte{0: byte(i >> 8), 1: byte(i), 15: 1}) }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &kubemodel.IPBlock{Cidr: "::/0"}
			for i := range 30_000 {
				b.Except = append(b.Except, netip.PrefixFrom(tt.except(i), 128).String())
			}
			c := matrixCluster()
			c.policies[model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: "a", Name: "p"}] = &kubemodel.Policy{Namespace: "a", Name: "p",
				Pods: &kubemodel.LabelSelector{}, Ingress: true, IngressRules: []*kubemodel.PolicyRule{{Peers: []*kubemodel.PolicyPeer{{IpBlock: b}}}}}
			begin := time.Now()
			s, err := c.compile()
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("compiling took %s", took)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, set := range s.Sets {
				if len(set.Members) != tt.networks {
					t.Errorf("%d networks, want %d", len(set.Members), tt.networks)
				}
			}
			if (len(s.Sets) > 0) != (tt.networks > 0) {
				t.Errorf("%d sets", len(s.Sets))
			}
		})
	}
}

// TestTooManyNetworks checks that blocks with more networks than a set may have allow nothing, and deny everything, that they are reported in
// few words, and that blocks that overlap are counted once. Compilers without a limit report them, too.
func TestTooManyNetworks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		blocks []*kubemodel.IPBlock
		large  bool
	}{
		{"as many as allowed", []*kubemodel.IPBlock{{Cidr: "198.51.100.0/24", Except: []string{"198.51.100.128/27"}}}, false},
		{"one exception more", []*kubemodel.IPBlock{{Cidr: "198.51.100.0/24", Except: []string{"198.51.100.128/28"}}}, true},
		{"two blocks", []*kubemodel.IPBlock{{Cidr: "198.51.100.0/24", Except: []string{"198.51.100.128/27"}}, {Cidr: "10.9.0.0/16"}}, true},
		{"three blocks, each within the limit", []*kubemodel.IPBlock{{Cidr: "198.51.100.0/24", Except: []string{"198.51.100.128/27"}},
			{Cidr: "10.8.0.0/24", Except: []string{"10.8.0.128/27"}}, {Cidr: "10.9.0.0/24", Except: []string{"10.9.0.128/27"}}}, true},
		{"the same block often", slices.Repeat([]*kubemodel.IPBlock{{Cidr: "198.51.100.0/24", Except: []string{"198.51.100.128/27"}}}, 9), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, all := New(), &kubemodel.LabelSelector{}
			k.SetLimit(3)
			c, everything := matrixCluster(), NewForAll()
			c.put(k)
			cnp := &kubemodel.ClusterPolicy{Name: "p", Namespaces: all, Pods: all}
			for _, r := range []struct {
				action kubemodel.PolicyRule_Action
				port   uint32
			}{{kubemodel.PolicyRule_ALLOW, 80}, {kubemodel.PolicyRule_DENY, 81}} {
				rule := &kubemodel.PolicyRule{Action: r.action, Ports: []*kubemodel.PolicyPort{{Port: r.port}}}
				for _, b := range tt.blocks {
					rule.Peers = append(rule.Peers, &kubemodel.PolicyPeer{IpBlock: b})
				}
				cnp.IngressRules = append(cnp.IngressRules, rule)
			}
			k.SetClusterPolicy("p", cnp)
			everything.SetClusterPolicy("p", cnp)
			change := k.Flush()
			var rules []string
			for _, r := range change.Policies[0].Ingress {
				rules = append(rules, fmt.Sprint(r.Action, " ", r.Ports[0].First, " ", r.Source != ""))
			}
			want := "allow 80 true, deny 81 true"
			if tt.large {
				want = "deny 81 false"
			}
			if got := strings.Join(rules, ", "); got != want || (len(change.Sets) == 0) != tt.large {
				t.Errorf("rules %s, want %s; %d sets", got, want, len(change.Sets))
			}
			byPolicy, _ := k.Large()
			if (len(byPolicy) > 0) != tt.large {
				t.Errorf("too large are %v", byPolicy)
			}
			for _, meaning := range byPolicy {
				if len(meaning) != 1 || !strings.HasPrefix(meaning[0], "networks of ") {
					t.Errorf("reported is %q", meaning)
				}
			}
			everything.Flush()
			if got := everything.Larger(3); (len(got) > 0) != tt.large {
				t.Errorf("larger than 3 are %v", got)
			}
			k.SetClusterPolicy("p", nil)
			if k.Flush(); len(k.sets) > 0 {
				t.Errorf("left are %v", k.sets)
			}
		})
	}
}
