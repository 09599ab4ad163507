package iptables

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/ipset"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// packet holds the properties of a packet that rules can match.
type packet struct {
	in, out            string
	proto              uint8
	src, dst, origDst  netip.Addr
	origSrc, replSrc   netip.Addr
	sport, dport       uint16
	icmpType, icmpCode uint8
	ct                 table.CTState
	mark               uint32
	srcLocal, dstLocal bool
	srcOnOut           bool // is an address of the outgoing interface
	noWayBack, dnated  bool
	inSet              map[string]bool // "<id> src", "<id> dst,dst", …
}

// outcome is the result for a packet.
type outcome struct {
	verdict string // "" if it reached the chain's end
	log     []string
	noTrack bool
	mark    uint32
	visited []string // callees entered, in order
}

func (o outcome) equal(p outcome) bool {
	return o.verdict == p.verdict && slices.Equal(o.log, p.log) && o.noTrack == p.noTrack && o.mark == p.mark &&
		slices.Equal(o.visited, p.visited)
}

// evaluator evaluates rules in iptables' syntax for a packet. Unknown words are an error.
type evaluator struct {
	t      *testing.T
	family table.Family
	chains map[string]*piece
	seen   func(chain string) bool // chains whose visits are recorded
	pkt    packet
	out    outcome
}

// words splits a rule as iptables-restore does.
func words(t *testing.T, rule string) []string {
	var out []string
	var b strings.Builder
	quoted, escaped, any := false, false, false
	for _, r := range rule {
		switch {
		case escaped:
			b.WriteRune(r)
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted, any = !quoted, true
		case !quoted && r == ' ':
			if b.Len() > 0 || any {
				out = append(out, b.String())
			}
			b.Reset()
			any = false
		case r < ' ':
			t.Fatalf("control character in rule %q", rule)
		default:
			b.WriteRune(r)
		}
	}
	if quoted {
		t.Fatalf("open quotes in rule %q", rule)
	}
	if b.Len() > 0 || any {
		out = append(out, b.String())
	}
	return out
}

// walk evaluates a chain. It returns true if the processing has ended.
func (e *evaluator) walk(chain string) bool {
	c := e.chains[chain]
	if c == nil {
		e.t.Fatalf("chain %q does not exist", chain)
	}
	if e.seen(chain) {
		e.out.visited = append(e.out.visited, chain)
	}
	for _, r := range c.rules {
		target, args, jump := e.match(r)
		switch {
		case target == "no match" || target == "":
		case target == "RETURN":
			return false
		case e.chains[target] != nil:
			if done := e.walk(target); done || !jump {
				return done
			}
		default:
			if e.terminal(target, args) {
				return true
			}
		}
	}
	return false
}

func (e *evaluator) terminal(target string, args []string) bool {
	switch target {
	case "ACCEPT", "DROP", "REJECT", "DNAT", "SNAT", "MASQUERADE":
		e.out.verdict = strings.Join(append([]string{target}, args...), " ")
		return true
	case "LOG":
		e.out.log = append(e.out.log, args[1])
	case "CT":
		e.out.noTrack = true
	case "MARK":
		v, m, _ := strings.Cut(args[1], "/")
		e.pkt.mark = e.pkt.mark&^e.num(m) ^ e.num(v)
	default:
		e.t.Fatalf("target %s is not known", target)
	}
	return false
}

func (e *evaluator) num(s string) uint32 {
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		e.t.Fatal(err)
	}
	return uint32(n)
}

// match returns the target and its arguments, or "no match".
func (e *evaluator) match(rule string) (target string, args []string, jump bool) {
	w := words(e.t, rule)
	ok, seen := true, map[string]bool{}
	for i := 0; i < len(w); {
		not := w[i] == "!"
		if not {
			i++
		}
		flag := w[i]
		i++
		arg := func() string { i++; return w[i-1] }
		cond := true
		switch flag {
		case "-m":
			e.arm(seen, arg(), w)
			continue
		case "-j", "-g":
			target = arg()
			if !ok {
				return "no match", nil, false
			}
			return target, w[i:], flag == "-j"
		case "--comment", "--limit-iface-out":
			if flag == "--comment" {
				arg()
			}
			continue
		case "-i", "-o", "-p", "-s", "-d":
			if seen[flag] {
				e.t.Fatalf("%s twice in %q", flag, rule)
			}
			seen[flag] = true
			cond = e.basic(flag, arg())
		case "--match-set":
			name := arg()
			cond = e.pkt.inSet[name+" "+arg()]
		case "--sports", "--dports":
			cond = e.ports(flag, arg())
		case "--icmp-type", "--icmpv6-type":
			cond = e.icmp(arg())
		case "--ctstate":
			cond = e.ctState(arg())
		case "--ctorigdst":
			cond = netip.MustParsePrefix(arg()).Contains(e.pkt.origDst)
		case "--ctorigsrc":
			cond = netip.MustParsePrefix(arg()).Contains(e.pkt.origSrc)
		case "--ctreplsrc":
			cond = netip.MustParsePrefix(arg()).Contains(e.pkt.replSrc)
		case "--mark":
			v, m, _ := strings.Cut(arg(), "/")
			cond = e.pkt.mark&e.num(m) == e.num(v)
		case "--src-type", "--dst-type":
			arg()
			cond = e.addrType(flag, slices.Contains(w[i:], "--limit-iface-out") && w[i] == "--limit-iface-out")
		case "--invert":
			cond = e.pkt.noWayBack
		default:
			e.t.Fatalf("word %q is not known in %q", flag, rule)
		}
		ok = ok && cond != not
	}
	if !ok {
		return "no match", nil, false
	}
	return "", nil, false
}

