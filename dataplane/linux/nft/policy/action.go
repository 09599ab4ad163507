package policy

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// check returns an error for an invalid rule. The kernel would also reject it, but would not name the chain.
func check(l table.Layer, r *table.Rule) error {
	m := &r.Match
	ports := len(m.SrcPorts)+len(m.DstPorts)+len(m.NotSrcPorts)+len(m.NotDstPorts) > 0
	switch {
	case m.OneIn > 0 || m.Client != nil:
		return errors.New("matches by chance (OneIn) or by recorded client (Client) are supported by the iptables backend only")
	case ports && !hasPorts(m.Protocol):
		return fmt.Errorf("ports of protocol %d, which has none; name TCP, UDP or SCTP", m.Protocol)
	case (m.ICMP != nil || m.NotICMP != nil) && m.Protocol != unix.IPPROTO_ICMP && m.Protocol != unix.IPPROTO_ICMPV6:
		return fmt.Errorf("ICMP type of protocol %d; name ICMP (1) or ICMPv6 (58)", m.Protocol)
	}
	for _, name := range []string{m.InIface, m.OutIface} {
		if len(name) > unix.IFNAMSIZ-1 {
			return fmt.Errorf("interface %q has more than %d characters", name, unix.IFNAMSIZ-1)
		}
	}
	for i := range r.Actions {
		if err := checkAction(l, m, &r.Actions[i], i == len(r.Actions)-1); err != nil {
			return err
		}
	}
	return nil
}

func hasPorts(proto uint8) bool {
	switch proto {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP, unix.IPPROTO_DCCP, unix.IPPROTO_UDPLITE:
		return true
	}
	return false
}

func checkAction(l table.Layer, m *table.Match, a *table.Action, last bool) error {
	nat := a.Verb == table.DNAT || a.Verb == table.SNAT || a.Verb == table.Masquerade
	switch {
	case a.Verb < table.SetMark || a.Verb > table.Masquerade:
		return fmt.Errorf("unknown verb %d", a.Verb)
	case a.Verb > table.Log && !last:
		return fmt.Errorf("actions after verb %d, which ends the rule", a.Verb)
	case a.Verb == table.NoTrack && l != table.Raw:
		return fmt.Errorf("connections can be left untracked in layer raw only")
	case nat && l != table.NAT:
		return fmt.Errorf("addresses can be translated in layer nat only")
	case nat && a.Ports != (table.PortRange{}) && !hasPorts(m.Protocol):
		return fmt.Errorf("ports to translate to, but the rule names no protocol that has ports")
	case nat && a.Ports.First > a.Ports.Last:
		return fmt.Errorf("ports to translate to from %d to %d", a.Ports.First, a.Ports.Last)
	case (a.Verb == table.Log || a.Verb == table.Report) && len(a.Prefix) > maxLogPrefix:
		return fmt.Errorf("log prefix of %d characters, at most %d are allowed", len(a.Prefix), maxLogPrefix)
	}
	return nil
}

const maxLogPrefix = 127 // NF_LOG_PREFIXLEN

// actions adds a rule's actions to its conditions, and makes one or two programs of it.
func (c *compiler) actions(r *table.Rule) error {
	if len(r.Actions) == 0 || r.Counted {
		c.Simple("counter")
	}
	for i := range r.Actions {
		switch a := &r.Actions[i]; a.Verb {
		case table.Reject:
			c.rejects(r)
			return nil
		case table.Jump:
			c.ImmediateVerdict(unix.NFT_JUMP, c.n.f.node(c.n.layer, a.Chain).chain)
		case table.Goto:
			c.ImmediateVerdict(unix.NFT_GOTO, c.n.f.node(c.n.layer, a.Chain).chain)
		case table.DNAT, table.SNAT:
			if err := c.translate(a); err != nil {
				return err
			}
		default:
			c.action(a)
		}
	}
	c.emit(r.Comment)
	return nil
}

