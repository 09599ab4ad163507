package hns

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"contiv.dev/vswitch/internal/ipaddr"
)

// wire is a rule in the JSON of HNS, with the names of HNS.
type wire struct {
	Type            string
	ID              string `json:"Id,omitempty"`
	Protocol        uint16 `json:",omitempty"`
	Protocols       string `json:",omitempty"`
	Action          Action
	Direction       Direction
	LocalAddresses  string   `json:",omitempty"`
	RemoteAddresses string   `json:",omitempty"`
	LocalPorts      string   `json:",omitempty"`
	LocalPort       uint16   `json:",omitempty"`
	RemotePorts     string   `json:",omitempty"`
	RemotePort      uint16   `json:",omitempty"`
	RuleType        RuleType `json:",omitempty"`
	Priority        uint16   `json:",omitempty"`
}

const aclType = "ACL"

// Encode returns the policy that HNS gets for a rule.
func Encode(a ACL) (json.RawMessage, error) {
	raw, err := json.Marshal(wire{Type: aclType, ID: a.ID, Protocol: a.Protocol, Action: a.Action, Direction: a.Direction,
		LocalAddresses: JoinAddresses(a.LocalAddresses), RemoteAddresses: JoinAddresses(a.RemoteAddresses),
		LocalPorts: JoinPorts(a.LocalPorts), RemotePorts: JoinPorts(a.RemotePorts), RuleType: a.RuleType, Priority: a.Priority})
	if err != nil {
		return nil, fmt.Errorf("encode rule %s: %w", a.ID, err)
	}
	return raw, nil
}

// Decode decodes a policy of an endpoint. It returns false for a policy that is not a rule.
func Decode(raw json.RawMessage) (acl ACL, is bool, err error) {
	var kind struct{ Type string }
	if err := json.Unmarshal(raw, &kind); err != nil {
		return ACL{}, false, fmt.Errorf("decode policy: %w", err)
	}
	if !strings.EqualFold(kind.Type, aclType) {
		return ACL{}, false, nil
	}
	var w wire
	if err := json.Unmarshal(raw, &w); err != nil {
		return ACL{}, true, fmt.Errorf("decode rule: %w", err)
	}
	acl, err = w.acl()
	return acl, true, err
}

func (w wire) acl() (ACL, error) {
	a := ACL{ID: w.ID, Protocol: w.Protocol, Action: w.Action, Direction: w.Direction, RuleType: w.RuleType, Priority: w.Priority}
	var err error
	if w.Protocols != "" {
		if a.Protocol, err = parseProtocol(w.Protocols); err != nil {
			return ACL{}, err
		}
	}
	if a.Protocol == 0 {
		a.Protocol = AnyProtocol
	}
	if a.LocalAddresses, err = parseAddresses(w.LocalAddresses); err != nil {
		return ACL{}, fmt.Errorf("rule %s: local addresses: %w", w.ID, err)
	}
	if a.RemoteAddresses, err = parseAddresses(w.RemoteAddresses); err != nil {
		return ACL{}, fmt.Errorf("rule %s: remote addresses: %w", w.ID, err)
	}
	if a.LocalPorts, err = portsOf(w.LocalPorts, w.LocalPort); err != nil {
		return ACL{}, fmt.Errorf("rule %s: local ports: %w", w.ID, err)
	}
	if a.RemotePorts, err = portsOf(w.RemotePorts, w.RemotePort); err != nil {
		return ACL{}, fmt.Errorf("rule %s: remote ports: %w", w.ID, err)
	}
	return a, nil
}

// parseProtocol parses the number of one protocol; "" is any.
func parseProtocol(text string) (uint16, error) {
	if text == "" {
		return AnyProtocol, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n > AnyProtocol {
		return 0, fmt.Errorf("protocol %q is not a number up to %d", text, AnyProtocol)
	}
	return uint16(n), nil
}

// JoinAddresses formats a list for HNS: prefixes, separated by commas.
func JoinAddresses(list []netip.Prefix) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.String()
	}
	return strings.Join(texts, ",")
}

// parseAddresses parses a list of prefixes or single addresses. "" is an empty list.
func parseAddresses(text string) ([]netip.Prefix, error) {
	if text == "" {
		return nil, nil
	}
	var list []netip.Prefix
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if a, err := netip.ParseAddr(word); err == nil {
			list = append(list, ipaddr.HostPrefix(a))
			continue
		}
		p, err := netip.ParsePrefix(word)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a prefix", word)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

// JoinPorts formats a list for HNS: "80,8000-8100".
func JoinPorts(list []PortRange) string {
	texts := make([]string, len(list))
	for i, r := range list {
		texts[i] = strconv.Itoa(int(r.First))
		if r.Last != r.First {
			texts[i] += "-" + strconv.Itoa(int(r.Last))
		}
	}
	return strings.Join(texts, ",")
}

// parsePorts parses a list of ports and ranges. "" is an empty list.
func parsePorts(text string) ([]PortRange, error) {
	if text == "" {
		return nil, nil
	}
	var list []PortRange
	for word := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(strings.TrimSpace(word), "-")
		if !ranged {
			last = first
		}
		f, err1 := strconv.ParseUint(first, 10, 16)
		l, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || f > l {
			return nil, fmt.Errorf("%q is neither a port nor a range of ports", word)
		}
		list = append(list, PortRange{First: uint16(f), Last: uint16(l)})
	}
	return list, nil
}

func portsOf(text string, single uint16) ([]PortRange, error) {
	if text == "" && single != 0 {
		return []PortRange{{First: single, Last: single}}, nil
	}
	return parsePorts(text)
}
