package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
	"contiv.dev/vswitch/dataplane/windows/wiring"
	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/internal/daemon"
	"contiv.dev/vswitch/internal/logs"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/poll"
)

// memoryRoutes holds the routes of a simulated node.
type memoryRoutes struct {
	mu   sync.Mutex
	list []wiring.HostRoute
}

func (m *memoryRoutes) List() ([]wiring.HostRoute, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list), nil
}

func (m *memoryRoutes) Add(r wiring.HostRoute) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, r)
	return nil
}

func (m *memoryRoutes) Remove(r wiring.HostRoute) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = slices.DeleteFunc(m.list, func(o wiring.HostRoute) bool { return o == r })
	return nil
}

// windowsCluster is a set of Windows nodes, each an agent with an HNS in memory. A Linux node is a record in etcd (linuxNode), or an agent in
// its own process (mixedCluster).
type windowsCluster struct {
	t       *testing.T
	api     *kubeapi.Server
	dir     string
	etcd    string
	config  string
	network [3]byte // prefix of the nodes' network, a /24
	ipv6    string  // the same for IPv6, up to the node's number; empty: none
}

// windowsRig is one Windows node.
type windowsRig struct {
	c      *windowsCluster
	name   string
	host   *hnsmem.Host
	routes *memoryRoutes
	nics   []netip.Prefix
	agent  *agent
	stop   func()
	home   string // directory of the node's files
	grave  *grave // of the running agent
}

func newWindowsCluster(t *testing.T, transport string) *windowsCluster {
	c := newWindowsAPI(t, "nodeToNodeTransport: "+transport+"\nvxlanVNI: 4096\n")
	etcd, err := clusterdb.StartEmbedded(t.Context(), clusterdb.Config{Embedded: clusterdb.EmbeddedConfig{DataDir: filepath.Join(c.dir, "e")}},
		slog.New(slog.DiscardHandler))
	c.must(err)
	t.Cleanup(etcd.Close)
	c.etcd = etcd.Endpoint()
	return c
}

// newWindowsAPI returns a cluster that has an API server and no etcd yet.
func newWindowsAPI(t *testing.T, config string) *windowsCluster {
	c := &windowsCluster{t: t, api: kubeapi.New(), dir: t.TempDir(), network: [3]byte{192, 0, 2}}
	t.Cleanup(c.api.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	c.api.Serve(l)
	c.must(os.WriteFile(filepath.Join(c.dir, "kubeconfig"), kubeapi.Kubeconfig(l.Addr().String()), 0o600))
	c.config = filepath.Join(c.dir, "contiv.conf")
	c.must(os.WriteFile(c.config, []byte(config), 0o600))
	return c
}

func (c *windowsCluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// linuxNode publishes a node in the same way as its agent.
func (c *windowsCluster) linuxNode(id uint32, addresses ...string) {
	db, err := clusterdb.Open(c.t.Context(), clusterdb.Config{Endpoints: []string{c.etcd}}, slog.New(slog.DiscardHandler))
	c.must(err)
	defer db.Close()
	c.must(db.NewBroker("/vnf-agent/contiv-ksr/").Put(c.t.Context(), fmt.Sprintf("allocatedIDs/%d", id),
		&vppnode.VppNode{Id: id, Name: "linux", IpAddresses: addresses}))
}

func (c *windowsCluster) windowsNode(i int) *windowsRig {
	r := &windowsRig{c: c, name: fmt.Sprintf("win-%d", i), host: hnsmem.New(), routes: &memoryRoutes{},
		nics: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte(append(c.network[:], byte(i)))), 24)}}
	addrs := []netip.Addr{r.nics[0].Addr()}
	if c.ipv6 != "" {
		r.nics = append(r.nics, netip.PrefixFrom(netip.MustParseAddr(fmt.Sprintf("%s%x", c.ipv6, i)), 64))
		addrs = append(addrs, r.nics[1].Addr())
	}
	c.must(c.api.Put(kubeapi.Node(r.name, addrs)))
	r.start()
	return r
}

// start starts the agent and waits until it is ready. The agent stops with the test, or by stop.
func (r *windowsRig) start() {
	r.c.t.Helper()
	r.c.must(r.launch())
	r.c.eventually(r.name+" is ready", func() error { return r.agent.ready() })
}

