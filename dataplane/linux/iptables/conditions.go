package iptables

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// conditions is a match in iptables' terms: one rule can hold all of args; each of lists needs several rules.
type conditions struct {
	never    bool
	args     []string
	lists    []list
	sets     []setRef
	markMask uint32
}

// list holds if one of its alternatives does; each alternative fits into one rule. With not, it holds if none does.
type list struct {
	not  bool
	need string // arguments that iptables requires in a rule with an alternative; they are in the conditions' args too
	any  []string
}

// IP protocol numbers.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoDCCP   = 33
	protoICMPv6 = 58
	protoSCTP   = 132
	protoUDPL   = 136
)

func (c *conditions) always(arg string) { c.args = append(c.args, arg) }

// anyOf adds the condition that one of the alternatives holds.
func (c *conditions) anyOf(need string, alternatives []string) {
	switch len(alternatives) {
	case 0:
		c.never = true
	case 1:
		c.always(alternatives[0])
	default:
		c.lists = append(c.lists, list{need: need, any: alternatives})
	}
}

func (l *lowerer) conditions(m table.Match) (*conditions, error) {
	c := &conditions{markMask: m.MarkMask}
	for _, step := range []func(*conditions, table.Match) error{
		l.ifaces, l.protocol, l.nets, l.sets, l.ports, l.icmp, l.connection, l.other,
	} {
		if err := step(c, m); err != nil {
			return nil, err
		}
		if c.never {
			return c, nil
		}
	}
	return c, nil
}

func (l *lowerer) ifaces(c *conditions, m table.Match) error {
	for _, i := range []struct{ flag, name string }{{"-i ", m.InIface}, {"-o ", m.OutIface}} {
		if i.name == "" || i.name == "+" {
			continue
		}
		if err := word("interface", i.name, maxIface); err != nil {
			return err
		}
		c.always(i.flag + i.name)
	}
	return nil
}

func (l *lowerer) protocol(c *conditions, m table.Match) error {
	switch {
	case m.Protocol != 0 && m.Protocol == m.NotProtocol:
		c.never = true
	case m.Protocol != 0:
		c.always(protocolArg(m.Protocol))
	case m.NotProtocol != 0:
		c.always("! -p " + strconv.Itoa(int(m.NotProtocol)))
	}
	return nil
}

func protocolArg(p uint8) string {
	if p == 0 {
		return ""
	}
	return "-p " + strconv.Itoa(int(p))
}

// nets adds the conditions of all lists of prefixes. A rule can have only one source and one destination, each negated or not.
func (l *lowerer) nets(c *conditions, m table.Match) error {
	for _, side := range []struct {
		flag     string
		yes, not []netip.Prefix
	}{
		{"-s ", m.SrcNets, m.NotSrcNets},
		{"-d ", m.DstNets, m.NotDstNets},
	} {
		yes, err := l.family1(side.yes)
		if err != nil {
			return err
		}
		not, err := l.family1(side.not)
		if err != nil {
			return err
		}
		everything := func(p netip.Prefix) bool { return p.Bits() == 0 }
		room := true
		if len(side.yes) > 0 && !slices.ContainsFunc(yes, everything) {
			c.anyOf("", prefixed(side.flag, yes))
			room = false // also with several alternatives: they may become separate rules
		}
		switch {
		case slices.ContainsFunc(not, everything):
			c.never = true
		case len(not) == 1 && room:
			c.always("! " + side.flag + not[0].String())
		case len(not) > 0:
			c.lists = append(c.lists, list{not: true, any: prefixed(side.flag, not)})
		}
	}
	for _, tracked := range []struct {
		flag string
		nets []netip.Prefix
	}{
		{"--ctorigdst ", m.CTOrigDst}, {"--ctorigsrc ", m.CTOrigSrc}, {"--ctreplsrc ", m.CTReplSrc},
	} {
		nets, err := l.family1(tracked.nets)
		if err != nil {
			return err
		}
		if len(tracked.nets) > 0 {
			c.anyOf("", prefixed("-m conntrack "+tracked.flag, nets))
		}
	}
	return nil
}

