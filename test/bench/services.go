package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/whoami"
)

// serviceSizes are the sizes of the services benchmark.
type serviceSizes struct {
	services, endpoints int // of the cold start
	among               int // services among which one endpoint changes
	changes             int
	only                string // the sides to run
	scale               []int  // numbers of services to compare on VPP with our plugin, instead of the sides
}

// The node under test and the node that has all endpoints. The latter answers at every address of its pods' network, so that
// every service can be tested.
const (
	benchNode    = "contiv-bench-s"
	endpointNode = "contiv-bench-e"
	servicePort  = 80
	targetPort   = 8080
	apiAddress   = "127.0.0.1:6443"
	podNetwork   = "10.2.0.0/16" // of endpointNode
)

// side is one of the compared proxies.
type side interface {
	name() string
	// begin makes the node's namespace and its contents before the proxy starts.
	begin(ctx context.Context, plug plugFunc) (*netns.Namespace, error)
	// start starts the proxy and returns at once.
	start(ctx context.Context) (*netns.Process, error)
	// state returns diagnostic output, to find out why services do not respond.
	state() string
	close(ctx context.Context) error
}

// plugFunc connects a namespace with the endpoints.
type plugFunc = func(context.Context, *netns.Namespace) error

// figures are the measurements of one side.
type figures struct {
	cold, change time.Duration
	bytes        float64 // per endpoint
}