// launch starts an agent without waiting, for agents that do not become ready, or fail.
func (r *windowsRig) launch() error {
	if r.home == "" {
		r.home = filepath.Join(r.c.dir, r.name)
	}
	o := defaultOptions()
	o.nodeName, o.config, o.dataplane, o.filter, o.linuxNames = r.name, r.c.config, dataplaneWindows, "auto", linuxNamesContiv
	o.runDir, o.dataDir = filepath.Join(r.home, "r"), filepath.Join(r.home, "d")
	o.etcd.Endpoints, o.http.Address = []string{r.c.etcd}, "127.0.0.1:0"
	o.kubernetes.mode, o.kubernetes.api.Kubeconfig = kubernetesOn, filepath.Join(r.c.dir, "kubeconfig")
	r.c.must(o.complete())
	ring := logs.NewRing(logs.DefaultLines)
	ctx, cancel := context.WithCancel(context.Background())
	r.agent = newAgent(ctx, o, logs.New(testWriter{r.c.t}, slog.LevelWarn, ring), ring)
	r.grave = newGrave(r)
	grave, client := r.grave, r.grave.client()
	r.agent.windows = &windowsNode{v1: r.host.V1As(client), v2: r.host.V2As(client), routes: r.routes, host: polledHost{every: time.Minute,
		interfaces: func() ([]hostInterface, error) {
			return []hostInterface{{Name: "Ethernet", MTU: 1500, Addresses: r.nics, Default: true}}, nil
		}}}
	done, started := make(chan error, 1), make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() { done <- daemon.Run(ctx, r.agent.log, r.agent, r.agent.jobs, func() { close(started) }) })
	r.stop = sync.OnceFunc(func() {
		cancel()
		work.Wait()
		if err := <-done; err != nil && !grave.killed() {
			r.c.t.Errorf("%s: %v", r.name, err)
		}
	})
	r.c.t.Cleanup(r.stop)
	select {
	case <-started:
		return nil
	case err := <-done:
		done <- nil
		return err
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) { return len(b), nil }

func (c *windowsCluster) eventually(what string, check func() error) {
	c.t.Helper()
	poll.Succeeds(c.t, what, 30*time.Second, check)
}

func (r *windowsRig) cni(command cniapi.Command, pod, namespace string) (*cniapi.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client := &cniapi.Client{Socket: r.agent.opts.cniSocket}
	return client.Do(ctx, &cniapi.Request{
		Command: command, ContainerID: pod, IfName: "eth0", Netns: namespace, Pod: cniapi.Pod{Namespace: "default", Name: pod},
		Network: cniapi.Network{Name: "contiv", DNS: cniapi.DNS{Nameservers: []string{"10.96.0.10"}, Search: []string{"svc.cluster.local"}}},
	})
}

// add connects a pod in the way of containerd, with the GUID of a namespace. It returns the pod's first address.
func (r *windowsRig) add(pod string) (netip.Addr, string) {
	r.c.t.Helper()
	addrs, ns := r.addAll(pod)
	return addrs[0], ns
}

// addAll is add for all addresses of the pod.
func (r *windowsRig) addAll(pod string) (addrs []netip.Addr, namespace string) {
	r.c.t.Helper()
	r.c.must(r.c.api.Put(kubeapi.Pod(r.name, pod, nil)))
	ns, err := r.host.V2().CreateNamespace(hcn.Namespace{Type: hcn.NamespaceGuest})
	r.c.must(err)
	res, err := r.cni(cniapi.Add, pod, ns.ID)
	r.c.must(err)
	for _, ip := range res.IPs {
		addrs = append(addrs, ip.Address.Addr())
	}
	return addrs, ns.ID
}

// writes returns the calls since the last time that change something.
func (r *windowsRig) writes() (out []hnsmem.Call) {
	for _, c := range r.host.Calls() {
		if c.Writes() {
			out = append(out, c)
		}
	}
	return out
}

func (r *windowsRig) endpointOf(addr netip.Addr) (found hcn.Endpoint) {
	list, err := r.host.V2().ListEndpoints()
	r.c.must(err)
	for _, e := range list {
		if e.Flags&hcn.FlagRemote == 0 && e.IPConfigurations[0].IPAddress == addr.String() {
			return e
		}
	}
	r.c.t.Fatalf("%s: HNS has no endpoint %s among %v", r.name, addr, list)
	return found
}

