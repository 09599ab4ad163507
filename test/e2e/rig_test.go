package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cnitypes "github.com/containernetworking/cni/pkg/types"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

// mode is how pods are wired.
type mode struct {
	name string
	real bool // real packets are sent
	tap  bool
	// linux: the host's own IP stack forwards packets, and there is no VPP.
	linux bool
}

var (
	veth = mode{name: "veth", real: true}
	tap  = mode{name: "tap", real: true, tap: true}
	fake = mode{name: "fake"}

	linux    = mode{name: "linux", real: true, linux: true}
	iptables = mode{name: "linux-iptables", real: true, linux: true}
)

// each runs a test once per mode, in parallel with other tests: each has its own node.
func each(t *testing.T, modes []mode, test func(t *testing.T, m mode)) {
	t.Helper()
	eachAlone(t, modes, func(t *testing.T, m mode) {
		t.Parallel()
		test(t, m)
	})
}

// eachAlone runs a test once per mode, with no other test of this package at the same time.
func eachAlone(t *testing.T, modes []mode, test func(t *testing.T, m mode)) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			needs(t, m)
			test(t, m)
		})
	}
}

func needs(t *testing.T, m mode) {
	t.Helper()
	if !isRoot {
		t.Skip("network namespaces need root")
	}
	if _, ok := vpptest.Find(); m.real && !m.linux && !ok {
		t.Skip(vpptest.ErrNoVPP)
	}
}

// rig is a node under test.
type rig struct {
	*testbed.Node
	t    *testing.T
	ctx  context.Context
	mode mode
	base baseline
	pods []*testbed.Pod // pods to remove
}

// setup changes the options of a node.
type setup func(*testbed.NodeOptions)

func config(lines string) setup { return func(o *testbed.NodeOptions) { o.Config += lines } }
func args(a ...string) setup {
	return func(o *testbed.NodeOptions) { o.AgentArgs = append(o.AgentArgs, a...) }
}

// fewPods is the number of pods that a node has room for if a test does not ask for more.
const fewPods = 8

// room sets the number of pods that a node on VPP has room for.
func room(pods int) setup {
	return func(o *testbed.NodeOptions) {
		if o.VPP != nil {
			o.VPP.Buffers = buffersFor(pods)
		}
	}
}

// buffersFor returns the number of packet buffers that VPP needs for pods: a TAP keeps the buffers of its receive ring (256).
func buffersFor(pods int) int { return 400 * (pods + 8) }

var rigs atomic.Int64

// newRig starts a node and its agent.
func newRig(t *testing.T, m mode, with ...setup) *rig {
	t.Helper()
	r := newNode(t, m, with...)
	r.start()
	r.base = r.takeBaseline()
	return r
}

// start starts the agent, within a time limit.
func (r *rig) start() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, 15*time.Second)
	defer cancel()
	if err := r.StartAgent(ctx); err != nil {
		r.t.Fatal(brief(err))
	}
}

// restart kills the agent and starts it again.
func (r *rig) restart() time.Duration {
	r.t.Helper()
	r.must(r.Agent.Kill())
	start := time.Now()
	r.start()
	return time.Since(start)
}

// brief shortens an error that repeats itself.
func brief(err error) error {
	if text := err.Error(); len(text) > 1500 {
		return errors.New(text[:1500] + " …")
	}
	return err
}

// newNode starts a node without an agent.
func newNode(t *testing.T, m mode, with ...setup) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit(t))
	t.Cleanup(cancel)
	opts := testbed.NodeOptions{
		Name: fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), rigs.Add(1)), BinDir: binDir,
		Config: fmt.Sprintf("useTAPInterfaces: %t\n", m.tap),
	}
	switch {
	case m.linux:
		opts.Dataplane, opts.BeforeVPP = "linux", plugNIC
		if m == iptables {
			opts.AgentArgs = append(opts.AgentArgs, "--linux-backend=iptables")
		}
	case m.real:
		_, err := os.Stat("/dev/vhost-net")
		opts.VPP = &vpptest.Options{Vhostshim: m.tap && err != nil, HeapMB: 512, Buffers: buffersFor(fewPods)}
	default:
		opts.Dataplane = "fake"
	}
	for _, s := range with {
		s(&opts)
	}
	node, err := testbed.NewNode(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Node: node, t: t, ctx: ctx, mode: m}
	t.Cleanup(r.close)
	return r
}

// plugNIC adds a NIC to a node, because a node needs one. The NIC is connected to nothing.
func plugNIC(ctx context.Context, ns *netns.Namespace) error {
	return ns.IP(ctx, "link add eth0 type veth peer name cable", "link set cable up", "link set eth0 up", "addr add 192.0.2.10/24 dev eth0")
}

// hostIP returns the address by which pods reach their host.
func (r *rig) hostIP() string {
	if r.mode.linux {
		return "10.1.1.1"
	}
	return "172.30.1.2"
}

