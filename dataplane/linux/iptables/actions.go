package iptables

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// ends reports whether an action ends the processing of its chain.
func ends(v table.Verb) bool { return v >= table.Goto }

// checkActions rejects actions that iptables could not load. The error names the reason.
func (l *lowerer) checkActions(r table.Rule) error {
	for i, a := range r.Actions {
		if ends(a.Verb) && i != len(r.Actions)-1 {
			return fmt.Errorf("action %d ends the evaluation, but other actions follow it", i+1)
		}
		switch a.Verb {
		case table.NoTrack:
			if l.layer != table.Raw {
				return fmt.Errorf("connections can be left untracked in the raw layer only")
			}
		case table.DNAT, table.SNAT, table.Masquerade:
			if l.layer != table.NAT {
				return fmt.Errorf("addresses can be translated in the nat layer only")
			}
			if err := l.checkTranslation(a, r.Match); err != nil {
				return err
			}
		case table.Drop, table.Reject:
			if l.layer == table.NAT {
				return fmt.Errorf("packets cannot be dropped in the nat layer")
			}
		case table.Jump, table.Goto:
			if err := word("chain", a.Chain, maxChainName); err != nil {
				return err
			}
		case table.SetMark, table.Report, table.Log, table.Return, table.Accept:
		default:
			return fmt.Errorf("action %d (%d) is not known", i+1, a.Verb)
		}
	}
	return nil
}

func (l *lowerer) checkTranslation(a table.Action, m table.Match) error {
	if a.Verb != table.Masquerade && (!a.To.IsValid() || a.To.Is4() != (l.family == table.IPv4)) {
		return fmt.Errorf("translates to %v, which is not an IPv%d address", a.To, l.family)
	}
	if a.Ports == (table.PortRange{}) {
		return nil
	}
	if a.Ports.First > a.Ports.Last {
		return fmt.Errorf("port range %d to %d: the first port is larger than the last", a.Ports.First, a.Ports.Last)
	}
	if !hasPorts(m.Protocol) {
		return fmt.Errorf("translates ports, which protocol %d does not have", m.Protocol)
	}
	return nil
}

// target returns the action as arguments of iptables.
func (l *lowerer) target(a table.Action, m table.Match) (string, error) {
	switch a.Verb {
	case table.SetMark:
		// mark = mark &^ (Mask|Mark) ^ Mark
		return setMark(a.Mark, a.Mask|a.Mark), nil
	case table.NoTrack:
		return "-j CT --notrack", nil
	case table.Report:
		return fmt.Sprintf("-m limit --limit %d/sec --limit-burst %d -j NFLOG --nflog-prefix %s --nflog-group %d --nflog-size %d",
			table.ReportRate, table.ReportBurst, quote(a.Prefix, maxLogPrefix), table.ReportGroup, table.ReportBytes), nil
	case table.Log:
		if a.Prefix == "" {
			return "-j LOG --log-level 5", nil
		}
		return "-j LOG --log-prefix " + quote(a.Prefix, maxLogPrefix) + " --log-level 5", nil
	case table.Jump:
		return "-j " + a.Chain, nil
	case table.Goto:
		return "-g " + a.Chain, nil
	case table.Return:
		return "-j RETURN", nil
	case table.Accept:
		return "-j ACCEPT", nil
	case table.Drop:
		return "-j DROP", nil
	case table.DNAT:
		return "-j DNAT --to-destination " + translated(a), nil
	case table.SNAT:
		return "-j SNAT --to-source " + translated(a) + l.fullRandom(a), nil
	case table.Masquerade:
		to := ""
		if a.Ports != (table.PortRange{}) {
			to = " --to-ports " + ports(a.Ports)
		}
		return "-j MASQUERADE" + to + l.fullRandom(a), nil
	}
	return "", fmt.Errorf("action %d is not known", a.Verb)
}

func (l *lowerer) fullRandom(a table.Action) string {
	if a.FullRandom && l.random {
		return " --random-fully"
	}
	return ""
}

func ports(p table.PortRange) string {
	if p.First == p.Last {
		return fmt.Sprint(p.First)
	}
	return fmt.Sprintf("%d-%d", p.First, p.Last)
}

func translated(a table.Action) string {
	if a.Ports == (table.PortRange{}) {
		return a.To.String()
	}
	return net.JoinHostPort(a.To.String(), ports(a.Ports))
}

// reject appends the rules that reject TCP with a reset and all other protocols with ICMP. Only the filter layer can reject; the others
// drop.
func (l *lowerer) reject(p *piece, args []string, m table.Match) {
	if l.layer != table.Filter {
		p.add(append(slices.Clip(args), "-j DROP")...)
		return
	}
	unreachable := "-j REJECT --reject-with icmp-port-unreachable"
	if l.family == table.IPv6 {
		unreachable = "-j REJECT --reject-with icmp6-port-unreachable"
	}
	const reset = "-j REJECT --reject-with tcp-reset"
	switch {
	case m.Protocol == protoTCP:
		p.add(append(slices.Clip(args), reset)...)
		return
	case m.Protocol == 0 && m.NotProtocol != protoTCP:
		// A rule can match only one protocol. TCP is not the excluded one here.
		tcp := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "! -p ") })
		p.add(append([]string{"-p 6"}, append(tcp, reset)...)...)
	}
	p.add(append(slices.Clip(args), unreachable)...)
}