// balancer returns the load balancer of a port, and the addresses of its backends.
func (r *windowsRig) balancer(vip string, port uint16) (lb hcn.LoadBalancer, to []string, err error) {
	list, err := r.host.V2().ListLoadBalancers()
	r.c.must(err)
	endpoints, err := r.host.V2().ListEndpoints()
	r.c.must(err)
	for _, lb := range list {
		if lb.PortMappings[0].ExternalPort != port || len(lb.FrontendVIPs) > 0 && lb.FrontendVIPs[0] != vip || len(lb.FrontendVIPs) == 0 && vip != "" {
			continue
		}
		for _, e := range endpoints {
			if slices.Contains(lb.HostComputeEndpoints, e.ID) {
				to = append(to, e.IPConfigurations[0].IPAddress)
			}
		}
		slices.Sort(to)
		return lb, to, nil
	}
	return lb, nil, fmt.Errorf("%s: no load balancer %q port %d among %+v", r.name, vip, port, list)
}

// TestWindowsNodes: two Windows nodes and a Linux one. Pods are connected by CNI, a service has backends on all nodes, a policy blocks other
// sources, a restart writes nothing, and a pod that is removed leaves nothing behind.
func TestWindowsNodes(t *testing.T) {
	c := newWindowsCluster(t, "vxlan")
	c.linuxNode(9, "192.0.2.9/24")
	one := c.windowsNode(1)
	two := c.windowsNode(2)
	a, nsA := one.add("a")
	b, _ := two.add("b")

	e := one.endpointOf(a)
	nat, err := hcn.SettingsOf[hcn.OutboundNATSettings](e.Policies, hcn.TypeOutBoundNAT)
	c.must(err)
	if e.HostComputeNamespace != nsA || !slices.Equal(e.DNS.ServerList, []string{"10.96.0.10"}) || len(nat) != 1 ||
		!slices.Contains(nat[0].Exceptions, "10.1.0.0/16") || !slices.Contains(nat[0].Exceptions, "10.96.0.0/12") {
		t.Errorf("endpoint of a: %+v, NAT %+v", e, nat)
	}
	// The overlay has routes to both other nodes, with the MAC addresses that those nodes use.
	c.eventually("routes to the other nodes", func() error {
		n, _ := one.host.Network("contiv")
		list, err := hcn.SettingsOf[hcn.RemoteSubnetSettings](n.Policies, hcn.TypeRemoteSubnet)
		c.must(err)
		via := map[string]hcn.RemoteSubnetSettings{}
		for _, s := range list {
			via[s.DestinationPrefix] = s
		}
		linux := via["10.1.9.0/24"]
		if linux.ProviderAddress != "192.0.2.9" || linux.IsolationID != 4096 || linux.DistributedRouterMacAddress != "12-2B-00-00-00-09" {
			return fmt.Errorf("to the Linux node: %+v of %+v", linux, list)
		}
		for dst, s := range via {
			if p, err := netip.ParsePrefix(dst); err == nil && p.Contains(b) && s.ProviderAddress == "192.0.2.2" {
				return nil
			}
		}
		return fmt.Errorf("no way to %s: %+v", b, list)
	})
	c.service(one, a, b)
	c.policy(one, a, b)
	c.restart(one, a, nsA)
	_, err = one.cni(cniapi.Del, "a", nsA)
	c.must(err)
	if list, err := one.host.V2().ListEndpoints(); err != nil || slices.ContainsFunc(list, func(e hcn.Endpoint) bool {
		return e.IPConfigurations[0].IPAddress == a.String()
	}) {
		t.Errorf("a has gone, and HNS has %+v, %v", list, err)
	}
}