// arm checks that a match module is present and has the options that it requires.
func (e *evaluator) arm(seen map[string]bool, module string, w []string) {
	switch module {
	case "multiport":
		i := slices.Index(w, "-p")
		if !seen["-p"] || i > 0 && w[i-1] == "!" || !slices.Contains([]string{"6", "17", "132"}, w[i+1]) {
			e.t.Fatalf("multiport without a protocol in %q", w)
		}
	case "icmp":
		if i := slices.Index(w, "-p"); !seen["-p"] || e.family != table.IPv4 || i < 0 || w[i+1] != "1" {
			e.t.Fatalf("icmp in %q", w)
		}
	case "icmp6":
		if i := slices.Index(w, "-p"); !seen["-p"] || e.family != table.IPv6 || i < 0 || w[i+1] != "58" {
			e.t.Fatalf("icmp6 in %q", w)
		}
	case "comment", "set", "conntrack", "mark", "addrtype", "rpfilter":
	default:
		e.t.Fatalf("module %q is not known", module)
	}
	seen[module] = true
}

func (e *evaluator) basic(flag, arg string) bool {
	iface := func(have string) bool {
		if prefix, wild := strings.CutSuffix(arg, "+"); wild {
			return strings.HasPrefix(have, prefix)
		}
		return have == arg
	}
	switch flag {
	case "-i":
		return iface(e.pkt.in)
	case "-o":
		return iface(e.pkt.out)
	case "-p":
		return strconv.Itoa(int(e.pkt.proto)) == arg
	case "-s":
		return netip.MustParsePrefix(arg).Contains(e.pkt.src)
	}
	return netip.MustParsePrefix(arg).Contains(e.pkt.dst)
}

func (e *evaluator) ports(flag, arg string) bool {
	port, slots, hit := e.pkt.sport, 0, false
	if flag == "--dports" {
		port = e.pkt.dport
	}
	for one := range strings.SplitSeq(arg, ",") {
		first, last, isRange := strings.Cut(one, ":")
		slots++
		if isRange {
			slots++
		} else {
			last = first
		}
		hit = hit || uint32(port) >= e.num(first) && uint32(port) <= e.num(last)
	}
	if slots > 15 {
		e.t.Fatalf("%d ports in one match", slots)
	}
	return hit
}

func (e *evaluator) icmp(arg string) bool {
	typ, code, exact := strings.Cut(arg, "/")
	return e.num(typ) == uint32(e.pkt.icmpType) && (!exact || e.num(code) == uint32(e.pkt.icmpCode))
}

func (e *evaluator) ctState(arg string) bool {
	for s := range strings.SplitSeq(arg, ",") {
		state := map[string]table.CTState{
			"NEW": table.CTNew, "ESTABLISHED": table.CTEstablished, "RELATED": table.CTRelated, "INVALID": table.CTInvalid,
			"UNTRACKED": table.CTUntracked,
		}[s]
		if s == "DNAT" && e.pkt.dnated || s != "DNAT" && e.effectiveCT()&state != 0 {
			return true
		}
	}
	return false
}

func (e *evaluator) effectiveCT() table.CTState {
	if e.out.noTrack {
		return table.CTUntracked
	}
	return e.pkt.ct
}

func (e *evaluator) addrType(flag string, onOut bool) bool {
	switch {
	case flag == "--dst-type":
		return e.pkt.dstLocal
	case onOut:
		return e.pkt.srcOnOut
	}
	return e.pkt.srcLocal
}

// oracle evaluates chains of the model for a packet, in the simplest way.
type oracle struct {
	family table.Family
	layer  table.Layer
	chains map[string]table.Chain
	disp   map[string]table.Dispatch
	pkt    packet
	out    outcome
}

func (o *oracle) walk(chain string) bool {
	o.out.visited = append(o.out.visited, chain)
	d, ok := o.disp[chain]
	if !ok {
		return o.rules(o.chains[chain].Rules)
	}
	iface := o.pkt.in
	if d.ByOut {
		iface = o.pkt.out
	}
	if to, ok := d.Chains[iface]; ok {
		return o.walk(to)
	}
	return o.rules(d.Default)
}

