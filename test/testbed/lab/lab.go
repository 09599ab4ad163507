package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

const (
	nodes      = 2
	apiAddress = "127.0.0.1:6443"
	startLimit = time.Minute
)

// Options describe a lab.
type Options struct {
	Name      string // short; prefix of the names of all namespaces
	BinDir    string // folder of contiv-agent and contiv-cni
	Dataplane string // vpp or linux
	// Config is additional lines of contiv.conf, before its sections.
	Config    string
	AgentArgs []string
	// NoServices: the agents run without Kubernetes.
	NoServices bool
	// VPP are the options of VPP; the namespace and the stand-in for vhost-net are filled in.
	VPP vpptest.Options
}

// Lab is a running lab.
type Lab struct {
	*testbed.Cluster
	API *kubeapi.Server

	opts Options
	dir  string

	mu   sync.Mutex
	pods map[string]*testbed.Pod // by namespace; guarded by mu
}

// New makes the nodes and waits until their agents are ready.
func New(ctx context.Context, opts Options) (*Lab, error) {
	l := &Lab{opts: opts, API: kubeapi.New(), pods: map[string]*testbed.Pod{}}
	if err := l.start(ctx); err != nil {
		return nil, errors.Join(err, l.Close(context.WithoutCancel(ctx)))
	}
	return l, nil
}

func (l *Lab) isVPP() bool { return l.opts.Dataplane == "vpp" }

