package nft

import (
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"net/netip"
	"os/exec"
	"testing"
)

func TestZ(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	everything(b)
	mustApply(t, b)
	n.Host.NS.Do(func() error {
		for _, f := range []string{"ip", "ip6"} {
			out, err := exec.Command("nft", "-n", "list", "table", f, "contiv").CombinedOutput()
			t.Log(string(out), err)
		}
		return nil
	})
	s, _ := b.Dump()
	t.Log(s)
}
func everything(b *Backend) {
	pfx := netip.MustParsePrefix
	act := func(a ...table.Action) []table.Action { return a }
	f := table.IPv4
	b.ReplaceSet(f, table.Set{ID: "s:ip", Type: table.SetIP}, []table.Member{{Net: pfx("10.0.0.1/32")}, {Net: pfx("10.0.0.2/32")}})
	b.ReplaceSet(f, table.Set{ID: "s:net", Type: table.SetNet}, []table.Member{{Net: pfx("10.1.0.0/24")}, {Net: pfx("10.1.1.0/24")}, {Net: pfx("240.0.0.0/4")}})
	b.ReplaceSet(f, table.Set{ID: "s:port", Type: table.SetIPAndPort}, []table.Member{{Net: pfx("10.0.0.1/32"), Proto: 6, Port: 80}})
	ports := []table.PortRange{{First: 80, Last: 80}, {First: 443, Last: 445}}
	many := append([]table.PortRange{{First: 1, Last: 1}, {First: 3, Last: 5}, {First: 7, Last: 7}, {First: 9, Last: 9}, {First: 11, Last: 20}}, ports...)
	b.SetChains(f, table.Filter, table.Chain{Name: "all", Rules: []table.Rule{
		{Match: table.Match{CT: table.CTEstablished | table.CTRelated}, Actions: act(table.Action{Verb: table.Accept})},
		{Match: table.Match{Protocol: 6, DstPorts: ports, SrcNets: []netip.Prefix{pfx("10.0.0.0/8")}}, Actions: act(table.Action{Verb: table.SetMark, Mark: 0x10000, Mask: 0x10000}, table.Action{Verb: table.Return}), Comment: "policy web"},
		{Match: table.Match{Protocol: 6, DstPorts: many}, Actions: act(table.Action{Verb: table.SetMark, Mark: 5, Mask: 0xffffffff})},
		{Match: table.Match{Protocol: 17, NotDstPorts: ports, NotDstNets: []netip.Prefix{pfx("10.0.0.0/8"), pfx("192.168.0.0/16")}}, Actions: act(table.Action{Verb: table.Drop})},
		{Match: table.Match{SrcSets: []string{"s:ip"}, NotDstSets: []string{"s:net"}}, Actions: act(table.Action{Verb: table.Log, Prefix: "denied: "}, table.Action{Verb: table.Drop})},
		{Match: table.Match{DstPortSets: []string{"s:port"}}, Actions: act(table.Action{Verb: table.Goto, Chain: "other"})},
		{Match: table.Match{Protocol: 1, ICMP: &table.ICMP{Type: 8}}, Actions: act(table.Action{Verb: table.Accept})},
		{Match: table.Match{Protocol: 1, NotICMP: &table.ICMP{Type: 3, Code: 4}}, Actions: act(table.Action{Verb: table.Accept})},
		{Match: table.Match{Mark: 0x10000, MarkMask: 0x30000, MarkNot: true, InIface: "cali+", OutIface: "eth0"}, Actions: act(table.Action{Verb: table.Reject})},
		{Match: table.Match{Dst: table.AddrLocal, Src: table.AddrNotLocal, DNATed: true, CTOrigDst: []netip.Prefix{pfx("10.96.0.0/12")}}},
	}}, table.Chain{Name: "other"})
	b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Chains: map[string]string{"cali1": "all", "cali2": "other"}, Default: []table.Rule{{Actions: act(table.Action{Verb: table.Drop})}}})
	b.SetHook(f, table.Filter, table.Forward, table.Rule{Match: table.Match{InIface: "cali+"}, Actions: act(table.Action{Verb: table.Jump, Chain: "from"})})
	b.SetHook(f, table.Raw, table.Prerouting, table.Rule{Match: table.Match{NoReversePath: true}, Actions: act(table.Action{Verb: table.Drop})}, table.Rule{Actions: act(table.Action{Verb: table.NoTrack})})
	b.SetHook(f, table.NAT, table.Prerouting, table.Rule{Match: table.Match{Protocol: 6}, Actions: act(table.Action{Verb: table.DNAT, To: netip.MustParseAddr("10.0.0.1"), Ports: table.PortRange{First: 80, Last: 80}})})
	b.SetHook(f, table.NAT, table.Postrouting, table.Rule{Match: table.Match{SrcNotOnOut: true}, Actions: act(table.Action{Verb: table.Masquerade, FullRandom: true})},
		table.Rule{Match: table.Match{Protocol: 17}, Actions: act(table.Action{Verb: table.SNAT, To: netip.MustParseAddr("10.0.0.1"), Ports: table.PortRange{First: 80, Last: 90}})})
	b.SetHook(table.IPv6, table.Filter, table.Forward, table.Rule{Match: table.Match{SrcNets: []netip.Prefix{pfx("fd00::/8"), pfx("::1/128")}, DstNets: []netip.Prefix{pfx("::/0")}}, Actions: act(table.Action{Verb: table.Accept})})
}
