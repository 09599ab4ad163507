// Package plugin_test tests the contiv plugin in a real VPP: through its API, with pods in network namespaces, and with the packet
// generator.
package plugin_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/core"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

// rig is a VPP with the plugin, and pods attached to it.
type rig struct {
	*testing.T
	vpp   *vpptest.VPP
	netns *netns.Namespace // namespace of VPP, if it has one of its own
	conn  *core.Connection
	api   contiv.RPCService
	pods  int
	sent  int
}

// port is the attachment of a pod, or of the outside.
type port struct {
	*netns.Namespace
	index  interface_types.InterfaceIndex
	device string // name of the interface in VPP
	v4, v6 netip.Addr
}

func newRig(t *testing.T, opts vpptest.Options) *rig {
	t.Helper()
	opts.Plugin = true
	return newPlainRig(t, opts)
}

// newPlainRig returns a VPP with the given options; it has the plugin only if they name it.
func newPlainRig(t *testing.T, opts vpptest.Options) *rig {
	t.Helper()
	if opts.FewPlugins == nil {
		opts.FewPlugins = []string{"af_packet"}
	}
	if opts.Buffers == 0 {
		opts.Buffers = 8192 // for the rings of several TAPs, and packets in flight
	}
	r := &rig{T: t, vpp: vpptest.Start(t, opts)}
	client := socketclient.NewVppClient(r.vpp.Socket())
	client.SetConnectTimeout(time.Minute) // VPP's workers and its main thread wait for each other, and for the machine
	conn, err := core.Connect(client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Disconnect)
	r.conn, r.api = conn, contiv.NewServiceClient(conn)
	return r
}

// workerCounts returns the numbers of VPP worker threads for long tests: 0, and those of CONTIV_PLUGIN_WORKERS (such as "1 2").
func workerCounts() []int {
	counts := []int{0}
	for _, text := range strings.Fields(os.Getenv("CONTIV_PLUGIN_WORKERS")) {
		if n, err := strconv.Atoi(text); err == nil {
			counts = append(counts, n)
		}
	}
	return counts
}

// shortCounts are the numbers of worker threads for short tests.
var shortCounts = [...]int{0, 1, 2}

// eachWorkers runs a short test with each number of worker threads.
func eachWorkers(t *testing.T, run func(r *rig)) {
	for _, n := range shortCounts {
		t.Run(fmt.Sprintf("workers=%d", n), func(t *testing.T) {
			matrix.Only(t, "workers=0", "workers=2")
			run(newRig(t, vpptest.Options{Workers: n, Vhostshim: true}))
		})
	}
}

func (r *rig) cli(format string, args ...any) string {
	r.Helper()
	command := fmt.Sprintf(format, args...)
	reply := &vlib.CliInbandReply{}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := r.conn.Invoke(ctx, &vlib.CliInband{Cmd: command}, reply); err != nil || reply.Retval != 0 {
		r.Fatalf("%s: %d %s (%v)", command, reply.Retval, reply.Reply, err)
	}
	return reply.Reply
}

// do ends the test if an API call has returned an error. Its parameters are the results of the call.
func (r *rig) do(_ any, err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// index returns the index of an interface.
func (r *rig) index(name string) interface_types.InterfaceIndex {
	r.Helper()
	for line := range strings.Lines(r.cli("show interface %s", name)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, err := strconv.ParseUint(f[1], 10, 32)
			if err != nil {
				r.Fatal(err)
			}
			return interface_types.InterfaceIndex(n)
		}
	}
	r.Fatalf("no interface %s", name)
	return 0
}

// attach creates a namespace with addresses of the next networks, which are 10.1.n.0/24 and fd00:1:n::/64.
func (r *rig) attach(name string) *port {
	r.Helper()
	r.pods++
	n := r.pods
	ns, err := netns.New(r.Context(), fmt.Sprintf("cv%s%d-%d", name, n, os.Getpid()))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = ns.Delete(context.Background()) })
	if _, err := ns.Run(r.Context(), "sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0"); err != nil {
		r.Fatal(err)
	}
	v4, v6 := r.networkAddresses(n)
	return &port{Namespace: ns, v4: v4, v6: v6}
}

// networkAddresses returns the pod's addresses in a network.
func (r *rig) networkAddresses(n int) (v4, v6 netip.Addr) {
	return netip.AddrFrom4([4]byte{10, 1, byte(n), 2}), netip.MustParseAddr(fmt.Sprintf("fd00:1:%d::2", n))
}

// up gives an interface the first addresses of the networks created last.
func (r *rig) up(p *port, iface string) {
	r.Helper()
	r.cli("set interface ip address %s 10.1.%d.1/24", iface, r.pods)
	r.cli("set interface ip address %s fd00:1:%d::1/64", iface, r.pods)
	r.cli("set interface state %s up", iface)
	p.device, p.index = iface, r.index(iface)
}

// tap attaches a namespace by a TAP.
func (r *rig) tap(name, options string) *port {
	r.Helper()
	p := r.attach(name)
	n := r.pods
	r.cli("create tap id %d host-ns %s host-if-name eth0 host-ip4-addr %s/24 host-ip4-gw 10.1.%d.1 host-ip6-addr %s/64 host-ip6-gw fd00:1:%d::1 %s",
		n, p.Path(), p.v4, n, p.v6, n, options)
	r.up(p, fmt.Sprintf("tap%d", n))
	return p
}

