package intdataplane

import (
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// parseMember parses a member in the format of the messages: "10.0.0.1", "10.0.0.0/24", or "10.0.0.1,tcp:80".
func parseMember(kind table.SetType, text string) (table.Member, error) {
	m, err := proto.ParseMember(proto.IPSetUpdate_IPSetType(kind), text)
	return table.Member{Net: m.Net, Proto: m.Protocol, Port: m.Port}, err
}

func familyOf(a netip.Addr) table.Family {
	if a.Is4() || a.Is4In6() {
		return table.IPv4
	}
	return table.IPv6
}
