package iptables

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
)

const benchChains = 5000

// fill adds 5,000 chains of 10 rules to the desired state.
func fill(b *Backend) {
	hooks := table.Chain{Name: "cali-root"}
	for i := range benchChains {
		name := fmt.Sprintf("cali-pol-%d", i)
		hooks.Rules = append(hooks.Rules, jump(name))
		b.SetChains(4, table.Filter, numberedChain(name, 1, 2, 3, 4, 5, 6, 7, 8, 9, i+10))
	}
	b.SetChains(4, table.Filter, hooks)
	b.SetHook(4, table.Filter, table.Forward, jump("cali-root"))
}

// restoreInput returns the input of iptables-restore for writing everything each time.
func restoreInput() []byte {
	var in bytes.Buffer
	fmt.Fprint(&in, "*filter\n:cali-root - [0:0]\n")
	for i := range benchChains {
		fmt.Fprintf(&in, ":cali-pol-%d - [0:0]\n", i)
	}
	for i := range benchChains {
		fmt.Fprintf(&in, "-A cali-root -j cali-pol-%d\n", i)
		for j := range 10 {
			const hash = `-m comment --comment "cv:0123456789abcdef"`
			fmt.Fprintf(&in, "-A cali-pol-%d %s -p 6 -m multiport --dports %d -j DROP\n", i, hash, i+j+1)
		}
	}
	fmt.Fprint(&in, "-A FORWARD -j cali-root\nCOMMIT\n")
	return in.Bytes()
}

func eachVariant(b *testing.B, f func(b *testing.B, v Variant, n *namespace)) {
	for _, v := range []Variant{VariantNFT, VariantLegacy} {
		b.Run(string(v), func(b *testing.B) {
			if !(system{}).has("iptables-" + string(v) + "-restore") {
				b.Skipf("SKIPPED: iptables-%s-restore is not installed", v)
			}
			f(b, v, newNS(b))
		})
	}
}

func BenchmarkCold5000Chains(b *testing.B) {
	eachVariant(b, func(b *testing.B, v Variant, n *namespace) {
		for b.Loop() {
			be := n.open(Config{Variant: v})
			fill(be)
			apply(b, be)
			b.StopTimer()
			n.sh(fmt.Sprintf("iptables-%s -F; iptables-%[1]s -X", v))
			b.StartTimer()
		}
	})
}

func BenchmarkCold5000ChainsExec(b *testing.B) {
	eachVariant(b, func(b *testing.B, v Variant, n *namespace) {
		in := restoreInput()
		for b.Loop() {
			c := command{program: "iptables-" + string(v) + "-restore", args: []string{"--noflush"}, input: in}
			if err := (system{n.ns}).run(context.Background(), c); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			n.sh(fmt.Sprintf("iptables-%s -F; iptables-%[1]s -X", v))
			b.StartTimer()
		}
	})
}

// BenchmarkOneChainOf5000 changes a policy.
func BenchmarkOneChainOf5000(b *testing.B) {
	eachVariant(b, func(b *testing.B, v Variant, n *namespace) {
		be := n.open(Config{Variant: v, PostWriteCheckInterval: -1, RefreshInterval: -1})
		fill(be)
		apply(b, be)
		for i := 0; b.Loop(); i++ {
			be.SetChains(4, table.Filter, numberedChain("cali-pol-77", 1, 2, 3, 4, 5, 6, 7, 8, 9, 60000+i%2))
			apply(b, be)
		}
	})
}

// BenchmarkOneChainOf5000Exec is the minimum cost of a program that saves before it restores.
func BenchmarkOneChainOf5000Exec(b *testing.B) {
	eachVariant(b, func(b *testing.B, v Variant, n *namespace) {
		be := n.open(Config{Variant: v})
		fill(be)
		apply(b, be)
		sys := system{n.ns}
		for i := 0; b.Loop(); i++ {
			in := fmt.Sprintf("*filter\n-R cali-pol-77 10 -p 6 -m multiport --dports %d -j DROP\nCOMMIT\n", 60000+i%2)
			for _, c := range []command{
				{program: "iptables-" + string(v) + "-save", args: []string{"-t", "filter"}},
				{program: "iptables-" + string(v) + "-restore", args: []string{"--noflush"}, input: []byte(in)},
			} {
				if err := sys.run(context.Background(), c); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkOneMemberOf2000Sets adds a pod to a policy's peers, with rules for all sets in place.
func BenchmarkOneMemberOf2000Sets(b *testing.B) {
	eachVariant(b, func(b *testing.B, v Variant, n *namespace) {
		be := n.open(Config{Variant: v, PostWriteCheckInterval: -1, RefreshInterval: -1})
		root := table.Chain{Name: "cali-root"}
		for i := range 2000 {
			id := fmt.Sprint("s", i)
			be.ReplaceSet(4, table.Set{ID: id, Type: table.SetIP}, []table.Member{{Net: nets("10.0.0.1/32")[0]}})
			root.Rules = append(root.Rules, table.Rule{Match: table.Match{SrcSets: []string{id}}, Actions: act(table.Drop)})
		}
		be.SetChains(4, table.Filter, root)
		be.SetHook(4, table.Filter, table.Forward, jump("cali-root"))
		apply(b, be)
		m := [][]table.Member{{{Net: nets("10.0.0.2/32")[0]}}, nil}
		for i := 0; b.Loop(); i++ {
			be.ChangeSet(4, "s77", m[i%2], m[(i+1)%2])
			apply(b, be)
		}
	})
}

// BenchmarkRestart5000Chains is a new process that finds everything in place.
func BenchmarkRestart5000Chains(b *testing.B) {
	eachVariant(b, func(b *testing.B, v Variant, n *namespace) {
		be := n.open(Config{Variant: v})
		fill(be)
		apply(b, be)
		for b.Loop() {
			again := n.open(Config{Variant: v})
			fill(again)
			if r := apply(b, again); r.Writes != 0 {
				b.Fatalf("%d writes", r.Writes)
			}
		}
	})
}

// BenchmarkOnePodOf1000 adds an endpoint's chain and its entry in the dispatch chain.
func BenchmarkOnePodOf1000(b *testing.B) {
	eachVariant(b, func(b *testing.B, v Variant, n *namespace) {
		be := n.open(Config{Variant: v, PostWriteCheckInterval: -1, RefreshInterval: -1})
		d := table.Dispatch{Name: "cali-from", Chains: map[string]string{}, Default: []table.Rule{{Actions: act(table.Drop)}}}
		add := func(i int) {
			name := fmt.Sprintf("cali%011x", uint64(i+1)*0x9e3779b97f4a7c15>>20)
			be.SetChains(4, table.Filter, numberedChain("fw-"+name, 1, 2, 3))
			d.Chains[name] = "fw-" + name
		}
		for i := range 1000 {
			add(i)
		}
		be.SetDispatch(4, table.Filter, d)
		be.SetHook(4, table.Filter, table.Forward, jump("cali-from"))
		apply(b, be)
		for i := 1000; b.Loop(); i++ {
			add(i)
			be.SetDispatch(4, table.Filter, d)
			apply(b, be)
		}
	})
}
