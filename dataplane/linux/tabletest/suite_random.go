package tabletest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// model is a desired state that is edited at random and sent to a backend.
type model struct {
	rng    *rand.Rand
	chains map[string]table.Chain
	forks  map[string]table.Dispatch
	sets   map[string]map[table.Member]bool
	hook   []table.Rule
}

const (
	modelChains = 8
	modelSets   = 4
	editRounds  = 150
	minRounds   = 20
	editTime    = 4 * time.Second // for a backend that needs processes for every change
)

func modelSet(i int) table.Set {
	return table.Set{ID: fmt.Sprintf("m%d", i), Type: [...]table.SetType{table.SetIP, table.SetIPAndPort, table.SetNet,
		table.SetNet}[i]}
}

// testRandomEdits: for any order of edits and applies, the kernel's state is the same as after one build.
func testRandomEdits(t *testing.T, r *rig) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &model{rng: rand.New(rand.NewPCG(seed, 1)), chains: map[string]table.Chain{}, forks: map[string]table.Dispatch{},
		sets: map[string]map[table.Member]bool{}}
	for i := range modelSets {
		m.replaceSet(r.b, i)
	}
	start := time.Now()
	for round := 0; round < editRounds && (round < minRounds || time.Since(start) < editTime); round++ {
		for range 1 + m.rng.IntN(5) {
			m.edit(r.b)
		}
		if round%3 != 0 {
			r.apply()
		}
		if round == minRounds/2 {
			r.restart()
			m.report(r.b)
		}
	}
	r.apply()
	edited := r.dump()
	r.b.Resync(true, true)
	if res := r.apply(); res.Writes != 0 {
		t.Errorf("a resync after the edits wrote %d objects", res.Writes)
	}
	fresh := NewNet(t, Options{Pods: 1})
	one := &rig{t: t, net: fresh, open: r.open, b: openBackend(t, r.open, fresh.Host.NS)}
	m.report(one.b)
	one.apply()
	if built := one.dump(); built != edited {
		t.Errorf("edits and one build differ (- one build, + edits):\n%s", diff(built, edited))
	}
}

// report sends all of the state to a backend.
func (m *model) report(b table.Backend) {
	for i := range modelSets {
		var members []table.Member
		for mem := range m.sets[modelSet(i).ID] {
			members = append(members, mem)
		}
		b.ReplaceSet(table.IPv4, modelSet(i), members)
	}
	for _, c := range m.chains {
		b.SetChains(table.IPv4, table.Filter, c)
	}
	for _, d := range m.forks {
		b.SetDispatch(table.IPv4, table.Filter, d)
	}
	b.SetHook(table.IPv4, table.Filter, table.Forward, m.hook...)
}

// edit makes one change. Chains refer only to existing chains with higher numbers.
func (m *model) edit(b table.Backend) {
	f := table.IPv4
	switch m.rng.IntN(8) {
	case 0, 1, 2:
		c := chain(fmt.Sprintf("c%d", m.rng.IntN(modelChains)))
		if _, fork := m.forks[c.Name]; fork {
			return
		}
		for range m.rng.IntN(6) {
			c.Rules = append(c.Rules, m.rule(c.Name))
		}
		m.chains[c.Name] = c
		b.SetChains(f, table.Filter, c)
	case 3:
		d := table.Dispatch{Name: fmt.Sprintf("d%d", m.rng.IntN(2)), Chains: map[string]string{}, Default: []table.Rule{m.rule("c9")}}
		for i := range m.rng.IntN(20) {
			if target := m.below(""); target != "" {
				d.Chains[fmt.Sprintf("cali%d", i)] = target
			}
		}
		m.forks[d.Name] = d
		b.SetDispatch(f, table.Filter, d)
	case 4:
		m.replaceSet(b, m.rng.IntN(modelSets))
	case 5, 6:
		m.changeSet(b, m.rng.IntN(modelSets))
	case 7:
		m.hook = []table.Rule{m.rule(""), m.rule("")}
		for name := range m.forks {
			m.hook = append(m.hook, jump(always, name))
		}
		b.SetHook(f, table.Filter, table.Forward, m.hook...)
	}
}

// below returns a chain that a chain of this name may refer to, "" if there is none.
func (m *model) below(name string) string {
	for range 10 {
		target := fmt.Sprintf("c%d", m.rng.IntN(modelChains))
		if _, ok := m.chains[target]; ok && target > name {
			return target
		}
	}
	return ""
}

func (m *model) rule(of string) table.Rule {
	var match table.Match
	switch m.rng.IntN(6) {
	case 0:
		match.SrcSets = []string{[]string{"m0", "m2", "m3"}[m.rng.IntN(3)]}
	case 1:
		match.DstPortSets = []string{"m1"}
	case 2:
		match.DstNets = []netip.Prefix{m.member(2).Net, m.member(2).Net}
	case 3:
		match.Protocol, match.DstPorts = 6, []table.PortRange{{First: 1, Last: uint16(m.rng.IntN(9) + 1)}, {First: 20, Last: 20}}
	case 4:
		match.InIface, match.CT = "cali+", table.CTNew
	}
	if target := m.below(of); target != "" && m.rng.IntN(2) == 0 {
		return jump(match, target)
	}
	return []table.Rule{accept(match), drop(match), returns(match), mark(match, 0x10000, 0x10000)}[m.rng.IntN(4)]
}

func (m *model) member(set int) table.Member {
	a := netip.AddrFrom4([4]byte{10, 0, byte(m.rng.IntN(2)), byte(m.rng.IntN(64))})
	switch modelSet(set).Type {
	case table.SetIPAndPort:
		return table.Member{Net: host(a), Proto: 6, Port: uint16(m.rng.IntN(4))}
	case table.SetNet:
		return table.Member{Net: netip.PrefixFrom(a, 32-m.rng.IntN(10)).Masked()}
	default:
		return table.Member{Net: host(a)}
	}
}

func (m *model) replaceSet(b table.Backend, i int) {
	set := map[table.Member]bool{}
	var list []table.Member
	for range m.rng.IntN(40) {
		if mem := m.member(i); !set[mem] {
			set[mem] = true
			list = append(list, mem)
		}
	}
	m.sets[modelSet(i).ID] = set
	b.ReplaceSet(table.IPv4, modelSet(i), list)
}

func (m *model) changeSet(b table.Backend, i int) {
	set := m.sets[modelSet(i).ID]
	var add, remove []table.Member
	for range m.rng.IntN(10) {
		mem := m.member(i)
		if m.rng.IntN(2) == 0 {
			add = append(add, mem)
		} else {
			remove = append(remove, mem)
		}
	}
	for _, mem := range remove {
		delete(set, mem)
	}
	kept := add[:0:0]
	for _, mem := range add {
		set[mem] = true
		kept = append(kept, mem)
	}
	// Members in both lists stay: they are added last.
	b.ChangeSet(table.IPv4, modelSet(i).ID, nil, remove)
	b.ChangeSet(table.IPv4, modelSet(i).ID, kept, nil)
}