// limit returns how long one node may live: if the test's own deadline were reached, nothing would be cleaned up.
func limit(t *testing.T) time.Duration {
	most := 4 * time.Minute
	if deadline, ok := t.Deadline(); ok {
		most = min(most, max(time.Second, time.Until(deadline)-20*time.Second))
	}
	return most
}

func (r *rig) close() {
	if r.t.Failed() {
		r.inspect()
		r.t.Logf("the end of the agent's log:\n%s", r.LogTail(60))
		if r.VPP != nil {
			log := strings.Split(r.VPP.Log(), "\n")
			r.t.Logf("the end of VPP's log:\n%s", strings.Join(log[max(0, len(log)-20):], "\n"))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	for _, p := range r.pods {
		if _, err := os.Stat(p.Path()); err == nil {
			r.check(p.Delete(ctx))
		}
	}
	if err := r.Close(ctx); err != nil {
		r.t.Errorf("close: %v", err)
	}
}

// inspect runs the shell command in CONTIV_E2E_INSPECT in the node of a failed test, to help find the cause. $VPPCTL is VPP's command
// line.
func (r *rig) inspect() {
	command := os.Getenv("CONTIV_E2E_INSPECT")
	if command == "" {
		return
	}
	cmd := r.Command(r.ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "NODE="+r.Name)
	if r.VPP != nil {
		cmd.Env = append(cmd.Env, "VPPCTL=vppctl -s "+r.VPP.CLISocket())
	}
	out, err := cmd.CombinedOutput()
	r.t.Logf("%s: %v\n%s", command, err, out)
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(brief(err))
	}
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Error(brief(err))
	}
}

// within polls until ok succeeds.
func (r *rig) within(d time.Duration, what string, ok func() error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, d)
	defer cancel()
	if err := poll.Until(ctx, 20*time.Millisecond, ok); err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
}

// pod makes the namespace of a pod, which is removed at the end of the test.
func (r *rig) pod(name string) *testbed.Pod {
	r.t.Helper()
	p, err := r.NewPod(r.ctx, name)
	r.must(err)
	r.pods = append(r.pods, p)
	return p
}

// add makes and wires pods.
func (r *rig) add(names ...string) []*testbed.Pod {
	r.t.Helper()
	pods := make([]*testbed.Pod, len(names))
	for i, name := range names {
		pods[i] = r.pod(name)
		_, err := r.CNI.Add(r.ctx, pods[i])
		r.must(err)
	}
	return pods
}

// addMany makes and wires n pods by several callers.
func (r *rig) addMany(n, callers int) []*testbed.Pod {
	r.t.Helper()
	pods := make([]*testbed.Pod, n)
	for i := range pods {
		pods[i] = r.pod(fmt.Sprintf("p%d", i))
	}
	r.must(parallel(callers, pods, func(p *testbed.Pod) error {
		_, err := r.CNI.Add(r.ctx, p)
		return err
	}))
	return pods
}

// parallel processes all items with the given number of workers.
func parallel[T any](workers int, items []T, work func(T) error) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	next := make(chan T)
	for range workers {
		wg.Go(func() {
			for item := range next {
				if err := work(item); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, item := range items {
		next <- item
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

// ring pings from each pod to the next one, in every family, until an answer arrives or d is over.
func (r *rig) ring(d time.Duration, pods []*testbed.Pod) error {
	ctx, cancel := context.WithTimeout(r.ctx, d)
	defer cancel()
	order := make([]int, len(pods))
	for i := range order {
		order[i] = i
	}
	return parallel(8, order, func(i int) error {
		to := pods[(i+1)%len(pods)]
		for _, ip := range to.IPs {
			if err := poll.Until(ctx, 20*time.Millisecond, func() error {
				return pods[i].PingOnce(ctx, ip.String(), 0)
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// reaches checks that each of several pings is answered.
func (r *rig) reaches(from *netns.Namespace, to string) {
	r.t.Helper()
	got, err := from.Ping(r.ctx, to, 5, 20*time.Millisecond)
	r.must(err)
	if got.Lost() > 0 {
		r.t.Errorf("%s -> %s: %s", from.Name, to, got)
	}
}

// code returns the CNI error code, 0 without error.
func code(err error) uint {
	var e *cnitypes.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return 1
	}
	return 0
}

// wantCode checks that the error has the code and contains all words.
func (r *rig) wantCode(err error, want uint, words ...string) {
	r.t.Helper()
	if code(err) != want {
		r.t.Errorf("code %d, want %d: %.600v", code(err), want, err)
	}
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			r.t.Errorf("the error does not mention %q: %.600v", w, err)
		}
	}
}

// many returns the number of pods for tests with many: fewer in make test.
func many(normal int) int {
	if n, err := strconv.Atoi(os.Getenv("CONTIV_E2E_PODS")); err == nil && n > 0 {
		return n
	}
	if matrix.All() {
		return normal
	}
	return min(normal, max(20, normal/3))
}