func (l *Lab) start(ctx context.Context) (err error) {
	if l.dir, err = os.MkdirTemp("", "contiv-"+l.opts.Name+"-"); err != nil {
		return err
	}
	if err := os.WriteFile(l.kubeconfig(), kubeapi.Kubeconfig(apiAddress), 0o600); err != nil {
		return err
	}
	if l.Cluster, err = testbed.NewCluster(ctx, l.clusterOptions()); err != nil {
		return err
	}
	if err := l.outside(ctx); err != nil {
		return err
	}
	for i, n := range l.Nodes {
		if err := l.serveAPI(n.Namespace); err != nil {
			return err
		}
		node := kubeapi.Node(n.Name, []netip.Addr{l.HostAddrs(i)[0]}, fmt.Sprintf("10.1.%d.0/24", i+1), fmt.Sprintf("fd10:1:0:%d::/64", i+1))
		if err := l.API.Put(node); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for i, n := range l.Nodes {
		if err := n.StartAgent(ctx); err != nil {
			return err
		}
		if err := l.hostRoutes(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }

func (l *Lab) clusterOptions() testbed.ClusterOptions {
	name, kubernetes := l.opts.Name, "--kubeconfig="+l.kubeconfig()
	if l.opts.NoServices {
		kubernetes = "--kubernetes=off"
	}
	opts := testbed.ClusterOptions{
		Name: name, Nodes: nodes, Unstarted: true, Addressed: !l.isVPP(),
		Node: testbed.NodeOptions{
			BinDir: l.opts.BinDir, Dataplane: l.opts.Dataplane,
			AgentArgs: append([]string{kubernetes}, l.opts.AgentArgs...),
		},
		ConfigOf: func(i int) string { return l.config(testbed.NodeName(name, i)) },
	}
	if l.isVPP() {
		vpp := l.opts.VPP
		vpp.Vhostshim = !HasVhostNet()
		opts.Node.VPP = &vpp
	}
	return opts
}

// HasVhostNet reports whether the kernel has vhost-net, so that TAPs need no stand-in.
func HasVhostNet() bool {
	_, err := os.Stat("/dev/vhost-net")
	return err == nil
}

func (l *Lab) config(node string) string {
	nic := testbed.UplinkNIC
	if l.isVPP() {
		nic = "host-" + nic
	}
	return l.opts.Config +
		"ipamConfig:\n  podSubnetCIDR: 10.1.0.0/16,fd10:1::/48\n  podSubnetOneNodePrefixLen: 24,64\n" +
		"  serviceCIDR: 10.96.0.0/12,fd10:96::/108\n  nodeInterconnectCIDR: 192.168.16.0/24,fd00:16::/64\n" +
		"nodeConfig:\n- nodeName: " + node + "\n  mainVPPInterface:\n    interfaceName: " + nic + "\n"
}

// NodeAddr returns a node's address on the network that connects nodes. With VPP it is VPP's, from nodeInterconnectCIDR.
func (l *Lab) NodeAddr(i int) netip.Addr {
	if l.isVPP() {
		return netip.AddrFrom4([4]byte{192, 168, 16, byte(i + 1)})
	}
	v4, _ := testbed.UplinkAddress(i)
	return netip.MustParseAddr(v4)
}

// HostAddrs returns addresses of a node's own network namespace, IPv4 and IPv6.
func (l *Lab) HostAddrs(i int) [2]netip.Addr {
	v4, v6 := testbed.UplinkAddress(i)
	if l.isVPP() {
		v4, v6 = testbed.MgmtAddress(i), fmt.Sprintf("fd00:172:30:%d::2", i+1)
	}
	return [2]netip.Addr{netip.MustParseAddr(v4), netip.MustParseAddr(v6)}
}

// OutsideAddr returns the address of the machine outside of the cluster; it belongs to the namespace Underlay.
func (l *Lab) OutsideAddr() netip.Addr { return outsideAddrs()[0] }

func outsideAddrs() [2]netip.Addr {
	return [2]netip.Addr{netip.AddrFrom4([4]byte{192, 168, 16, 250}), netip.MustParseAddr("fd00:16::fa")}
}

func (l *Lab) outside(ctx context.Context) error {
	// Checksums must be complete, as on a wire: VPP's af_packet would receive packets without valid checksums.
	if _, err := l.Underlay.Run(ctx, "ethtool", "-K", "uplink", "tx", "off"); err != nil {
		return err
	}
	addrs := outsideAddrs()
	return errors.Join(l.ip(ctx, l.Underlay, "addr add "+addrs[0].String()+"/24 dev uplink"),
		l.ip(ctx, l.Underlay, "addr add "+addrs[1].String()+"/64 dev uplink nodad"))
}

// hostRoutes gives a node default routes, as nodes have them. With VPP they lead to VPP; on a real node the operator has to
// configure them.
func (l *Lab) hostRoutes(ctx context.Context, i int) error {
	outside := outsideAddrs()
	ways := []string{outside[0].String() + " dev " + testbed.UplinkNIC, outside[1].String() + " dev " + testbed.UplinkNIC}
	if l.isVPP() {
		ways = []string{fmt.Sprintf("172.30.%d.1", i+1), fmt.Sprintf("fd00:172:30:%d::1", i+1)}
	}
	for _, way := range ways {
		// The link's own addresses may not be usable yet, so this is retried.
		if err := poll.Until(ctx, 50*time.Millisecond, func() error {
			return l.ip(ctx, l.Nodes[i].Namespace, "route add default via "+way)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) ip(ctx context.Context, ns *netns.Namespace, args string) error {
	_, err := ns.Run(ctx, "ip", strings.Fields(args)...)
	return err
}

// serveAPI serves the API at the loopback address of a namespace.
func (l *Lab) serveAPI(ns *netns.Namespace) error {
	return ns.Do(func() error {
		listener, err := net.Listen("tcp", apiAddress)
		if err != nil {
			return err
		}
		l.API.Serve(listener)
		return nil
	})
}

// Pod adds a pod to a node (from 0). It has one address of each family.
func (l *Lab) Pod(ctx context.Context, node int, name string) (*testbed.Pod, error) {
	if err := l.API.Put(kubeapi.Pod(l.Nodes[node].Name, name, nil)); err != nil { // a pod has an object before it has a sandbox
		return nil, err
	}
	p, err := l.Nodes[node].AddPod(ctx, name)
	if err != nil {
		return nil, errors.Join(err, l.API.Delete(kubeapi.Pod(l.Nodes[node].Name, name, nil)))
	}
	l.mu.Lock()
	l.pods[p.Name] = p
	l.mu.Unlock()
	if len(p.IPs) != 2 {
		return nil, fmt.Errorf("pod %s has not one address of each family: %v", name, p.IPs)
	}
	return p, l.API.Put(kubeapi.Pod(l.Nodes[node].Name, name, p.IPs))
}

// DeletePod deletes a pod that Pod has made on a node, with the name that was passed to Pod.
func (l *Lab) DeletePod(ctx context.Context, node int, name string, p *testbed.Pod) error {
	err := errors.Join(l.API.Delete(kubeapi.Pod(l.Nodes[node].Name, name, p.IPs)), l.Nodes[node].DeletePod(ctx, p))
	if err == nil {
		l.mu.Lock()
		delete(l.pods, p.Name)
		l.mu.Unlock()
	}
	return err
}

// Service puts a dual-stack service with a TCP port, which its endpoints serve at target.
func (l *Lab) Service(svc *corev1.Service, target uint16, backends ...Backend) error {
	if err := l.API.Put(svc); err != nil {
		return err
	}
	for f, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		var endpoints []discoveryv1.Endpoint
		for _, b := range backends {
			endpoints = append(endpoints, kubeapi.Endpoint(l.Nodes[b.Node].Name, b.Pod.IPs[f]))
		}
		if err := l.API.Put(kubeapi.Slice(svc, family, int32(target), endpoints...)); err != nil {
			return err
		}
	}
	return nil
}

// Unservice deletes the objects of Service.
func (l *Lab) Unservice(svc *corev1.Service) error {
	return l.API.Delete(svc, kubeapi.Slice(svc, discoveryv1.AddressTypeIPv4, 0), kubeapi.Slice(svc, discoveryv1.AddressTypeIPv6, 0))
}

// Backend is a pod behind a service.
type Backend struct {
	Node int
	Pod  *testbed.Pod
}

// PIDs returns the processes that process packets, apart from the kernel: VPP, on every node.
func (l *Lab) PIDs() (pids []int) {
	for _, n := range l.Nodes {
		if n.VPP != nil {
			pids = append(pids, n.VPP.PID())
		}
	}
	return pids
}

// Close stops everything and removes it.
func (l *Lab) Close(ctx context.Context) error {
	l.API.Close()
	for _, p := range l.pods {
		_ = p.Delete(ctx) // the pod may have been deleted already
	}
	var err error
	if l.Cluster != nil {
		err = l.Cluster.Close(ctx)
	}
	if l.dir != "" {
		err = errors.Join(err, os.RemoveAll(l.dir))
	}
	return err
}
