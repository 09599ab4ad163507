package nb

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	vpp_pnat "contiv.dev/vswitch/dataplane/nb/vpp/pnat"
)

// PnatInterfacePrefix starts the keys of VPP's pnat. vpp-agent has nothing of the kind.
const PnatInterfacePrefix = "config/vpp/pnat/v1/interface/"

// PnatInterfaceKey is the key of an interface's part in pnat.
func PnatInterfaceKey(name string) string { return clean(PnatInterfacePrefix + name) }

// pnatKey gives the key of one of pnat's messages and the prefix it must have.
func pnatKey(m proto.Message) (key, prefix string) {
	if m, ok := m.(*vpp_pnat.Interface); ok {
		return PnatInterfaceKey(m.GetName()), PnatInterfacePrefix
	}
	return "", ""
}

// newPnat is an empty message of the kind that a key of pnat belongs to, nil if it is none.
func newPnat(key string) proto.Message {
	if isUnder(key, PnatInterfacePrefix) {
		return new(vpp_pnat.Interface)
	}
	return nil
}

// describePnat is a line about one of pnat's messages.
func describePnat(m *vpp_pnat.Interface) string {
	s := fmt.Sprintf("pnat interface %s", m.GetName())
	for i, a := range m.GetAliases() {
		if i == 3 {
			return fmt.Sprintf("%s and %d more", s, len(m.GetAliases())-i)
		}
		s += fmt.Sprintf(" %s %s:%d=%s", a.GetProtocol(), a.GetIp(), a.GetPort(), a.GetAlias())
	}
	return s
}