func (o *oracle) rules(rules []table.Rule) bool {
	for _, r := range rules {
		if !o.holds(r.Match) {
			continue
		}
		for _, a := range r.Actions {
			switch a.Verb {
			case table.Jump:
				if o.walk(a.Chain) {
					return true
				}
			case table.Goto:
				return o.walk(a.Chain)
			case table.Return:
				return false
			case table.SetMark:
				o.pkt.mark = o.pkt.mark&^a.Mask | a.Mark
			case table.Log:
				o.out.log = append(o.out.log, a.Prefix)
			case table.NoTrack:
				o.out.noTrack = true
			default:
				o.out.verdict = o.verdict(a)
				return true
			}
		}
	}
	return false
}

func (o *oracle) verdict(a table.Action) string {
	to := ""
	if a.To.IsValid() {
		to = a.To.String()
		if a.Ports != (table.PortRange{}) {
			if a.To.Is6() {
				to = "[" + to + "]"
			}
			to += fmt.Sprintf(":%d-%d", a.Ports.First, a.Ports.Last)
		}
	}
	switch a.Verb {
	case table.Accept:
		return "ACCEPT"
	case table.Drop:
		return "DROP"
	case table.Reject:
		switch {
		case o.pkt.proto == 6:
			return "REJECT --reject-with tcp-reset"
		case o.family == table.IPv6:
			return "REJECT --reject-with icmp6-port-unreachable"
		}
		return "REJECT --reject-with icmp-port-unreachable"
	case table.DNAT:
		return "DNAT --to-destination " + to
	case table.SNAT:
		return "SNAT --to-source " + to
	}
	return "MASQUERADE"
}

func (o *oracle) holds(m table.Match) bool {
	p := o.pkt
	iface := func(want, have string) bool {
		prefix, wild := strings.CutSuffix(want, "+")
		return want == "" || have == want || wild && strings.HasPrefix(have, prefix)
	}
	in := func(nets []netip.Prefix, a netip.Addr) bool {
		return slices.ContainsFunc(nets, func(n netip.Prefix) bool { return n.Contains(a) })
	}
	set := func(ids []string, dir string) (all, any bool) {
		all = true
		for _, id := range ids {
			hit := p.inSet[ipset.Name(o.family, id)+" "+dir]
			all, any = all && hit, any || hit
		}
		return all, any
	}
	port := func(ranges []table.PortRange, sets []string, port uint16, dir string) bool {
		_, any := set(sets, dir)
		return any || slices.ContainsFunc(ranges, func(r table.PortRange) bool { return r.First <= port && port <= r.Last })
	}
	icmp := func(i *table.ICMP) bool { return i.Type == p.icmpType && (i.AnyCode || i.Code == p.icmpCode) }
	ct := p.ct
	if o.out.noTrack {
		ct = table.CTUntracked
	}
	srcAll, _ := set(m.SrcSets, "src")
	dstAll, _ := set(m.DstSets, "dst")
	_, notSrc := set(m.NotSrcSets, "src")
	_, notDst := set(m.NotDstSets, "dst")
	addr := func(want table.AddrType, local bool) bool {
		return want == table.AddrAny || (want == table.AddrLocal) == local
	}
	return iface(m.InIface, p.in) && iface(m.OutIface, p.out) &&
		(m.Protocol == 0 || m.Protocol == p.proto) && (m.NotProtocol == 0 || m.NotProtocol != p.proto) &&
		(len(m.SrcNets) == 0 || in(m.SrcNets, p.src)) && (len(m.DstNets) == 0 || in(m.DstNets, p.dst)) &&
		!in(m.NotSrcNets, p.src) && !in(m.NotDstNets, p.dst) &&
		srcAll && dstAll && !notSrc && !notDst &&
		(len(m.SrcPorts)+len(m.SrcPortSets) == 0 || port(m.SrcPorts, m.SrcPortSets, p.sport, "src,src")) &&
		(len(m.DstPorts)+len(m.DstPortSets) == 0 || port(m.DstPorts, m.DstPortSets, p.dport, "dst,dst")) &&
		!port(m.NotSrcPorts, m.NotSrcPortSets, p.sport, "src,src") && !port(m.NotDstPorts, m.NotDstPortSets, p.dport, "dst,dst") &&
		(m.ICMP == nil || icmp(m.ICMP)) && (m.NotICMP == nil || !icmp(m.NotICMP)) &&
		(m.CT == 0 || m.CT&ct != 0) &&
		(m.MarkMask == 0 || (p.mark&m.MarkMask == m.Mark) != m.MarkNot) &&
		addr(m.Src, p.srcLocal) && addr(m.Dst, p.dstLocal) && (!m.SrcNotOnOut || !p.srcOnOut) &&
		(!m.NoReversePath || p.noWayBack) && (!m.DNATed || p.dnated) &&
		(len(m.CTOrigDst) == 0 || in(m.CTOrigDst, p.origDst)) && (len(m.CTOrigSrc) == 0 || in(m.CTOrigSrc, p.origSrc)) &&
		(len(m.CTReplSrc) == 0 || in(m.CTReplSrc, p.replSrc))
}
