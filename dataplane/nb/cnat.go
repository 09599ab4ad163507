package nb

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	vpp_cnat "contiv.dev/vswitch/dataplane/nb/vpp/cnat"
)

// Keys of VPP's cnat. vpp-agent has nothing of the kind: the messages are ours, the grammar of the keys is vpp-agent's.
const (
	cnatPrefix            = "config/vpp/cnat/v1/"
	CnatTranslationPrefix = cnatPrefix + "translation/"
	CnatInterfacePrefix   = cnatPrefix + "interface/"
	CnatSourceNATKey      = cnatPrefix + "source-nat"
)

// CnatTranslationKey is the key of a translation: VPP has one for an address, protocol and port.
func CnatTranslationKey(vip string, p vpp_cnat.Translation_Protocol, port uint32) string {
	if vip == "" {
		return ""
	}
	var buf keyBuf
	b := append(buf[:0], CnatTranslationPrefix+"vip/"...)
	b = append(b, vip...)
	b = append(b, "/proto/"...)
	b = append(b, p.String()...)
	b = append(b, "/port/"...)
	return cleanBytes(strconv.AppendUint(b, uint64(port), 10))
}

// CnatInterfaceKey is the key of an interface's part in cnat.
func CnatInterfaceKey(name string) string { return clean(CnatInterfacePrefix + name) }

// cnatKey gives the key of one of cnat's messages and the prefix it must have.
func cnatKey(m proto.Message) (key, prefix string) {
	switch m := m.(type) {
	case *vpp_cnat.Translation:
		return CnatTranslationKey(m.GetVip(), m.GetProtocol(), m.GetPort()), CnatTranslationPrefix
	case *vpp_cnat.Interface:
		return CnatInterfaceKey(m.GetName()), CnatInterfacePrefix
	case *vpp_cnat.SourceNAT:
		return CnatSourceNATKey, ""
	}
	return "", ""
}

// newCnat is an empty message of the kind that a key of cnat belongs to, nil if it is none.
func newCnat(key string) proto.Message {
	switch {
	case key == CnatSourceNATKey:
		return new(vpp_cnat.SourceNAT)
	case isUnder(key, CnatTranslationPrefix):
		return new(vpp_cnat.Translation)
	case isUnder(key, CnatInterfacePrefix):
		return new(vpp_cnat.Interface)
	}
	return nil
}

// describeCnat is a line about one of cnat's messages.
func describeCnat(m proto.Message) string {
	switch m := m.(type) {
	case *vpp_cnat.Translation:
		s := fmt.Sprintf("translation of %s port %d to %s", m.GetVip(), m.GetPort(), count(len(m.GetBackends()), "backend"))
		if m.GetProtocol() != vpp_cnat.Translation_TCP {
			s = m.GetProtocol().String() + " " + s
		}
		if m.GetSticky() {
			s += ", sticky"
		}
		return s
	case *vpp_cnat.Interface:
		return fmt.Sprintf("cnat interface %s %s", m.GetName(), m.GetRole())
	case *vpp_cnat.SourceNAT:
		return "cnat source NAT" + opt(" ", m.GetIpv4Address()) + opt(" ", m.GetIpv6Address())
	}
	return kindOf(m)
}
