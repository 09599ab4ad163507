package main

import (
	"context"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/txn"
)

const routeCount = 10000

func routeDst(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
}

// benchRoutes adds and deletes the same routes in three ways, in turns.
func benchRoutes(ctx context.Context, e *env) error {
	w := &workload{
		objects: routeCount, messages: routeCount, what: "routes",
		request: func(i int, add bool) api.Message { return rawRoute(i, add) },
		value: func(i int) (string, proto.Message) {
			dst := routeDst(i)
			return nb.RouteKeyFor("", 0, dst, netip.Addr{}), &vpp_l3.Route{Type: vpp_l3.Route_DROP, DstNetwork: dst.String()}
		},
	}
	table := &vpp_l3.VrfTable{Label: "bench"}
	w.base = []txn.KV{{Key: nb.VrfTableKey(0, table.Protocol), Value: table}}
	return w.run(ctx, e)
}

func rawRoute(i int, add bool) *ip.IPRouteAddDelV2 {
	dst := routeDst(i)
	return &ip.IPRouteAddDelV2{IsAdd: add, Route: ip.IPRouteV2{
		Prefix: ip_types.Prefix{
			Address: ip_types.Address{Af: ip_types.ADDRESS_IP4, Un: ip_types.AddressUnionIP4(dst.Addr().As4())}, Len: 32,
		},
		NPaths: 1,
		Paths:  []fib_types.FibPath{{SwIfIndex: ^uint32(0), Type: fib_types.FIB_API_PATH_TYPE_DROP}},
	}}
}