// benchServices measures how kube-proxy and our agent make the same services reachable.
func benchServices(ctx context.Context, e *env) error {
	if len(e.services.scale) > 0 {
		return benchScale(ctx, e)
	}
	sides, err := serviceSides(e)
	if err != nil {
		return err
	}
	results := map[string]figures{}
	for _, s := range sides {
		f, err := measureSide(ctx, e.services, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
		results[s.name()] = f
	}
	var cold, change []bar
	for _, s := range sides {
		cold = append(cold, milliseconds(s.name(), results[s.name()].cold))
		change = append(change, milliseconds(s.name(), results[s.name()].change))
	}
	e.record("cold start until all services respond", "ms", cold...)
	e.record("one endpoint changes, until connections go there", "ms", change...)
	peer, ok := results[kubeProxySide]
	if !ok {
		return nil
	}
	for _, s := range sides[1:] {
		f := results[s.name()] // the peer comes first
		fmt.Printf("   kube-proxy to %s: cold start %.1fx, one endpoint change %.0fx, memory per endpoint %.1fx\n", s.name(),
			float64(peer.cold)/float64(f.cold), float64(peer.change)/float64(f.change), peer.bytes/f.bytes)
	}
	return nil
}

// world is the environment of a side.
type world struct {
	sizes serviceSizes
	api   *kubeapi.Server
	ns    *netns.Namespace // of the node under test
	far   *netns.Namespace // of the endpoints
	where func() string    // returns the side's state
}

// measureSide measures one side in its own world.
func measureSide(ctx context.Context, sizes serviceSizes, s side) (f figures, err error) {
	w, end, err := newServicesWorld(ctx, sizes, s)
	defer end()
	if err != nil {
		return f, err
	}
	empty, err := w.memoryWhenEmpty(ctx, s)
	if err != nil {
		return f, err
	}
	if err := w.fill(0, sizes.services, sizes.endpoints); err != nil {
		return f, err
	}
	begin := time.Now()
	p, err := s.start(ctx)
	if err != nil {
		return f, err
	}
	defer p.Kill()
	if f.cold, err = w.awaitServices(ctx, begin, 0, sizes.services); err != nil {
		return f, err
	}
	rss, peak := memory(p)
	f.bytes = (rss - empty) / float64(sizes.services*sizes.endpoints)
	fmt.Printf("   %-14s %d services with %d endpoints each: all respond %s after the start; "+
		"%.0f MB (peak %.0f MB, empty %.0f MB), %.0f bytes per endpoint\n",
		s.name(), sizes.services, sizes.endpoints, ms(f.cold), rss/1e6, peak/1e6, empty/1e6, f.bytes)
	f.change, err = w.measureChanges(ctx, s.name())
	return f, err
}

// newServicesWorld makes the world of a side; end removes it, as far as it was made.
func newServicesWorld(ctx context.Context, sizes serviceSizes, s side) (w *world, end func(), err error) {
	w = &world{sizes: sizes, api: kubeapi.New(), where: s.state}
	clean := context.WithoutCancel(ctx)
	ends := []func(){w.api.Close, func() { _ = s.close(clean) }}
	end = func() {
		for _, f := range slices.Backward(ends) {
			f()
		}
	}
	if w.far, err = netns.New(ctx, endpointNode); err != nil {
		return w, end, err
	}
	ends = append(ends, func() { _ = w.far.Delete(clean) })
	if w.ns, err = s.begin(ctx, w.plug); err != nil {
		return w, end, err
	}
	answers, err := whoami.Serve(w.far, "endpoints", targetPort)
	if err != nil {
		return w, end, err
	}
	ends = append(ends, answers.Close)
	return w, end, w.listen()
}

// plug connects the node under test with the node of the endpoints.
func (w *world) plug(ctx context.Context, ns *netns.Namespace) error {
	near, _ := testbed.UplinkAddress(0)
	far, _ := testbed.UplinkAddress(1)
	for _, do := range []struct {
		ns      *netns.Namespace
		command string
	}{
		{ns, "ip link add " + testbed.UplinkNIC + " up type veth peer name eth1 netns " + endpointNode},
		// Checksums must be complete, as on a wire: VPP's af_packet would receive packets without valid checksums.
		{w.far, "ethtool -K eth1 tx off"},
		{w.far, "ip link set eth1 up"}, {w.far, "ip addr add " + far + "/24 dev eth1"},
		{w.far, "ip route add local " + podNetwork + " dev lo"},
		{w.far, "ip route add default via " + near},
	} {
		words := strings.Fields(do.command)
		if _, err := do.ns.Run(ctx, words[0], words[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// address gives a Linux node its address and its default route.
func address(ctx context.Context, ns *netns.Namespace) error {
	near, _ := testbed.UplinkAddress(0)
	far, _ := testbed.UplinkAddress(1)
	for _, args := range []string{"addr add " + near + "/24 dev " + testbed.UplinkNIC, "route add default via " + far} {
		if _, err := ns.Run(ctx, "ip", strings.Fields(args)...); err != nil {
			return err
		}
	}
	return nil
}

// listen serves the API at the node's loopback address.
func (w *world) listen() error {
	return w.ns.Do(func() error {
		l, err := net.Listen("tcp", apiAddress)
		if err != nil {
			return err
		}
		w.api.Serve(l)
		return nil
	})
}

// memoryWhenEmpty returns the memory of the proxy with one service.
func (w *world) memoryWhenEmpty(ctx context.Context, s side) (float64, error) {
	for i, name := range []string{benchNode, endpointNode} {
		v4, _ := testbed.UplinkAddress(i)
		node := kubeapi.Node(name, []netip.Addr{netip.MustParseAddr(v4)}, fmt.Sprintf("10.%d.0.0/16", i+1))
		if err := w.api.Put(node); err != nil {
			return 0, err
		}
	}
	if err := w.fill(0, 1, 1); err != nil {
		return 0, err
	}
	begin := time.Now()
	p, err := s.start(ctx)
	if err != nil {
		return 0, err
	}
	defer p.Kill()
	if _, err := w.awaitServices(ctx, begin, 0, 1); err != nil {
		return 0, err
	}
	rss, _ := memory(p)
	return rss, nil
}

// mostServices is the number of services that fit into the services' network, after the one of the probe.
const mostServices = 14 << 16

// clusterIP returns the address of the i-th service.
func clusterIP(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 97 + byte(i>>16), byte(i >> 8), byte(i)})
}

// endpointIP returns the i-th address of the endpoints' network; the last 256 are reserved for other purposes.
func endpointIP(i int) netip.Addr {
	i %= 255 * 256
	return netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)})
}

// fill makes the services of a range of numbers.
func (w *world) fill(from, to, endpoints int) error {
	for i := from; i < to; i++ {
		addrs := make([]netip.Addr, endpoints)
		for e := range addrs {
			addrs[e] = endpointIP(i*endpoints + e)
		}
		if err := w.put(fmt.Sprintf("s%06d", i), clusterIP(i), addrs...); err != nil {
			return err
		}
	}
	return nil
}