// family1 returns the prefixes of the lowerer's family, without their host bits.
func (l *lowerer) family1(nets []netip.Prefix) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, n := range nets {
		if !n.IsValid() {
			return nil, fmt.Errorf("an invalid net (%v)", n)
		}
		if n.Addr().Is4() == (l.family == table.IPv4) {
			out = append(out, n.Masked())
		}
	}
	return out, nil
}

func prefixed(flag string, nets []netip.Prefix) []string {
	out := make([]string, len(nets))
	for i, n := range nets {
		out[i] = flag + n.String()
	}
	return out
}

// sets adds the conditions on sets without ports: all must match, or not match.
func (l *lowerer) sets(c *conditions, m table.Match) error {
	for _, s := range []struct {
		ids []string
		not bool
		dir string
	}{{m.SrcSets, false, "src"}, {m.DstSets, false, "dst"}, {m.NotSrcSets, true, "src"}, {m.NotDstSets, true, "dst"}} {
		for _, id := range s.ids {
			c.always(l.set(c, id, s.dir, s.not))
		}
	}
	return nil
}

func (l *lowerer) set(c *conditions, id, dir string, not bool) string {
	name := l.setName(id)
	c.sets = append(c.sets, setRef{id, name})
	if not {
		return "-m set ! --match-set " + name + " " + dir
	}
	return "-m set --match-set " + name + " " + dir
}

func (l *lowerer) ports(c *conditions, m table.Match) error {
	for _, side := range []struct {
		flag, dir        string
		yes, not         []table.PortRange
		yesSets, notSets []string
	}{
		{"--sports ", "src,src", m.SrcPorts, m.NotSrcPorts, m.SrcPortSets, m.NotSrcPortSets},
		{"--dports ", "dst,dst", m.DstPorts, m.NotDstPorts, m.DstPortSets, m.NotDstPortSets},
	} {
		if err := checkPorts(m, side.yes, side.not); err != nil {
			return err
		}
		var alternatives []string
		for _, ports := range multiports(side.yes) {
			alternatives = append(alternatives, "-m multiport "+side.flag+ports)
		}
		for _, id := range side.yesSets {
			alternatives = append(alternatives, l.set(c, id, side.dir, false))
		}
		if len(alternatives) > 0 {
			c.anyOf(protocolArg(m.Protocol), alternatives)
		}
		for _, ports := range multiports(side.not) {
			c.always("-m multiport ! " + side.flag + ports)
		}
		for _, id := range side.notSets {
			c.always(l.set(c, id, side.dir, true))
		}
	}
	return nil
}

func checkPorts(m table.Match, lists ...[]table.PortRange) error {
	for _, ports := range lists {
		for _, p := range ports {
			if p.First > p.Last {
				return fmt.Errorf("port range %d to %d: the first port is larger than the last", p.First, p.Last)
			}
		}
		if len(ports) > 0 && !hasPorts(m.Protocol) {
			return fmt.Errorf("matches on ports, which protocol %d does not have", m.Protocol)
		}
	}
	return nil
}

func hasPorts(protocol uint8) bool {
	switch protocol {
	case protoTCP, protoUDP, protoSCTP, protoDCCP, protoUDPL:
		return true
	}
	return false
}

// multiports returns the ports as arguments of as few multiport matches as possible: each has 15 slots, and a range takes two.
func multiports(ports []table.PortRange) []string {
	const slots = 15
	var out []string
	var b strings.Builder
	used := 0
	for _, p := range ports {
		need, text := 2, fmt.Sprintf("%d:%d", p.First, p.Last)
		if p.First == p.Last {
			need, text = 1, strconv.Itoa(int(p.First))
		}
		if used+need > slots {
			out = append(out, b.String())
			b.Reset()
			used = 0
		}
		if used > 0 {
			b.WriteByte(',')
		}
		b.WriteString(text)
		used += need
	}
	if used > 0 {
		out = append(out, b.String())
	}
	return out
}

