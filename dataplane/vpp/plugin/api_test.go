package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/lifecycle"
)

// dump returns all details of a dump, in VPP's order.
func dump[D api.Message](r *rig, req api.Message) (all []D) {
	r.Helper()
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(context.Background(), log)
	c := conn.New(conn.Config{Socket: r.vpp.Socket()}, log)
	connected := make(chan bool, 10)
	c.OnChange(func(s conn.State) { connected <- s.Connected() })
	c.Start(jobs)
	defer jobs.Stop(time.Minute)
	defer c.Close()
	for !<-connected {
	}
	l := c.Lane()
	conn.Dump(l, req, func(d D) { all = append(all, d) }, func(err error) { r.do(nil, err) })
	l.Flush(r.Context())
	return all
}

const (
	invalid   = api.INVALID_VALUE
	noEntry   = api.NO_SUCH_ENTRY
	noSuchIfx = api.INVALID_SW_IF_INDEX
)

// Invalid requests are rejected and change nothing. Deletion of an object that does not exist returns -6.
func TestRefused(t *testing.T) {
	r := newRig(t, vpptest.Options{})
	g := r.pg("")
	balance := contiv.ContivTarget{Action: contiv.CONTIV_ACTION_API_BALANCE, ServiceID: 1}
	reject := contiv.ContivTarget{Action: contiv.CONTIV_ACTION_API_REJECT}
	v4, v6 := address(netip.MustParseAddr("10.0.0.1")), address(netip.MustParseAddr("fd00::1"))
	unknown := v4
	unknown.Af = 7
	long := "0123456789012345678901234567890123456789012345678901234567890123"
	ctx := t.Context()
	try := func(what string, want api.VPPApiError, _ any, err error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	set := func(change func(*contiv.ContivEndpointSet)) (any, error) {
		req := &contiv.ContivEndpointSet{SwIfIndex: g.index, Role: contiv.CONTIV_ROLE_API_POD, Name: "pod"}
		change(req)
		return r.api.ContivEndpointSet(ctx, req)
	}
	reply, err := set(func(q *contiv.ContivEndpointSet) { q.SwIfIndex = 99 })
	try("endpoint of no interface", noSuchIfx, reply, err)
	reply, err = set(func(q *contiv.ContivEndpointSet) { q.SwIfIndex = ^interface_types.InterfaceIndex(0) })
	try("endpoint ~0", noSuchIfx, reply, err)
	reply, err = set(func(q *contiv.ContivEndpointSet) { q.Role = 0 })
	try("role 0", invalid, reply, err)
	reply, err = set(func(q *contiv.ContivEndpointSet) { q.Role = 5 })
	try("role 5", invalid, reply, err)
	reply, err = set(func(q *contiv.ContivEndpointSet) { q.Name = long })
	try("name without end", invalid, reply, err)
	reply, err = set(func(q *contiv.ContivEndpointSet) { q.Addresses, q.NAddresses = make([]ip_types.Address, 33), 33 })
	try("33 addresses", invalid, reply, err)
	reply, err = set(func(q *contiv.ContivEndpointSet) { q.Addresses, q.NAddresses = []ip_types.Address{unknown}, 1 })
	try("address of family 7", invalid, reply, err)
	reply, err = set(func(q *contiv.ContivEndpointSet) { q.Egress = 1024 })
	try("egress 1024", invalid, reply, err)
	del, err := r.api.ContivEndpointDel(ctx, &contiv.ContivEndpointDel{SwIfIndex: g.index})
	try("delete no endpoint", noEntry, del, err)
	del, err = r.api.ContivEndpointDel(ctx, &contiv.ContivEndpointDel{SwIfIndex: 99})
	try("delete endpoint of no interface", noSuchIfx, del, err)

	network := func(p ip_types.Prefix, class contiv.ContivClass, add bool) error {
		_, err := r.api.ContivNetworkAddDel(ctx, &contiv.ContivNetworkAddDel{IsAdd: add, Prefix: p, AddressClass: class})
		return err
	}
	try("class 3", invalid, nil, network(prefix("10.0.0.0/8"), 3, true))
	try("class 0", invalid, nil, network(prefix("10.0.0.0/8"), 0, true))
	try("host bits", invalid, nil, network(prefix("10.0.0.1/8"), 1, true))
	try("/33", invalid, nil, network(ip_types.Prefix{Address: v4, Len: 33}, 1, true))
	try("/129", invalid, nil, network(ip_types.Prefix{Address: v6, Len: 129}, 1, true))
	try("network not there", noEntry, nil, network(prefix("10.0.0.0/8"), 1, false))

	snat := func(id uint32, low, high uint16, add bool) error {
		_, err := r.api.ContivSnatAddDel(ctx, &contiv.ContivSnatAddDel{IsAdd: add, ID: id, PortLow: low, PortHigh: high})
		return err
	}
	try("SNAT 1024", invalid, nil, snat(1024, 0, 0, true))
	try("ports backwards", invalid, nil, snat(1, 9, 8, true))
	try("SNAT not there", noEntry, nil, snat(1, 0, 0, false))

	service := func(id uint64, flags contiv.ContivServiceFlags, add bool) error {
		_, err := r.api.ContivServiceAddDel(ctx, &contiv.ContivServiceAddDel{IsAdd: add, ID: id, Flags: flags})
		return err
	}
	try("service 0", invalid, nil, service(0, 0, true))
	try("service flag 2", invalid, nil, service(1, 2, true))
	try("service not there", noEntry, nil, service(1, 0, false))
	backend := func(id uint64, a ip_types.Address, flags contiv.ContivBackendFlags, add bool) error {
		_, err := r.api.ContivBackendAddDel(ctx, &contiv.ContivBackendAddDel{IsAdd: add, ServiceID: id, Address: a, Port: 80, Flags: flags})
		return err
	}
	try("backend of no service", noEntry, nil, backend(1, v4, 0, true))
	r.do(nil, service(1, 0, true))
	try("backend of family 7", invalid, nil, backend(1, unknown, 0, true))
	try("backend flag 4", invalid, nil, backend(1, v4, 4, true))
	try("backend not there", noEntry, nil, backend(1, v4, 0, false))

	frontend := func(change func(*contiv.ContivFrontendAddDel)) error {
		q := &contiv.ContivFrontendAddDel{IsAdd: true, Address: v4, Port: 80, Protocol: 6, InCluster: balance, Outside: reject}
		change(q)
		_, err := r.api.ContivFrontendAddDel(ctx, q)
		return err
	}
	try("protocol 1", invalid, nil, frontend(func(q *contiv.ContivFrontendAddDel) { q.Protocol = 1 }))
	try("protocol 0 with a port", invalid, nil, frontend(func(q *contiv.ContivFrontendAddDel) { q.Protocol = 0 }))
	try("action 0", invalid, nil, frontend(func(q *contiv.ContivFrontendAddDel) { q.Outside.Action = 0 }))
	try("action 4", invalid, nil, frontend(func(q *contiv.ContivFrontendAddDel) { q.Outside.Action = 4 }))
	try("balance without service", invalid, nil, frontend(func(q *contiv.ContivFrontendAddDel) { q.InCluster.ServiceID = 0 }))
	try("target flag 2", invalid, nil, frontend(func(q *contiv.ContivFrontendAddDel) { q.InCluster.Flags = 2 }))
	try("affinity without time", invalid, nil, frontend(func(q *contiv.ContivFrontendAddDel) { q.AffinityGroup = 1 }))
	try("frontend not there", noEntry, nil, frontend(func(q *contiv.ContivFrontendAddDel) { q.IsAdd = false }))
	r.do(nil, frontend(func(*contiv.ContivFrontendAddDel) {}))

	for _, id := range []uint64{0, 1} {
		_, err := r.api.ContivRangeAddDel(ctx, &contiv.ContivRangeAddDel{IsAdd: id == 0, ID: id, Prefix: prefix("10.0.0.0/8")})
		try("range 0, and one not there", []api.VPPApiError{invalid, noEntry}[id], nil, err)
	}
	_, err = r.api.ContivConnectionDel(ctx, &contiv.ContivConnectionDel{Protocol: 6, Client: v4, Frontend: v6})
	try("connection of two families", invalid, nil, err)
	_, err = r.api.ContivConnectionDel(ctx, &contiv.ContivConnectionDel{Protocol: 6, Client: v4, Frontend: v4})
	try("connection not there", noEntry, nil, err)

	for name, n := range map[string]int{
		"networks": len(dump[*contiv.ContivNetworkDetails](r, &contiv.ContivNetworkDump{})), "SNAT": len(dump[*contiv.ContivSnatDetails](r, &contiv.ContivSnatDump{})),
		"ranges": len(dump[*contiv.ContivRangeDetails](r, &contiv.ContivRangeDump{})), "endpoints": len(dump[*contiv.ContivEndpointDetails](r, &contiv.ContivEndpointDump{})),
	} {
		if n != 0 {
			t.Errorf("%d %s are there", n, name)
		}
	}
}

// Dumped objects equal the objects that were set.
func TestDumps(t *testing.T) {
	r := newRig(t, vpptest.Options{})
	g := r.pg("")
	ctx := t.Context()
	set := &contiv.ContivEndpointSet{SwIfIndex: g.index, Role: contiv.CONTIV_ROLE_API_POD, Name: "ns/pod", Egress: 3, MaxConnections: 77, NAddresses: 2,
		Addresses: []ip_types.Address{address(g.v4), address(g.v6)}}
	for range 2 { // a repeated request changes nothing
		_, err := r.api.ContivEndpointSet(ctx, set)
		r.do(nil, err)
	}
	want(t, dump[*contiv.ContivEndpointDetails](r, &contiv.ContivEndpointDump{}), &contiv.ContivEndpointDetails{SwIfIndex: g.index, Role: set.Role,
		Name: set.Name, Egress: 3, MaxConnections: 77, NAddresses: 2, Addresses: set.Addresses})
	snat := contiv.ContivSnatAddDel{IsAdd: true, ID: 3, Name: "egress", IP4: ip_types.IP4Address{192, 0, 2, 1}, PortLow: 1000, PortHigh: 2000}
	r.do(r.api.ContivSnatAddDel(ctx, &snat))
	want(t, dump[*contiv.ContivSnatDetails](r, &contiv.ContivSnatDump{}), &contiv.ContivSnatDetails{ID: 3, Name: "egress", IP4: snat.IP4, PortLow: 1000, PortHigh: 2000})
	r.network("fd00:1::/32", contiv.CONTIV_CLASS_API_NODE)
	want(t, dump[*contiv.ContivNetworkDetails](r, &contiv.ContivNetworkDump{}), &contiv.ContivNetworkDetails{Prefix: prefix("fd00:1::/32"), AddressClass: contiv.CONTIV_CLASS_API_NODE})
	r.do(r.api.ContivRangeAddDel(ctx, &contiv.ContivRangeAddDel{IsAdd: true, ID: 1 << 40, Prefix: prefix("10.0.0.0/8")}))
	want(t, dump[*contiv.ContivRangeDetails](r, &contiv.ContivRangeDump{}), &contiv.ContivRangeDetails{ID: 1 << 40, Prefix: prefix("10.0.0.0/8")})
	r.do(r.api.ContivServiceAddDel(ctx, &contiv.ContivServiceAddDel{IsAdd: true, ID: 1 << 50, Name: "svc", Flags: contiv.CONTIV_SERVICE_API_MAGLEV}))
	backend := contiv.ContivBackendAddDel{IsAdd: true, ServiceID: 1 << 50, Address: address(g.v6), Port: 8080, Flags: contiv.CONTIV_BACKEND_API_MASQ}
	r.do(r.api.ContivBackendAddDel(ctx, &backend))
	want(t, dump[*contiv.ContivServiceDetails](r, &contiv.ContivServiceDump{}), &contiv.ContivServiceDetails{ID: 1 << 50, Name: "svc", Flags: 1, NBackends: 1})
	want(t, dump[*contiv.ContivBackendDetails](r, &contiv.ContivBackendDump{}), &contiv.ContivBackendDetails{ServiceID: 1 << 50, Address: backend.Address, Port: 8080, Flags: 1})
	f := contiv.ContivFrontendAddDel{IsAdd: true, Address: address(netip.MustParseAddr("fd00:96::1")), Port: 443, Protocol: 132, Name: "front",
		InCluster: contiv.ContivTarget{Action: contiv.CONTIV_ACTION_API_BALANCE, Flags: 1, ServiceID: 1 << 50}, Outside: contiv.ContivTarget{Action: contiv.CONTIV_ACTION_API_DROP},
		Ranges: 1 << 40, AffinityGroup: 1 << 33, AffinityTimeout: 10800}
	r.do(r.api.ContivFrontendAddDel(ctx, &f))
	want(t, dump[*contiv.ContivFrontendDetails](r, &contiv.ContivFrontendDump{}), &contiv.ContivFrontendDetails{Address: f.Address, Port: 443, Protocol: 132, Name: "front",
		InCluster: f.InCluster, Outside: f.Outside, Ranges: f.Ranges, AffinityGroup: f.AffinityGroup, AffinityTimeout: 10800})
	config := &contiv.ContivConfigSet{EndpointConnections: 5, TunnelPorts: []uint16{4789, 0, 0, 8472}, TCPEstablished: 1, TCPTransitory: 2, UDP: 3, UDPStream: 4, ICMP: 5, Sctp: 6}
	r.do(r.api.ContivConfigSet(ctx, config))
	got, err := r.api.ContivConfigGet(ctx, &contiv.ContivConfigGet{})
	r.do(nil, err)
	want(t, []*contiv.ContivConfigGetReply{got}, &contiv.ContivConfigGetReply{ConnectionsMax: 262144, EndpointConnections: 5, TunnelPorts: config.TunnelPorts,
		TCPEstablished: 1, TCPTransitory: 2, UDP: 3, UDPStream: 4, ICMP: 5, Sctp: 6})
	version, err := r.api.ContivPluginGetVersion(ctx, &contiv.ContivPluginGetVersion{})
	r.do(nil, err)
	if text := fmt.Sprintf("%d.%d.%d", version.Major, version.Minor, version.Patch); text != contiv.APIVersion {
		t.Errorf("the plugin has version %s, its API %s", text, contiv.APIVersion)
	}
}

func want[D any](t *testing.T, got []D, want ...D) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("dumped %+v\n  want %+v", got, want)
	}
}