// put makes a service; its slices have up to 100 endpoints, like those of the controller.
func (w *world) put(name string, ip netip.Addr, addrs ...netip.Addr) error {
	svc := kubeapi.Service(name, []netip.Addr{ip}, kubeapi.Port(corev1.ProtocolTCP, servicePort))
	if err := w.api.Put(svc); err != nil {
		return err
	}
	return w.putEndpoints(svc, addrs...)
}

func (w *world) putEndpoints(svc *corev1.Service, addrs ...netip.Addr) error {
	for n := 0; n*100 < len(addrs); n++ {
		var endpoints []discoveryv1.Endpoint
		for _, a := range addrs[n*100 : min(len(addrs), n*100+100)] {
			endpoints = append(endpoints, kubeapi.Endpoint(endpointNode, a))
		}
		slice := kubeapi.Slice(svc, discoveryv1.AddressTypeIPv4, targetPort, endpoints...)
		slice.Name = fmt.Sprintf("%s-%d", svc.Name, n)
		if err := w.api.Put(slice); err != nil {
			return err
		}
	}
	return nil
}

// sampled is the number of services that are tried repeatedly to determine when all answer.
const sampled = 200

// awaitServices waits until services answer, and returns how long after begin that was. When the sample answers, every single
// service is tried; late services count.
func (w *world) awaitServices(ctx context.Context, begin time.Time, from, to int) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	await := func(i int) error {
		for ctx.Err() == nil {
			if _, err = w.query(ctx, clusterIP(i)); err == nil {
				return nil
			}
			took = 0
			time.Sleep(2 * time.Millisecond)
		}
		return fmt.Errorf("service %d does not respond: %w\n%s", i, err, w.where())
	}
	step := max(1, (to-from)/sampled)
	for i := from; i < to; i += step {
		if err := await(i); err != nil {
			return 0, err
		}
	}
	took = time.Since(begin)
	for i := from; i < to; i++ {
		if err := await(i); err != nil {
			return 0, err
		}
		if took == 0 {
			took = time.Since(begin)
		}
	}
	return took, nil
}

// query sends a request to a service from the node itself.
func (w *world) query(ctx context.Context, ip netip.Addr) (whoami.Answer, error) {
	return whoami.Query(ctx, w.ns, "tcp", netip.AddrPortFrom(ip, servicePort), 50*time.Millisecond)
}

// measureChanges moves the only endpoint of one of many services between two nodes, and waits until connections reach its new
// place.
func (w *world) measureChanges(ctx context.Context, name string) (time.Duration, error) {
	if err := w.fill(w.sizes.services, w.sizes.among, 2); err != nil {
		return 0, err
	}
	if _, err := w.awaitServices(ctx, time.Now(), w.sizes.services, w.sizes.among); err != nil {
		return 0, err
	}
	probe := netip.MustParseAddr("10.96.255.1")
	targets := []netip.Addr{netip.MustParseAddr("10.2.255.1"), netip.MustParseAddr("10.2.255.2")}
	svc := kubeapi.Service("zz-probe", []netip.Addr{probe}, kubeapi.Port(corev1.ProtocolTCP, servicePort))
	if err := w.api.Put(svc); err != nil {
		return 0, err
	}
	var took []time.Duration
	for i := range w.sizes.changes + 1 {
		target := targets[i%2]
		begin := time.Now()
		if err := w.putEndpoints(svc, target); err != nil {
			return 0, err
		}
		if err := w.awaitTarget(ctx, probe, target); err != nil {
			return 0, err
		}
		if i > 0 { // the first change creates the service
			took = append(took, time.Since(begin))
		}
		time.Sleep(100 * time.Millisecond)
	}
	slices.Sort(took)
	fmt.Printf("   %-14s one endpoint changes among %d services: connections go there after %s (p50), %s (p95)\n", name,
		max(w.sizes.services, w.sizes.among), ms(percentile(took, 50)), ms(percentile(took, 95)))
	return percentile(took, 50), nil
}

func (w *world) awaitTarget(ctx context.Context, service, target netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		a, err := w.query(ctx, service)
		if err == nil && a.Local.Addr() == target {
			return nil
		}
		time.Sleep(time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("%s does not lead to %s: reply of %s, %w\n%s", service, target, a.Local, err, w.where())
		}
	}
}
