package main

import (
	"context"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
)

// Each service of the frontends benchmark has two backends, a frontend and the frontend that closes its other ports: three values, and
// five messages.
const (
	frontendServices = 4000
	frontendValues   = 3
	frontendMessages = 5
)

// benchFrontends programs services into VPP with our plugin.
func benchFrontends(ctx context.Context, e *env) error {
	w := &workload{
		what: fmt.Sprintf("values of %d services", frontendServices), plugin: true,
		objects: frontendServices * frontendValues, messages: frontendServices * frontendMessages,
		request: rawFrontend, value: frontendValue,
	}
	return w.run(ctx, e)
}

func frontendAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}) }

func frontendBackend(i, which int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(1 + which), byte(i >> 8), byte(i)})
}

func frontendName(i int) string { return fmt.Sprintf("default/s%05d:http", i) }

// frontendValue returns the i-th value.
func frontendValue(i int) (string, proto.Message) {
	n := i / frontendValues
	reject := &vpp_contiv.Frontend_Target{Action: vpp_contiv.Frontend_Target_REJECT}
	switch i % frontendValues {
	case 0:
		v := &vpp_contiv.Service{Id: uint64(n + 1), Name: frontendName(n)}
		for which := range 2 {
			v.Backends = append(v.Backends, &vpp_contiv.Service_Backend{Ip: frontendBackend(n, which).String(), Port: targetPort})
		}
		return nb.ContivServiceKey(v.Id), v
	case 1:
		to := &vpp_contiv.Frontend_Target{Action: vpp_contiv.Frontend_Target_BALANCE, Service: uint64(n + 1)}
		v := &vpp_contiv.Frontend{
			Ip: frontendAddr(n).String(), Port: servicePort, Protocol: vpp_contiv.Frontend_TCP, Name: frontendName(n), InCluster: to, Outside: to,
		}
		return nb.ContivFrontendKey(v.Ip, v.Protocol, v.Port), v
	default:
		v := &vpp_contiv.Frontend{Ip: frontendAddr(n).String(), Name: "unused ports", InCluster: reject, Outside: reject}
		return nb.ContivFrontendKey(v.Ip, v.Protocol, v.Port), v
	}
}

// rawFrontend returns the i-th message for the same services.
func rawFrontend(i int, add bool) api.Message {
	n := i / frontendMessages
	address := func(a netip.Addr) ip_types.Address {
		return ip_types.Address{Af: ip_types.ADDRESS_IP4, Un: ip_types.AddressUnionIP4(a.As4())}
	}
	frontend := &contiv.ContivFrontendAddDel{IsAdd: add, Address: address(frontendAddr(n))}
	switch part := i % frontendMessages; part {
	case 0:
		return &contiv.ContivServiceAddDel{IsAdd: add, ID: uint64(n + 1), Name: frontendName(n)}
	case 1, 2:
		return &contiv.ContivBackendAddDel{
			IsAdd: add, ServiceID: uint64(n + 1), Address: address(frontendBackend(n, part-1)), Port: targetPort,
		}
	case 3:
		frontend.Port, frontend.Protocol, frontend.Name = servicePort, uint8(vpp_contiv.Frontend_TCP), frontendName(n)
		frontend.InCluster = contiv.ContivTarget{Action: contiv.ContivAction(vpp_contiv.Frontend_Target_BALANCE), ServiceID: uint64(n + 1)}
	default:
		frontend.Name = "unused ports"
		frontend.InCluster = contiv.ContivTarget{Action: contiv.ContivAction(vpp_contiv.Frontend_Target_REJECT)}
	}
	frontend.Outside = frontend.InCluster
	return frontend
}

// retval returns the result in an answer of VPP.
func retval(m api.Message) (value int32, ok bool) {
	switch r := m.(type) {
	case *ip.IPRouteAddDelV2Reply:
		return r.Retval, true
	case *contiv.ContivServiceAddDelReply:
		return r.Retval, true
	case *contiv.ContivBackendAddDelReply:
		return r.Retval, true
	case *contiv.ContivFrontendAddDelReply:
		return r.Retval, true
	}
	return 0, false
}
