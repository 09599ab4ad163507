package rules

import (
	"contiv.dev/vswitch/dataplane/linux/table"
)

// The protocols that rules use.
const (
	protoICMP   = 1
	protoIPIP   = 4
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	protoSCTP   = 132
)

func rule(m table.Match, comment string, actions ...table.Action) table.Rule {
	return table.Rule{Match: m, Actions: actions, Comment: safeComment(comment)}
}

// safeComment truncates a comment to the length that rules may have, and replaces characters that are not printable ASCII.
func safeComment(s string) string {
	out := []byte(s)
	if len(out) > maxComment {
		out = out[:maxComment]
	}
	for i, c := range out {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			out[i] = '_'
		}
	}
	return string(out)
}

// maxComment is the limit of package table.
const maxComment = 100

func act(v table.Verb) table.Action { return table.Action{Verb: v} }

func jump(chain string) table.Action { return table.Action{Verb: table.Jump, Chain: chain} }
func goTo(chain string) table.Action { return table.Action{Verb: table.Goto, Chain: chain} }
func setMark(bits uint32) table.Action {
	return table.Action{Verb: table.SetMark, Mark: bits, Mask: bits}
}

func clearMark(bits uint32) table.Action { return table.Action{Verb: table.SetMark, Mask: bits} }

func marked(bits uint32) table.Match   { return table.Match{Mark: bits, MarkMask: bits} }
func unmarked(bits uint32) table.Match { return table.Match{MarkMask: bits} }

func in(prefix string) table.Match  { return table.Match{InIface: prefix + "+"} }
func out(prefix string) table.Match { return table.Match{OutIface: prefix + "+"} }

func dport(protocol uint8, port uint16) table.Match {
	return table.Match{Protocol: protocol, DstPorts: []table.PortRange{{First: port, Last: port}}}
}

func sport(protocol uint8, port uint16) table.Match {
	return table.Match{Protocol: protocol, SrcPorts: []table.PortRange{{First: port, Last: port}}}
}

// established returns the match of packets that belong to accepted connections or are related to one.
func established() table.Match { return table.Match{CT: table.CTEstablished | table.CTRelated} }