func (l *lowerer) icmp(c *conditions, m table.Match) error {
	if m.ICMP == nil && m.NotICMP == nil {
		return nil
	}
	own, match, flag := uint8(protoICMP), "-m icmp ", "--icmp-type "
	if l.family == table.IPv6 {
		own, match, flag = protoICMPv6, "-m icmp6 ", "--icmpv6-type "
	}
	if m.Protocol != protoICMP && m.Protocol != protoICMPv6 {
		return fmt.Errorf("matches on ICMP types, which protocol %d does not have", m.Protocol)
	}
	if m.Protocol != own { // the other family's ICMP, whose types cannot be matched here
		c.never = m.ICMP != nil
		return nil
	}
	for _, i := range []struct {
		not string
		*table.ICMP
	}{{"", m.ICMP}, {"! ", m.NotICMP}} {
		switch {
		case i.ICMP == nil:
		case l.family == table.IPv4 && i.Type == 255:
			return fmt.Errorf("matches on ICMP type 255, which iptables takes for any type")
		case i.AnyCode:
			c.always(fmt.Sprintf("%s%s%s%d", match, i.not, flag, i.Type))
		default:
			c.always(fmt.Sprintf("%s%s%s%d/%d", match, i.not, flag, i.Type, i.Code))
		}
	}
	return nil
}

func (l *lowerer) connection(c *conditions, m table.Match) error {
	var states []string
	for _, s := range []struct {
		state table.CTState
		name  string
	}{
		{table.CTNew, "NEW"}, {table.CTEstablished, "ESTABLISHED"}, {table.CTRelated, "RELATED"},
		{table.CTInvalid, "INVALID"}, {table.CTUntracked, "UNTRACKED"},
	} {
		if m.CT&s.state != 0 {
			states = append(states, s.name)
		}
	}
	if m.CT != 0 && len(states) == 0 {
		return fmt.Errorf("connection state %#x is not known", m.CT)
	}
	if len(states) > 0 {
		c.always("-m conntrack --ctstate " + strings.Join(states, ","))
	}
	if m.DNATed {
		c.always("-m conntrack --ctstate DNAT")
	}
	if m.MidStream {
		if m.Protocol != protoTCP {
			return errors.New("a match on segments in the middle of a connection needs protocol TCP")
		}
		c.always("-m tcp ! --syn")
	}
	return nil
}

// other adds the conditions on the mark, on the type of an address, and on the reverse path.
func (l *lowerer) other(c *conditions, m table.Match) error {
	if m.MarkMask != 0 {
		not := ""
		if m.MarkNot {
			not = "! "
		}
		c.always(fmt.Sprintf("-m mark %s--mark %#x/%#x", not, m.Mark, m.MarkMask))
	}
	for _, a := range []struct {
		flag string
		typ  table.AddrType
	}{{"--src-type LOCAL", m.Src}, {"--dst-type LOCAL", m.Dst}} {
		switch a.typ {
		case table.AddrAny:
		case table.AddrLocal:
			c.always("-m addrtype " + a.flag)
		case table.AddrNotLocal:
			c.always("-m addrtype ! " + a.flag)
		default:
			return fmt.Errorf("address type %d is not known", a.typ)
		}
	}
	if m.SrcNotOnOut {
		c.always("-m addrtype ! --src-type LOCAL --limit-iface-out")
	}
	if m.NoReversePath {
		c.always("-m rpfilter --invert")
	}
	return l.services(c, m)
}

// services adds the conditions that only services use. They come last: a client is recorded only if all other conditions hold.
func (l *lowerer) services(c *conditions, m table.Match) error {
	if m.OneIn > 1 {
		c.always(fmt.Sprintf("-m statistic --mode random --probability %.10f", 1/float64(m.OneIn)))
	}
	if m.Client == nil {
		return nil
	}
	if err := word("list of clients", m.Client.List, 100); err != nil {
		return err
	}
	if m.Client.Note {
		c.always("-m recent --name " + m.Client.List + " --rsource --set")
	} else {
		c.always(fmt.Sprintf("-m recent --name %s --rsource --rcheck --seconds %d --reap", m.Client.List, max(m.Client.Seconds, 1)))
	}
	return nil
}