func (c *windowsCluster) service(r *windowsRig, a, b netip.Addr) {
	linux := netip.MustParseAddr("10.1.9.5")
	svc := kubeapi.Service("web", []netip.Addr{netip.MustParseAddr("10.96.0.80")}, kubeapi.Port(corev1.ProtocolTCP, 80))
	svc.Spec.Type, svc.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30080
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	c.must(c.api.Put(svc, kubeapi.Slice(svc, discoveryv1.AddressTypeIPv4, 8080, kubeapi.Endpoint("win-1", a), kubeapi.Endpoint("win-2", b),
		kubeapi.Endpoint("linux", linux))))
	c.eventually("cluster IP", func() error {
		lb, to, err := r.balancer("10.96.0.80", 80)
		if err != nil {
			return err
		}
		want := []string{a.String(), b.String(), linux.String()}
		slices.Sort(want)
		if m := lb.PortMappings[0]; !slices.Equal(to, want) || m.InternalPort != 8080 || m.DistributionType != hcn.LBDistributeSourceIP ||
			lb.SourceVIP == "" || lb.Flags&hcn.LBFlagDSR == 0 {
			return fmt.Errorf("%+v leads to %v, want %v", lb, to, want)
		}
		return nil
	})
	c.eventually("node port, whose clients are to be seen", func() error {
		lb, to, err := r.balancer("", 30080)
		if err == nil && (!slices.Equal(to, []string{a.String()}) || lb.PortMappings[0].Flags&hcn.LBPortPreserveDIP == 0) {
			err = fmt.Errorf("%+v leads to %v, want the node's own pod %s only", lb, to, a)
		}
		return err
	})
	// One more backend changes the load balancer, and nothing else.
	r.writes()
	c.must(c.api.Put(kubeapi.Slice(svc, discoveryv1.AddressTypeIPv4, 8080, kubeapi.Endpoint("win-1", a), kubeapi.Endpoint("win-2", b))))
	c.eventually("one backend less", func() error {
		if _, to, err := r.balancer("10.96.0.80", 80); err != nil || len(to) != 2 {
			return fmt.Errorf("leads to %v, %v", to, err)
		}
		return nil
	})
}

// policy isolates pod a.
func (c *windowsCluster) policy(r *windowsRig, a, b netip.Addr) {
	id := r.endpointOf(a).ID
	from := hnsmem.Packet{Protocol: 6, Local: a, Remote: b, LocalPort: 8080, RemotePort: 40000}
	allowed := func(want bool) func() error {
		return func() error {
			if got, err := r.host.Allowed(id, hns.In, from); err != nil || got != want {
				return fmt.Errorf("%v allowed: %v, %v", from, got, err)
			}
			return nil
		}
	}
	c.eventually("without a policy all may come", allowed(true))
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "isolate"},
		Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}}
	c.must(c.api.Put(p))
	c.eventually("isolated", allowed(false))
	c.must(c.api.Delete(p))
	c.eventually("open again", allowed(true))
}

// restart checks that an agent that starts again finds all objects as desired and writes nothing, and that a full comparison writes nothing
// either.
func (c *windowsCluster) restart(r *windowsRig, a netip.Addr, namespace string) {
	id := r.endpointOf(a).ID
	time.Sleep(200 * time.Millisecond) // operations in progress have ended
	r.writes()
	r.stop()
	r.start()
	if _, err := r.cni(cniapi.Add, "a", namespace); err != nil {
		c.t.Errorf("the same ADD again: %v", err)
	}
	if w := r.writes(); len(w) > 0 {
		c.t.Errorf("a restart with nothing changed writes %v", w)
	}
	if now := r.endpointOf(a).ID; now != id {
		c.t.Errorf("the endpoint of a was %s and is %s", id, now)
	}
	// Another program removes the endpoint: a resync makes it again.
	r.host.Vanish(id)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := r.agent.controller.Resync(ctx, api.DownstreamResync); err != nil {
		c.t.Error(err)
	}
	if e := r.endpointOf(a); e.HostComputeNamespace != namespace {
		c.t.Errorf("repaired endpoint: %+v", e)
	}
}

// TestWindowsL2Bridge: without an overlay the node itself has routes to the others' pods, and has the address of the pods' gateway.
func TestWindowsL2Bridge(t *testing.T) {
	c := newWindowsCluster(t, "nooverlay")
	c.linuxNode(9, "192.0.2.9/24")
	r := c.windowsNode(1)
	pod, _ := r.add("l2")
	c.eventually("route to the Linux node", func() error {
		list, _ := r.routes.List()
		want := wiring.HostRoute{Destination: netip.MustParsePrefix("10.1.9.0/24"), NextHop: netip.MustParseAddr("192.0.2.9")}
		if !slices.Contains(list, want) {
			return fmt.Errorf("%v", list)
		}
		return nil
	})
	n, _ := r.host.Network("contiv")
	e := r.endpointOf(pod)
	if n.Type != hcn.L2Bridge || len(e.Routes) != 1 || r.endpointOf(netip.MustParseAddr(e.Routes[0].NextHop)).HostComputeNamespace == "" {
		t.Errorf("network %+v, endpoint %+v: the node does not have the pods' gateway", n, e)
	}
}
