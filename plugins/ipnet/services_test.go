package ipnet_test

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/nat44"
)

// desired holds the values that a resync puts.
type desired map[string]proto.Message

func (d desired) Put(key string, v proto.Message)    { d[key] = v }
func (d desired) Get(key string) proto.Message       { return d[key] }
func (d desired) Delete(key string)                  { delete(d, key) }
func (d desired) Update(string) api.UpdateOperations { return d }
func (d desired) Resync() api.ResyncOperations       { return d }

// TestServicePackets checks the path of service packets at a node rendered by ipnet, with NAT rendered by nat44.
func TestServicePackets(t *testing.T) {
	nodes := ipnet.NewTestNodes(t, "")
	a, b := nodes.PodA, nodes.PodB
	plugin, state := nodes.First()
	r := nat44.New(nat44.Deps{NodeName: "n1", Network: plugin, Txn: desired(state), Log: slog.New(slog.DiscardHandler)})
	service := func(name, ip string, backends ...netip.Addr) *renderer.ContivService {
		s := renderer.NewContivService()
		s.ID = svcmodel.ID{Namespace: "ns", Name: name}
		s.ClusterIPs = renderer.NewIPAddresses(net.ParseIP(ip))
		s.Ports["p"] = &renderer.ServicePort{Protocol: renderer.UDP, Port: 80}
		for _, addr := range backends {
			s.Backends["p"] = append(s.Backends["p"], &renderer.ServiceBackend{IP: addr.AsSlice(), Port: 8080})
		}
		return s
	}
	remote := service("remote", "10.96.0.1", b.Addr)
	remote.Ports["p"].NodePort = 30080
	ev := renderer.NewResyncEventData()
	ev.Services = []*renderer.ContivService{remote, service("self", "10.96.0.2", a.Addr), service("none", "10.96.0.3")}
	ev.LocalNodeIPs = renderer.NewIPAddresses(net.ParseIP("192.168.16.1"))
	ev.FrontendIfs = renderer.NewInterfaces("host-eth1", plugin.GetVxlanBVIIfName(), plugin.GetHostInterconnectIfName(), a.If)
	if err := r.Resync(ev); err != nil {
		t.Fatal(err)
	}
	one, two := nodes.Apply()

	from := func(pod ipnet.TestPod, sport uint16, dst string, dport uint16) vppfake.Packet {
		return vppfake.Packet{
			EthSrc: vppfake.MAC(pod.MAC), EthDst: vppfake.MAC(pod.PeerMAC), Src: pod.Addr, Dst: netip.MustParseAddr(dst),
			Proto: vppfake.ProtoUDP, SrcPort: sport, DstPort: dport, Size: 100,
		}
	}
	send := func(fake *vppfake.Fake, pod ipnet.TestPod, p vppfake.Packet, at ipnet.TestPod, src string, sport uint16) vppfake.Packet {
		t.Helper()
		got, err := fake.Send("cv:"+pod.If, p)
		if err != nil {
			t.Fatal(err)
		}
		d, ok := got.Delivered()
		if !ok || d.Tag != "cv:"+at.If || d.Packet.Src.String() != src || sport != 0 && d.Packet.SrcPort != sport {
			t.Fatalf("%v: %+v, want it at %s from %s port %d\n%s", p, got.Out, at.If, src, sport, got)
		}
		return d.Packet
	}
	answer := func(p vppfake.Packet, pod ipnet.TestPod) vppfake.Packet {
		return from(pod, p.DstPort, p.Src.String(), p.SrcPort)
	}
	p := send(one, a, from(a, 1000, "10.96.0.1", 80), b, a.Addr.String(), 1000)
	send(two, b, answer(p, b), a, "10.96.0.1", 80)
	p = send(one, a, from(a, 1001, "10.96.0.2", 80), a, "10.1.1.254", 0)
	send(one, a, answer(p, a), a, "10.96.0.2", 80)
	p = send(one, a, from(a, 1002, "192.168.16.1", 30080), b, "10.1.1.254", 0)
	send(two, b, answer(p, b), a, "192.168.16.1", 30080)
	p = send(one, a, from(a, 1003, b.Addr.String(), 9000), b, a.Addr.String(), 1003)
	send(two, b, answer(p, b), a, b.Addr.String(), 9000)
	for _, port := range []string{"10.96.0.3", "10.96.7.7"} {
		got, err := one.Send("cv:"+a.If, from(a, 1004, port, 80))
		if _, dropped := got.Dropped(); err != nil || !dropped {
			t.Errorf("to %s, which nothing serves: %v %v\n%s", port, got.Out, err, got)
		}
	}
}
