package ipnet

import (
	"errors"
	"fmt"
	"net/netip"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/plugins/ipnet/transport"
)

// value is one northbound value under its key.
type value struct {
	key string
	msg proto.Message
}

// values collects the values that a render function produces, and their errors, so that rendering code needs no error handling.
type values struct {
	list []value
	err  error
}

func (v *values) put(msgs ...proto.Message) {
	for _, msg := range msgs {
		key, err := nb.Key(msg)
		if err != nil {
			v.err = errors.Join(v.err, fmt.Errorf("northbound value without a key: %w", err))
			continue
		}
		v.list = append(v.list, value{key: key, msg: msg})
	}
}

// vrfTable puts a table in both families.
func (v *values) vrfTable(id uint32, label string) {
	v.put(
		&vpp_l3.VrfTable{Id: id, Protocol: vpp_l3.VrfTable_IPV4, Label: label + "-IPv4"},
		&vpp_l3.VrfTable{Id: id, Protocol: vpp_l3.VrfTable_IPV6, Label: label + "-IPv6"},
	)
}

// route puts an intra-VRF route; an invalid gw means directly connected.
func (v *values) route(vrf uint32, dst netip.Prefix, gw netip.Addr, outIf string) {
	v.put(transport.Route(vrf, dst, gw, outIf))
}

// interVRF puts a route that continues the lookup in another table.
func (v *values) interVRF(from uint32, dst netip.Prefix, to uint32) {
	v.put(transport.InterVRF(from, dst, to))
}

// linuxRoute puts a Linux route via gw.
func (v *values) linuxRoute(dst netip.Prefix, gw netip.Addr, outIf string) {
	v.put(&linux_l3.Route{OutgoingInterface: outIf, Scope: linux_l3.Route_GLOBAL, DstNetwork: dst.String(), GwAddr: gw.String()})
}

// anyPrefix returns the default destination of addr's family.
func anyPrefix(addr netip.Addr) netip.Prefix {
	if addr.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

func prefixStrings(ps []netip.Prefix) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.String()
	}
	return out
}

// messages returns the values without their keys.
func messages(list []value) []proto.Message {
	out := make([]proto.Message, len(list))
	for i, v := range list {
		out[i] = v.msg
	}
	return out
}