// pod attaches a namespace by a TAP that is an endpoint of a pod.
func (r *rig) pod(name, options string) *port {
	r.Helper()
	p := r.tap(name, options)
	_, hardware, _ := strings.Cut(r.cli("show hardware-interfaces %s", p.device), "Ethernet address ")
	hardware, _, _ = strings.Cut(hardware, "\n")
	for _, own := range []netip.Addr{p.v4, p.v6} {
		// Same as ipnet. Otherwise the kernel occasionally solicits VPP's addresses from its link-local address, which a pod is not
		// allowed to do.
		r.cli("set ip neighbor static %s %s %s", p.device, own, r.hardware(p))
		r.run(p.Namespace, fmt.Sprintf("ip neigh replace %s lladdr %s dev eth0 nud permanent", r.gateway(own), strings.TrimSpace(hardware)))
	}
	r.endpoint(p, contiv.CONTIV_ROLE_API_POD, p.v4, p.v6)
	return p
}

// hardware returns the hardware address of an end.
func (r *rig) hardware(p *port) (own net.HardwareAddr) {
	r.Helper()
	r.do(nil, p.Do(func() error {
		link, err := net.InterfaceByName("eth0")
		if err == nil {
			own = link.HardwareAddr
		}
		return err
	}))
	return own
}

func (r *rig) endpoint(p *port, role contiv.ContivRole, addresses ...netip.Addr) {
	r.Helper()
	req := &contiv.ContivEndpointSet{SwIfIndex: p.index, Role: role, Name: p.Name}
	for _, a := range addresses {
		req.Addresses = append(req.Addresses, address(a))
	}
	req.NAddresses = uint8(len(addresses))
	r.do(r.api.ContivEndpointSet(r.Context(), req))
}

func address(a netip.Addr) ip_types.Address { return ip_types.NewAddress(a.AsSlice()) }

func prefix(text string) ip_types.Prefix {
	p := netip.MustParsePrefix(text)
	return ip_types.Prefix{Address: address(p.Addr()), Len: uint8(p.Bits())}
}

func (r *rig) network(text string, class contiv.ContivClass) {
	r.Helper()
	r.do(r.api.ContivNetworkAddDel(r.Context(), &contiv.ContivNetworkAddDel{IsAdd: true, Prefix: prefix(text), AddressClass: class}))
}

// service creates a service with backends, and a frontend for it.
func (r *rig) service(id uint64, frontend string, protocol uint8, backends ...string) {
	r.Helper()
	r.do(r.api.ContivServiceAddDel(r.Context(), &contiv.ContivServiceAddDel{IsAdd: true, ID: id, Name: fmt.Sprint("service", id)}))
	for _, b := range backends {
		ap := netip.MustParseAddrPort(b)
		r.do(r.api.ContivBackendAddDel(r.Context(), &contiv.ContivBackendAddDel{IsAdd: true, ServiceID: id, Address: address(ap.Addr()), Port: ap.Port()}))
	}
	ap := netip.MustParseAddrPort(frontend)
	target := contiv.ContivTarget{Action: contiv.CONTIV_ACTION_API_BALANCE, ServiceID: id}
	r.do(r.api.ContivFrontendAddDel(r.Context(), &contiv.ContivFrontendAddDel{IsAdd: true, Address: address(ap.Addr()), Port: ap.Port(),
		Protocol: protocol, Name: frontend, InCluster: target, Outside: target}))
}

// masquerade sets source NAT 0.
func (r *rig) masquerade(v4, v6 string) {
	r.Helper()
	r.do(r.api.ContivSnatAddDel(r.Context(), &contiv.ContivSnatAddDel{IsAdd: true, Name: "masquerade",
		IP4: ip_types.IP4Address(netip.MustParseAddr(v4).As4()), IP6: ip_types.IP6Address(netip.MustParseAddr(v6).As16())}))
}

// counter returns the value of an error counter of a VPP node.
func (r *rig) counter(node, reason string) int {
	r.Helper()
	sum := 0
	threads, _, _ := strings.Cut(r.cli("show errors verbose"), "Total:") // the section "Total:" repeats the counters with shorter reasons
	for line := range strings.Lines(threads) {
		f := strings.Fields(line)
		if len(f) > 2 && f[1] == node && strings.Contains(line, reason) {
			n, _ := strconv.Atoi(f[0])
			sum += n
		}
	}
	return sum
}

func (r *rig) stats() *contiv.ContivStatsGetReply {
	r.Helper()
	reply, err := r.api.ContivStatsGet(r.Context(), &contiv.ContivStatsGet{})
	r.do(nil, err)
	return reply
}

// buffersUsed returns the number of VPP's buffers that are neither free nor in a thread's cache.
func (r *rig) buffersUsed() int {
	r.Helper()
	for line := range strings.Lines(r.cli("show buffers")) {
		if f := strings.Fields(line); len(f) > 7 && strings.HasPrefix(line, "default-numa-0") {
			used, _ := strconv.Atoi(f[len(f)-1])
			return used
		}
	}
	r.Fatal("no line of the default pool")
	return 0
}

// eventually waits for a condition.
func (r *rig) eventually(what string, holds func() bool) {
	r.Helper()
	poll.Await(r.T, what, 2*time.Minute, holds)
}