func (c *compiler) action(a *table.Action) {
	switch a.Verb {
	case table.SetMark:
		if a.Mask == math.MaxUint32 {
			c.Immediate(wire.Reg1, wire.Host32(a.Mark))
		} else {
			c.Meta(unix.NFT_META_MARK, wire.Reg1)
			c.Bitwise(wire.Host32(^(a.Mask | a.Mark)), wire.Host32(a.Mark))
		}
		c.SetMark()
	case table.NoTrack:
		c.Simple("notrack")
	case table.Report:
		c.Limit(table.ReportRate, table.ReportBurst)
		c.LogGroup(a.Prefix, table.ReportGroup, table.ReportBytes)
	case table.Log:
		c.Log(a.Prefix)
	case table.Return:
		c.ImmediateVerdict(unix.NFT_RETURN, "")
	case table.Accept:
		c.ImmediateVerdict(wire.CodeAccept, "")
	case table.Drop:
		c.ImmediateVerdict(wire.CodeDrop, "")
	case table.Masquerade:
		c.out.allowed &= hooksOf(table.Postrouting)
		ports, isRange := c.natPorts(a)
		c.Masquerade(ports, isRange, natFlags(a))
	}
}

// target records the chain that a rule jumps to, and returns an error if the chain does not exist.
func (c *compiler) target(r *table.Rule) (target *node, err error) {
	for i := range r.Actions {
		a := &r.Actions[i]
		if a.Verb != table.Jump && a.Verb != table.Goto {
			continue
		}
		target = c.n.f.node(c.n.layer, a.Chain)
		if skips(r, target) {
			c.out.skipped = append(c.out.skipped, target)
			continue
		}
		c.out.targets = append(c.out.targets, target)
		if !target.usable() {
			err = fmt.Errorf("there is no chain %q to go to", a.Chain)
		}
	}
	return target, err
}

// skips reports whether a rule has no effect because it only jumps to a chain without rules: the kernel needs neither.
func skips(r *table.Rule, target *node) bool {
	return target != nil && target.idle && target.usable() && len(r.Actions) == 1 && r.Actions[0].Verb == table.Jump && !r.Counted
}

// rejects adds the programs that reject: TCP by a reset, all other protocols by an ICMP error.
func (c *compiler) rejects(r *table.Rule) {
	c.out.allowed &= hooksOf(table.Input, table.Forward, table.Output)
	at, proto := len(c.B), r.Match.Protocol
	if proto == 0 || proto == unix.IPPROTO_TCP {
		if proto == 0 {
			c.Meta(unix.NFT_META_L4PROTO, wire.Reg1)
			c.Equal([]byte{unix.IPPROTO_TCP}, false)
		}
		c.Reject(unix.NFT_REJECT_TCP_RST, 0)
		c.emit(r.Comment)
		c.B = c.B[:at]
	}
	if proto != unix.IPPROTO_TCP {
		c.Reject(unix.NFT_REJECT_ICMP_UNREACH, c.n.f.PortUnreachable)
		c.emit(r.Comment)
	}
}

func (c *compiler) translate(a *table.Action) error {
	if a.To.BitLen() != 8*wire.AddressBytes(c.n.f.ID) {
		return fmt.Errorf("translation to %q, which is not an IPv%d address", a.To, c.n.f.ID)
	}
	typ := uint32(unix.NFT_NAT_SNAT)
	if a.Verb == table.DNAT {
		typ = unix.NFT_NAT_DNAT
		c.out.allowed &= hooksOf(table.Prerouting, table.Output)
	} else {
		c.out.allowed &= hooksOf(table.Postrouting, table.Input)
	}
	c.Immediate(wire.Reg1, a.To.AsSlice())
	ports, isRange := c.natPorts(a)
	c.NAT(typ, uint32(c.n.f.Proto), ports, isRange, natFlags(a))
	return nil
}

func (c *compiler) natPorts(a *table.Action) (ports, isRange bool) {
	if a.Ports == (table.PortRange{}) {
		return false, false
	}
	c.PortRegs(a.Ports.First, a.Ports.Last)
	return true, a.Ports.First != a.Ports.Last
}

func natFlags(a *table.Action) (flags uint32) {
	if a.FullRandom && a.Verb != table.DNAT {
		flags |= wire.NATRandomFully
	}
	if a.Ports != (table.PortRange{}) {
		flags |= wire.NATPortsGiven
	}
	return flags
}
