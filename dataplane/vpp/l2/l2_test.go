package l2

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

func members(n int) []*vpp_l2.BridgeDomain_Interface {
	var all []*vpp_l2.BridgeDomain_Interface
	for i := range n {
		all = append(all, &vpp_l2.BridgeDomain_Interface{Name: fmt.Sprintf("if%d", i)})
	}
	return all
}

func TestDiffBridge(t *testing.T) {
	list := members(5)
	from := &vpp_l2.BridgeDomain{Name: "bd", Interfaces: list}
	changed := &vpp_l2.BridgeDomain_Interface{Name: "if1", SplitHorizonGroup: 1}
	copied := members(5)
	for _, c := range []struct {
		to       []*vpp_l2.BridgeDomain_Interface
		put, del []string
	}{
		{list, nil, nil},
		{copied, nil, nil},
		{append(slices.Clone(list), &vpp_l2.BridgeDomain_Interface{Name: "new"}), []string{"new"}, nil},
		{list[1:], nil, []string{"if0"}},
		{nil, nil, []string{"if0", "if1", "if2", "if3", "if4"}},
		{[]*vpp_l2.BridgeDomain_Interface{list[4], list[3], list[2], list[1], list[0]}, nil, nil},
		{[]*vpp_l2.BridgeDomain_Interface{list[0], changed, list[2], list[3], list[4]}, []string{"if1"}, nil},
		{[]*vpp_l2.BridgeDomain_Interface{list[0], list[4], {Name: "x"}}, []string{"x"}, []string{"if1", "if2", "if3"}},
	} {
		var put, del []string
		diffBridge("", from, &vpp_l2.BridgeDomain{Name: "bd", Interfaces: c.to},
			func(_, key string, _ any) { put = append(put, strings.TrimPrefix(key, nb.BDInterfaceKeyPrefix("bd"))) },
			func(key string) { del = append(del, strings.TrimPrefix(key, nb.BDInterfaceKeyPrefix("bd"))) })
		slices.Sort(del)
		if !slices.Equal(put, c.put) || !slices.Equal(del, c.del) {
			t.Errorf("put %v del %v, want %v %v", put, del, c.put, c.del)
		}
	}
}

// Adding a member to 2,000 costs microseconds.
func BenchmarkAddMember(b *testing.B) {
	k := &descriptors{Kit: &kit.Kit{Names: kit.LongNames{}}}
	list := members(2000)
	from := &vpp_l2.BridgeDomain{Name: "bd", Interfaces: list}
	to := &vpp_l2.BridgeDomain{Name: "bd", Interfaces: append(slices.Clone(list), &vpp_l2.BridgeDomain_Interface{Name: "new"})}
	puts := 0
	for b.Loop() {
		if err := k.validateBridge(to); err != nil {
			b.Fatal(err)
		}
		diffBridge("", from, to, func(string, string, any) { puts++ }, func(string) { b.Fatal("deleted") })
	}
	if puts != b.N {
		b.Fatalf("%d puts", puts)
	}
}
